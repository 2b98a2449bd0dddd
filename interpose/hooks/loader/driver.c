/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the moment at which libcuda becomes known. The table is filled by whoever comes (idempotent stores), then
 * `met` is published; one thread alone goes on to ask the driver who it is.
 */
#include "interpose/hooks/loader/driver.h"

#include <errno.h>
#include "interpose/code/modules.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/cuda/cuda.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/framework/framework.h"
#include "interpose/hooks/process/process.h"
#include "interpose/hooks/loader/real.h"

static uintptr_t driver_start, driver_end; /* of the libcuda that was met */
static int met, introduced;
static uint64_t driver_version;
static unsigned driver_identity;
static uint32_t introduced_to; /* the process whose recording knows the driver */

bool cuf_driver_holds(const void *addr)
{
	uintptr_t a = (uintptr_t)addr;
	return a - __atomic_load_n(&driver_start, __ATOMIC_RELAXED) <
	       __atomic_load_n(&driver_end, __ATOMIC_RELAXED) - __atomic_load_n(&driver_start, __ATOMIC_RELAXED);
}

/* Routing compares pointers, so cuGetProcAddress must hand out the very addresses that libcuda exports: asked once. */
static unsigned gpa_identity(void)
{
	void *found = NULL;
	CUresult result = CUDA_ERROR_NOT_FOUND;
	if (cuf_real.cuGetProcAddress_v2)
		result = cuf_real.cuGetProcAddress_v2("cuMemAlloc", &found, 3020, 0, NULL);
	else if (cuf_real.cuGetProcAddress)
		result = cuf_real.cuGetProcAddress("cuMemAlloc", &found, 3020, 0);
	return result == CUDA_SUCCESS && cuf_real_driver_hook(found) == (void *)cuf_hook_cuMemAlloc_v2;
}

static void introduce(const struct link_map *libcuda)
{
	int version = 0, expected = 0;
	if (!__atomic_compare_exchange_n(&introduced, &expected, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	/* one reference of our own: a program that closes the driver must not leave us with a table into nothing */
	cuf_real.dlopen(libcuda->l_name, RTLD_NOLOAD | RTLD_NOW);
	if (!cuf_query.cuDriverGetVersion || cuf_query.cuDriverGetVersion(&version) != CUDA_SUCCESS)
		version = 0;
	driver_version = (uint64_t)version;
	driver_identity = gpa_identity();
	if (!cuf_process_is_recorded(CUF_HOOK_dlsym))
		return;
	introduced_to = cuf_state_pid();
	cuf_driver_seen(driver_version, driver_identity);
	cuf_framework_look();
}

void cuf_driver_greet_again(void)
{
	uint32_t pid = cuf_state_pid(), before = __atomic_exchange_n(&introduced_to, pid, __ATOMIC_ACQ_REL);
	if (before == pid)
		return;
	cuf_pools_forget();
	cuf_graphs_forget();
	for (int device = 0; device < (int)CUF_DEVICES_MAX; device++)
		cuf_brackets_forget(device);
	cuf_driver_seen(driver_version, driver_identity);
}

static void meet(const struct cuf_dso *libcuda)
{
	/* the range first: what libcuda itself looks up from now on is exempt */
	__atomic_store_n(&driver_end, libcuda->end, __ATOMIC_RELAXED);
	__atomic_store_n(&driver_start, libcuda->start, __ATOMIC_RELAXED);
	cuf_real_bind_driver(libcuda->map);
	__atomic_store_n(&met, 1, __ATOMIC_RELEASE);
	introduce(libcuda->map);
}

bool cuf_driver_meet_at(const void *addr, bool *met_now)
{
	struct cuf_dso dso;
	int saved = errno;
	*met_now = false;
	if (__atomic_load_n(&met, __ATOMIC_ACQUIRE))
		return true;
	if (!cuf_dso_at(addr, &dso) || !cuf_dso_is(dso.map, "libcuda.so"))
		return false;
	meet(&dso);
	*met_now = true;
	errno = saved;
	return true;
}

bool cuf_driver_meet_loaded(void)
{
	struct cuf_dso dso;
	struct link_map *map;
	int saved = errno;
	if (__atomic_load_n(&met, __ATOMIC_ACQUIRE))
		return true;
	if (!cuf_real.dlopen)
		cuf_real_resolve();
	/* a handle of glibc is the object's link_map; its dynamic section is an address inside the object */
	map = cuf_real.dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
	if (map && cuf_dso_at(map->l_ld, &dso))
		meet(&dso);
	errno = saved;
	return __atomic_load_n(&met, __ATOMIC_ACQUIRE);
}

/* Before the driver is loaded: a library of stubs behind us, which loads it at its first call. */
static bool bind_stub(void **slot)
{
	for (unsigned i = 0; i < cuf_row_count; i++)
		if (cuf_rows[i].slot == slot)
			__atomic_store_n(slot, cuf_real_behind(cuf_rows[i].name), __ATOMIC_RELAXED);
	return cuf_slot_load(slot) != NULL;
}

bool cuf_driver_has(void **slot)
{
	return cuf_slot_load(slot) || (cuf_driver_meet_loaded() ? cuf_slot_load(slot) != NULL : bind_stub(slot));
}

/* A weak reference to a driver function binds to our hook on a machine without a driver: the answer is the one that
 * a driver without a device gives. */
int cuf_driver_refusal(void)
{
	return __atomic_load_n(&met, __ATOMIC_ACQUIRE) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_NO_DEVICE;
}
