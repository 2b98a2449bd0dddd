/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the order of events around one driver call. A free is recorded before it and undone when the
 * driver refuses; an allocation is recorded after it; a failure is recorded with the driver's view.
 */
#include "interpose/hooks/cuda/cuda.h"

#include <string.h>
#include "interpose/platform/options.h"
#include "interpose/hooks/cuda/cuda_view.h"
#include "interpose/hooks/cuda/gpu_processes.h"
#include "interpose/hooks/framework/framework.h"
#include "interpose/hooks/malloc/allocator.h"

/* Counts blocks that come and go. cuda_usage_delta.c compares two readings of it: when they differ,
 * another thread changed free memory during a call that it measures. */
static uint64_t changes;

/* Relaxed: the value only has to differ when another thread was active in between. */
uint64_t cuf_changes_seen(void) { return __atomic_load_n(&changes, __ATOMIC_RELAXED); }
static void count_change(void) { __atomic_fetch_add(&changes, 1, __ATOMIC_RELAXED); }

/* ---- requests ---- */

/* A hash, because the ledger has 32 bits for a context. Two contexts of one process that fold alike
 * would be freed together; with a few contexts that does not happen. */
uint32_t cuf_context_fold(CUcontext context)
{
	uint64_t bits = (uint64_t)(uintptr_t)context * 0x9E3779B97F4A7C15ull;
	uint32_t fold = (uint32_t)(bits >> 32);
	if (context && !fold) /* 0 means no context */
		return 1;
	return fold;
}

/* The request of a call that allocates in the current context. Without a thread (recording is off,
 * or a nested call) nothing is queried. */
struct cuf_request cuf_request_here(struct cuf_call *call, unsigned kind, uint64_t bytes,
				    unsigned flags)
{
	struct cuf_request request = { .bytes = bytes, .kind = (uint8_t)kind,
				       .device = CUF_DEVICE_NONE, .flags = (uint8_t)flags };
	int device, saved = errno;
	if (!call->thread)
		return request;
	device = cuf_device_current();
	if (device < 0 && cuf_device_total_count() == 1) /* no context yet, and only one device */
		device = 0;
	if (device >= 0 && device < (int)CUF_DEVICE_NONE)
		request.device = (uint8_t)device;
	request.context = cuf_context_fold(cuf_context_current());
	errno = saved;
	return request;
}

/* Memory of cuMemCreate and of pools names its device, and may be located on the host. */
struct cuf_request cuf_request_at(struct cuf_call *call, unsigned kind, uint64_t bytes,
				  int location_type, int location_id)
{
	struct cuf_request request = cuf_request_here(call, kind, bytes, 0);
	request.context = 0; /* such memory belongs to no context */
	if (location_type != CU_MEM_LOCATION_TYPE_DEVICE) {
		request.device = CUF_DEVICE_NONE;
		request.flags = CUF_EVENT_HOST_LOCATION;
	} else if (location_id >= 0 && location_id < (int)CUF_DEVICE_NONE) {
		request.device = (uint8_t)location_id;
	}
	return request;
}

/* ---- allocations and failures ---- */

/* Page-locked and host-located memory is requested through the driver, but takes none of a
 * device. */
static bool is_on_device(const struct cuf_request *request)
{
	return request->kind != CUF_KIND_PINNED && request->kind != CUF_KIND_REGISTERED &&
	       !(request->flags & CUF_EVENT_HOST_LOCATION);
}

/* The view is read first: what follows takes longer, and memory may change meanwhile. */
static void record_failure(struct cuf_call *call, const struct cuf_request *request,
			   CUresult result)
{
	struct cuf_driver_view view;
	uint64_t incident;
	int device = -1;
	if (request->device != CUF_DEVICE_NONE)
		device = request->device;
	cuf_view_read(device, cuf_options.probe && is_on_device(request), &view);
	incident = cuf_request_failed(call, request, (uint32_t)result, &view);
	if (incident && is_on_device(request))
		cuf_gpu_processes_read(request->device, incident, (void *)call->frame);
	cuf_allocator_read_at_incident();
	cuf_framework_check_unseen();
}

/* Only success and out-of-memory leave a trace: other errors are mistakes of the program and
 * allocate nothing. errno is the program's, so the queries below must not change it. */
