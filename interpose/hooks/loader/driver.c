/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the moment at which libcuda becomes known. Any thread may fill the table, because its stores
 * are idempotent. Then `attached` is published. Exactly one thread goes on to query the driver.
 */
#include "interpose/hooks/loader/driver.h"

#include <errno.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/loader/real.h"

static uintptr_t driver_start, driver_end; /* of the attached libcuda */
static int attached;
static int described;                      /* a thread has begun to query it */
static bool announced;                     /* in this process's recording */
static const struct link_map *to_be_kept;  /* libcuda, until we hold a reference */
static uint64_t driver_version;
static unsigned driver_identity;

bool cuf_driver_holds(const void *addr)
{
	uintptr_t start = __atomic_load_n(&driver_start, __ATOMIC_RELAXED);
	uintptr_t end = __atomic_load_n(&driver_end, __ATOMIC_RELAXED);
	return (uintptr_t)addr - start < end - start;
}

/* ---- what the driver reports of itself ---- */

/* Look-ups are routed by comparing pointers. So cuGetProcAddress must return the very addresses
 * that libcuda exports. This tests it with one function. */
static bool returns_exported_pointers(void)
{
	void *found = NULL;
	CUresult result = CUDA_ERROR_NOT_FOUND;
	if (cuf_real.cuGetProcAddress_v2)
		result = cuf_real.cuGetProcAddress_v2("cuMemAlloc", &found, 3020, 0, NULL);
	else if (cuf_real.cuGetProcAddress)
		result = cuf_real.cuGetProcAddress("cuMemAlloc", &found, 3020, 0);
	return result == CUDA_SUCCESS && found &&
	       found == cuf_real_driver_export(cuf_row_find("cuMemAlloc_v2"));
}

static void describe(void)
{
	int version = 0, expected = 0;
	if (!__atomic_compare_exchange_n(&described, &expected, 1, 0, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	if (!cuf_query.cuDriverGetVersion || cuf_query.cuDriverGetVersion(&version) != CUDA_SUCCESS)
		version = 0;
	driver_version = (uint64_t)version;
	driver_identity = returns_exported_pointers();
	if (cuf_process_is_recorded(true))
		cuf_driver_announce();
}

void cuf_driver_announce(void)
{
	if (!__atomic_exchange_n(&announced, true, __ATOMIC_ACQ_REL))
		cuf_driver_seen(driver_version, driver_identity);
}

static void forget_announcement(void) { __atomic_store_n(&announced, false, __ATOMIC_RELAXED); }
CUF_AT_FORK_CHILD(forget_announcement);

/* ---- attaching ---- */

static void attach(const struct cuf_dso *libcuda)
{
	/* the range first: what libcuda itself looks up from now on is exempt */
	__atomic_store_n(&driver_end, libcuda->end, __ATOMIC_RELAXED);
	__atomic_store_n(&driver_start, libcuda->start, __ATOMIC_RELAXED);
	cuf_real_bind_driver(libcuda->map);
	__atomic_store_n(&attached, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&to_be_kept, libcuda->map, __ATOMIC_RELEASE);
	describe();
}

/* Not when it is attached: that happens in the first call of a linked driver, under whatever lock
 * the program holds then. Here the program is about to take the loader's lock itself. */
void cuf_driver_keep(void)
{
	const struct link_map *map = __atomic_exchange_n(&to_be_kept, NULL, __ATOMIC_ACQ_REL);
	int saved = errno;
	if (map)
		cuf_real.dlopen(map->l_name, RTLD_NOLOAD | RTLD_NOW);
	errno = saved;
}

bool cuf_driver_attach_at(const void *addr, bool *attached_now)
{
	struct cuf_dso dso;
	int saved = errno;
	*attached_now = false;
	if (__atomic_load_n(&attached, __ATOMIC_ACQUIRE))
		return true;
	if (!cuf_dso_at(addr, &dso) || !cuf_dso_is(dso.map, "libcuda.so"))
		return false;
	attach(&dso);
	*attached_now = true;
	errno = saved;
	return true;
}

bool cuf_driver_attach_loaded(void)
{
	struct cuf_dso dso;
	struct link_map *map;
	int saved = errno;
	if (__atomic_load_n(&attached, __ATOMIC_ACQUIRE))
		return true;
	map = cuf_dso_find_loaded("libcuda.so");
	/* the dynamic section is an address inside the object */
	if (map && cuf_dso_at(map->l_ld, &dso))
		attach(&dso);
	errno = saved;
	return __atomic_load_n(&attached, __ATOMIC_ACQUIRE);
}

/* ---- for the bodies of hooks ---- */

/* Before the driver is loaded: a library of stubs behind us loads it at its first call. */
static bool bind_stub(void **slot)
{
	for (unsigned i = 0; i < cuf_row_count; i++)
		if (cuf_rows[i].slot == slot)
			__atomic_store_n(slot, cuf_real_behind(cuf_rows[i].name), __ATOMIC_RELAXED);
	return cuf_slot_load(slot) != NULL;
}

bool cuf_driver_has(void **slot)
{
	if (cuf_slot_load(slot))
		return true;
	if (cuf_driver_attach_loaded())
		return cuf_slot_load(slot) != NULL;
	return bind_stub(slot);
}

/* On a machine without a driver, a weak reference of an object that was opened late binds to our
 * hook. It gets the result that a driver without a device returns. */
int cuf_driver_refusal(void)
{
	if (__atomic_load_n(&attached, __ATOMIC_ACQUIRE))
		return CUDA_ERROR_NOT_FOUND;
	return CUDA_ERROR_NO_DEVICE;
}
