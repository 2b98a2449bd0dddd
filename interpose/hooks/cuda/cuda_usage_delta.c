/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the driver allocates for itself: contexts, modules, limits, instantiated graphs. No
 * interface reports its size. So free memory is read before and after such a call (role USAGE). A
 * decrease is added to one growing entry for each device and function. What an unload frees is
 * taken from the entries of the loads.
 *
 * Calls of role WATCH are recorded only when they fail for lack of memory, those of role PASS
 * never. All bodies of these three roles are generated here from the hook table.
 *
 * The difference is an estimate and marked as such: other processes may change free memory, too. It
 * is discarded when this process allocated or freed in another thread meanwhile.
 *
 * Typical sums: a context takes some hundred MiB, a module its code and globals, a limit the stacks
 * or the heap of kernels. With lazy loading a module is loaded at its first launch.
 */
#include "interpose/hooks/cuda/cuda.h"

#include "interpose/platform/at_fork_child.h"

/* The rows of role USAGE, counted: each has a column in driver_bytes. */
enum {
#define CUF_COLUMN_USAGE(name) COLUMN_##name,
#define CUF_COLUMN_ALLOC(name)
#define CUF_COLUMN_FREE(name)
#define CUF_COLUMN_MAP(name)
#define CUF_COLUMN_UNMAP(name)
#define CUF_COLUMN_POOL(name)
#define CUF_COLUMN_GRAPH(name)
#define CUF_COLUMN_RESET(name)
#define CUF_COLUMN_QUERY(name)
#define CUF_COLUMN_LOOKUP(name)
#define CUF_COLUMN_WATCH(name)
#define CUF_COLUMN_PASS(name)
#define CUF_COLUMN_LIBC(role, name)
#define CUF_COLUMN_CUDART(role, name)
#define CUF_COLUMN_FOREIGN(role, name)
#define CUF_COLUMN_CUFLIGHT(role, name)
#define CUF_COLUMN_CUDA(role, name) CUF_COLUMN_##role(name)
#define HOOK(id, lib, ret, name, params, args, role) CUF_COLUMN_##lib(role, name)
#include "interpose/abi/hooks.def"
	COLUMNS,
	NO_COLUMN = COLUMNS /* of an unload */
};

/* What the driver allocated for itself during each kind of call, since the last reset. */
static uint64_t driver_bytes[CUF_DEVICES_MAX][COLUMNS];

/* After a reset the driver's own memory of the device is gone, so its entry starts at 0 again. */
void cuf_usage_deltas_forget(int device)
{
	if (device < 0 || device >= (int)CUF_DEVICES_MAX)
		return;
	for (unsigned i = 0; i < COLUMNS; i++)
		__atomic_store_n(&driver_bytes[device][i], 0, __ATOMIC_RELAXED);
}

static void forget_all_devices(void)
{
	for (int device = 0; device < (int)CUF_DEVICES_MAX; device++)
		cuf_usage_deltas_forget(device);
}
CUF_AT_FORK_CHILD(forget_all_devices);

/* ---- the measurement around a call ---- */

struct usage_delta {
	int device;              /* -1: free memory could not be read before the call */
	uint64_t free_bytes;
	uint64_t changes;
};

/* Free memory can be read only where a context is current and no stream captures. */
static void usage_delta_begin(struct cuf_call *call, struct usage_delta *delta)
{
	uint64_t total_bytes;
	int saved = errno, device;
	delta->device = -1;
	delta->changes = cuf_changes_seen();
	if (call->thread && !cuf_is_capturing()) {
		device = cuf_device_current();
		if (device < (int)CUF_DEVICES_MAX &&
		    cuf_memory_of(device, &delta->free_bytes, &total_bytes))
			delta->device = device;
	}
	errno = saved;
}

/* The entry is a pseudo-block whose address is the pair of device and hook. */
static void set_entry(struct cuf_call *call, int device, unsigned hook, uint64_t bytes)
{
	struct cuf_request level = { .bytes = bytes, .aux = hook, .kind = CUF_KIND_CONTEXT,
				     .device = (uint8_t)device,
				     .flags = CUF_EVENT_CONTEXT_BOUND | CUF_EVENT_ESTIMATED };
	level.context = cuf_context_fold(cuf_context_current());
	cuf_level_set(call, &level, (uint64_t)(device + 1) << 16 | hook);
}

/* Which entry an unload makes smaller: code is allocated by these calls, and the driver does not
 * tell what belongs to what. Code that came with its first launch is in none. */
static const struct { uint16_t hook, column; } loads[] = {
#define LOAD(name) { CUF_HOOK_##name, COLUMN_##name }
	LOAD(cuFuncLoad), LOAD(cuModuleLoadData), LOAD(cuModuleLoadDataEx), LOAD(cuModuleLoad),
	LOAD(cuModuleLoadFatBinary), LOAD(cuLibraryLoadData), LOAD(cuLibraryLoadFromFile),
};

static void take_from_loads(struct cuf_call *call, int device, uint64_t bytes)
{
	for (unsigned i = 0; i < sizeof loads / sizeof *loads && bytes; i++) {
		uint64_t *held = &driver_bytes[device][loads[i].column];
		uint64_t had = __atomic_load_n(held, __ATOMIC_RELAXED), part;
		do
			part = had < bytes ? had : bytes;
		while (!__atomic_compare_exchange_n(held, &had, had - part, false,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED));
		if (part)
			set_entry(call, device, loads[i].hook, had - part);
		bytes -= part;
	}
}