void cuf_alloc_record(struct cuf_call *call, const struct cuf_request *request, CUresult result,
		      uint64_t addr)
{
	int saved = errno;
	bool on_device = request->device != CUF_DEVICE_NONE;
	if (!call->thread || (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY))
		return;
	if (on_device)
		cuf_device_announce(request->device);
	if (result != CUDA_SUCCESS) {
		record_failure(call, request, result);
	} else if (addr) {
		cuf_block_alloc(call, request, addr);
		count_change();
		if (on_device)
			cuf_free_memory_refresh(call, request->device);
	}
	errno = saved;
}

/* Called last in a hook. It passes the driver's result through unchanged. */
CUresult cuf_alloc_done(struct cuf_call *call, const struct cuf_request *request, CUresult result,
			uint64_t addr)
{
	cuf_alloc_record(call, request, result, addr);
	return cuf_done(call, result);
}

/* The incident has no requested size. The report explains it by the memory that was free. */
void cuf_unsized_failure(struct cuf_call *call, unsigned kind, CUresult result)
{
	struct cuf_request request = cuf_request_here(call, kind, 0, 0);
	request.unsized = true;
	cuf_alloc_record(call, &request, result, 0);
}

/* Streams are noted here because the stream functions have role WATCH: PyTorch keeps free blocks
 * for each stream, so the report must know whether there are any. */
CUresult cuf_watch_done(unsigned hook, CUresult result, void *frame)
{
	struct cuf_call call;
	int saved = errno;
	if (result == CUDA_SUCCESS &&
	    (hook == CUF_HOOK_cuStreamCreate || hook == CUF_HOOK_cuStreamCreateWithPriority ||
	     hook == CUF_HOOK_cuGreenCtxStreamCreate))
		cuf_framework_note_streams();
	if (result != CUDA_ERROR_OUT_OF_MEMORY)
		return result;
	if (cuf_call_begin(&call, hook, frame))
		cuf_unsized_failure(&call, CUF_KIND_CONTEXT, result);
	cuf_call_end();
	errno = saved;
	return result;
}


/* ---- frees and releases ---- */

/* Before the real call, because another thread may get the address right after it. Returns whether
 * a block was removed. *block is then the copy for an undo. */

bool cuf_free_begin(struct cuf_call *call, unsigned space, uint64_t addr, struct cuf_block *block)
{
	if (!call->thread || !addr)
		return false;
	count_change();
	return cuf_block_free(call, space, addr, block);
}

/* Undoes the free that cuf_free_begin recorded. The restored block keeps the stack and the time of
 * its allocation. */
CUresult cuf_free_done(struct cuf_call *call, bool freed, const struct cuf_block *block,
		       CUresult result)
{
	int saved = errno;
	if (freed && result != CUDA_SUCCESS)
		cuf_block_restore(call, block);
	else if (freed && block->device != CUF_DEVICE_NONE)
		cuf_free_memory_refresh(call, block->device);
	errno = saved;
	return cuf_done(call, result);
}

/* As cuf_free_begin, for objects with counts. What was removed is kept in *release until the driver
 * accepts the call. An outcome of -1 means that the ledger had no such object. */
void cuf_release_begin(struct cuf_call *call, struct cuf_release *release, unsigned space,
		       uint64_t addr, int references, int maps)
{
	*release = (struct cuf_release){ .space = space, .addr = addr, .references = references,
					 .maps = maps, .outcome = -1 };
	if (!call->thread || !addr)
		return;
	count_change();
	release->outcome =
		cuf_block_add_refs(call, space, addr, -references, -maps, &release->block);
}

/* What was really taken from a count: one that was 0 already gave nothing. */
static int taken_from(int count, int wished) { return wished < count ? wished : count; }

void cuf_release_undo(struct cuf_call *call, const struct cuf_release *release)
{
	struct cuf_block ignored;
	if (release->outcome == 1) /* the block died: it returns with the counts it had */
		cuf_block_restore(call, &release->block);
	else if (release->outcome == 0)
		cuf_block_add_refs(call, release->space, release->addr,
				   taken_from(release->block.references, release->references),
				   taken_from(release->block.maps, release->maps), &ignored);
}
