/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver takes for itself: contexts, modules, limits, instantiated graphs. No interface tells its size, so
 * free memory is asked before and after, and a loss of it becomes one growing entry a device and function. Other calls
 * are only watched for failing for want of memory. All bodies here are generated from the table.
 */
#include "interpose/hooks/cuda/cuda.h"

/* Rows of this role, counted: each has a column in `taken`. */
enum {
#define CUF_COLUMN_BRACKET(name) COLUMN_##name,
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
	COLUMNS
};

static uint64_t taken_bytes[CUF_DEVICES_MAX][COLUMNS];

void cuf_brackets_forget(int device)
{
	for (unsigned i = 0; device >= 0 && device < (int)CUF_DEVICES_MAX && i < COLUMNS; i++)
		__atomic_store_n(&taken_bytes[device][i], 0, __ATOMIC_RELAXED);
}

struct bracket { int device; uint64_t free_bytes, changes; };

/* Asked only where a context is current and nobody captures; device -1: not asked. */
static void bracket_open(struct cuf_call *call, struct bracket *bracket)
{
	uint64_t total_bytes;
	int saved = errno;
	bracket->device = -1;
	bracket->changes = cuf_changes_seen();
	if (call->thread && !cuf_capturing_somewhere()) {
		bracket->device = cuf_device_current();
		if (bracket->device >= (int)CUF_DEVICES_MAX || !cuf_memory_of(bracket->device, &bracket->free_bytes, &total_bytes))
			bracket->device = -1;
	}
	errno = saved;
}

static void bracket_measure(struct cuf_call *call, const struct bracket *bracket, unsigned hook, unsigned column)
{
	uint64_t free_bytes, total_bytes, sum;
	int device = cuf_device_current();
	if (device < 0 || device >= (int)CUF_DEVICES_MAX || cuf_capturing_somewhere() || !cuf_memory_of(device, &free_bytes, &total_bytes))
		return;
	cuf_device_introduce(device);
	cuf_device_free_seen(call, (unsigned)device, free_bytes, total_bytes);
	/* another thread allocated or freed meanwhile: the difference is not this call's alone */
	if (device != bracket->device || free_bytes >= bracket->free_bytes || cuf_changes_seen() != bracket->changes)
		return;
	sum = __atomic_add_fetch(&taken_bytes[device][column], bracket->free_bytes - free_bytes, __ATOMIC_RELAXED);
	struct cuf_request level = { .bytes = sum, .aux = hook, .kind = CUF_KIND_CONTEXT, .device = (uint8_t)device,
		.context = cuf_context_fold(cuf_context_current()), .flags = CUF_EVENT_CONTEXT_BOUND | CUF_EVENT_ESTIMATED };
	cuf_level_set(call, &level, (uint64_t)(device + 1) << 16 | hook);
}

static CUresult bracket_close(struct cuf_call *call, const struct bracket *bracket, unsigned hook, unsigned column, CUresult result)
{
	struct cuf_request request;
	int saved = errno;
	if (call->thread && result == CUDA_SUCCESS) {
		bracket_measure(call, bracket, hook, column);
	} else if (call->thread && result == CUDA_ERROR_OUT_OF_MEMORY) {
		request = cuf_request_here(call, CUF_KIND_CONTEXT, 0, 0);
		request.unsized = true;
		cuf_alloc_record(call, &request, result, 0);
	}
	errno = saved;
	return cuf_done(call, result);
}

#define BODY_BRACKET(name, params, args) \
	CUresult cuf_hook_##name params \
	{ \
		struct bracket bracket; \
		CUF_CALL(name); \
		bracket_open(&call, &bracket); \
		CUresult result = cuf_real.name args; \
		return bracket_close(&call, &bracket, CUF_HOOK_##name, COLUMN_##name, result); \
	}

/* Launches are frequent: nothing is done before, and after a success one comparison. */
#define BODY_WATCH(name, params, args) \
	CUresult cuf_hook_##name params \
	{ \
		if (__builtin_expect(!cuf_real.name, 0) && !cuf_driver_has((void **)&cuf_real.name)) \
			return cuf_driver_refusal(); \
		CUresult result = cuf_real.name args; \
		return cuf_watch_done(CUF_HOOK_##name, result, __builtin_frame_address(0)); \
	}

#define BODY_PASS(name, params, args) \
	CUresult cuf_hook_##name params \
	{ \
		if (__builtin_expect(!cuf_real.name, 0) && !cuf_driver_has((void **)&cuf_real.name)) \
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