/* The device may have changed: creating a context makes it current. Then there is no difference. */
static void usage_delta_measure(struct cuf_call *call, const struct usage_delta *delta,
				unsigned hook, unsigned column)
{
	uint64_t free_bytes, total_bytes;
	int device = cuf_device_current();
	if (device < 0 || device >= (int)CUF_DEVICES_MAX || cuf_is_capturing() ||
	    !cuf_memory_of(device, &free_bytes, &total_bytes))
		return;
	cuf_device_announce(device);
	const struct cuf_driver_view view = { .free_bytes = free_bytes,
					      .total_bytes = total_bytes };
	cuf_device_seen(call, (unsigned)device, &view);
	/* when another thread allocated or freed meanwhile, the difference is not only this
	 * call's */
	if (device != delta->device || cuf_changes_seen() != delta->changes)
		return;
	if (column == NO_COLUMN && free_bytes > delta->free_bytes)
		take_from_loads(call, device, free_bytes - delta->free_bytes);
	else if (column != NO_COLUMN && free_bytes < delta->free_bytes)
		set_entry(call, device, hook,
			  __atomic_add_fetch(&driver_bytes[device][column],
					     delta->free_bytes - free_bytes, __ATOMIC_RELAXED));
}

/* Measures after a success only. A call that failed for lack of memory becomes an incident without
 * a size. */
static CUresult usage_delta_done(struct cuf_call *call, const struct usage_delta *delta,
				 unsigned hook, unsigned column, CUresult result)
{
	int saved = errno;
	if (call->thread && result == CUDA_SUCCESS)
		usage_delta_measure(call, delta, hook, column);
	else if (call->thread && result == CUDA_ERROR_OUT_OF_MEMORY)
		cuf_unsized_failure(call, CUF_KIND_CONTEXT, result);
	errno = saved;
	return cuf_done(call, result);
}

/* ---- unloads ---- */

CUresult cuf_hook_cuModuleUnload(CUmodule module)
{
	struct usage_delta delta;
	CUF_CALL(cuModuleUnload);
	usage_delta_begin(&call, &delta);
	CUresult result = cuf_real.cuModuleUnload(module);
	return usage_delta_done(&call, &delta, CUF_HOOK_cuModuleUnload, NO_COLUMN, result);
}

CUresult cuf_hook_cuLibraryUnload(CUlibrary library)
{
	struct usage_delta delta;
	CUF_CALL(cuLibraryUnload);
	usage_delta_begin(&call, &delta);
	CUresult result = cuf_real.cuLibraryUnload(library);
	return usage_delta_done(&call, &delta, CUF_HOOK_cuLibraryUnload, NO_COLUMN, result);
}

/* ---- generated bodies ---- */

/* Free memory is read before and after the call. Calls of this role are rare: contexts, modules. */
#define BODY_USAGE(name, params, args) \
	CUresult cuf_hook_##name params \
	{ \
		struct usage_delta delta; \
		CUF_CALL(name); \
		usage_delta_begin(&call, &delta); \
		CUresult result = cuf_real.name args; \
		return usage_delta_done(&call, &delta, CUF_HOOK_##name, COLUMN_##name, result); \
	}

/* Launches are frequent: nothing is done before the call, and after a success one comparison. */
#define BODY_WATCH(name, params, args) \
	CUresult cuf_hook_##name params \
	{ \
		if (__builtin_expect(!cuf_real.name, 0) && \
		    !cuf_driver_has((void **)&cuf_real.name)) \
			return cuf_driver_refusal(); \
		CUresult result = cuf_real.name args; \
		return cuf_watch_done(CUF_HOOK_##name, result, __builtin_frame_address(0)); \
	}

/* Hooked only so that the function counts as covered. The body is one call. */
#define BODY_PASS(name, params, args) \
	CUresult cuf_hook_##name params \
	{ \
		if (__builtin_expect(!cuf_real.name, 0) && \
		    !cuf_driver_has((void **)&cuf_real.name)) \
			return cuf_driver_refusal(); \
		return cuf_real.name args; \
	}

#define BODY_ALLOC(name, params, args)
#define BODY_FREE(name, params, args)
#define BODY_MAP(name, params, args)
#define BODY_UNMAP(name, params, args)
#define BODY_POOL(name, params, args)
#define BODY_GRAPH(name, params, args)
#define BODY_RESET(name, params, args)
#define BODY_QUERY(name, params, args)
#define BODY_LOOKUP(name, params, args)
#define LIBRARY_LIBC(role, name, params, args)
#define LIBRARY_CUDART(role, name, params, args)
#define LIBRARY_CUFLIGHT(role, name, params, args)
#define LIBRARY_FOREIGN(role, name, params, args)
#define LIBRARY_CUDA(role, name, params, args) BODY_##role(name, params, args)
#define HOOK(id, lib, ret, name, params, args, role) LIBRARY_##lib(role, name, params, args)
#include "interpose/abi/hooks.def"
