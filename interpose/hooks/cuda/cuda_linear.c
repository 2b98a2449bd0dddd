/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear and managed memory. cuMemFree also frees what other families allocated: asynchronous and
 * imported memory, mapped buffers of external memory, memory of graphs. So the ledger decides what
 * a free was, not the name of the function.
 *
 * Runtime functions that end here: cudaMalloc, cudaMallocPitch, cudaMalloc3D, cudaMallocManaged and
 * cudaFree. A free may wait for the device, so a call can take long without any fault of the
 * recorder.
 */
#include "interpose/hooks/cuda/cuda.h"
#include "interpose/hooks/cuda/cuda_pool_table.h"
#include "interpose/hooks/cuda/cuda_view.h"

/* ---- allocations ---- */

/* The size is the requested one. The driver rounds it up and places small blocks in pages of 2 MiB;
 * the report computes that. */
CUresult cuf_hook_cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
	CUF_CALL(cuMemAlloc_v2);
	CUresult result = cuf_real.cuMemAlloc_v2(out, bytes);
	struct cuf_request request =
		cuf_request_here(&call, CUF_KIND_DEVICE, bytes, CUF_EVENT_CONTEXT_BOUND);
	return cuf_alloc_done(&call, &request, result, cuf_output(result, out));
}

/* The names without _v2 are the 32-bit interface of CUDA 2 and 3, still exported. */
CUresult cuf_hook_cuMemAlloc(CUdeviceptr_v1 *out, unsigned int bytes)
{
	CUF_CALL(cuMemAlloc);
	CUresult result = cuf_real.cuMemAlloc(out, bytes);
	struct cuf_request request =
		cuf_request_here(&call, CUF_KIND_DEVICE, bytes, CUF_EVENT_CONTEXT_BOUND);
	return cuf_alloc_done(&call, &request, result, cuf_output_v1(result, out));
}

/* The driver pads rows. A block has the row pitch times the height; the pitch is known only after
 * success. */
CUresult cuf_hook_cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width_bytes,
				     size_t height, unsigned int element_bytes)
{
	size_t row_bytes = width_bytes;
	CUF_CALL(cuMemAllocPitch_v2);
	CUresult result =
		cuf_real.cuMemAllocPitch_v2(out, pitch, width_bytes, height, element_bytes);
	if (result == CUDA_SUCCESS && pitch)
		row_bytes = *pitch;
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_DEVICE, row_bytes * height,
						      CUF_EVENT_CONTEXT_BOUND);
	return cuf_alloc_done(&call, &request, result, cuf_output(result, out));
}

/* As above, with 32-bit sizes. The product is computed with 64 bits. */
CUresult cuf_hook_cuMemAllocPitch(CUdeviceptr_v1 *out, unsigned int *pitch,
				  unsigned int width_bytes, unsigned int height,
				  unsigned int element_bytes)
{
	uint64_t row_bytes = width_bytes;
	CUF_CALL(cuMemAllocPitch);
	CUresult result = cuf_real.cuMemAllocPitch(out, pitch, width_bytes, height, element_bytes);
	if (result == CUDA_SUCCESS && pitch)
		row_bytes = *pitch;
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_DEVICE, row_bytes * height,
						      CUF_EVENT_CONTEXT_BOUND);
	return cuf_alloc_done(&call, &request, result, cuf_output_v1(result, out));
}

/* Not resident before it is touched. It is counted apart from device memory. */
CUresult cuf_hook_cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned int flags)
{
	CUF_CALL(cuMemAllocManaged);
	CUresult result = cuf_real.cuMemAllocManaged(out, bytes, flags);
	struct cuf_request request =
		cuf_request_here(&call, CUF_KIND_MANAGED, bytes, CUF_EVENT_CONTEXT_BOUND);
	return cuf_alloc_done(&call, &request, result, cuf_output(result, out));
}

/* ---- frees ---- */

/* What a free removed from the ledger, kept until the driver accepts it. */
struct linear_free {
	bool freed;              /* an ordinary block */
	bool external;           /* a mapped buffer of external memory */
	struct cuf_block block;
	struct cuf_release object;
};

/* Decides what kind of memory the address is, before the driver frees it. Afterwards another thread
 * may own the address. */
static void linear_free_begin(struct cuf_call *call, CUdeviceptr ptr, struct linear_free *undo)
{
	struct cuf_block known;
	undo->freed = undo->external = false;
	if (!call->thread || !ptr) /* cuMemFree(0) is legal and frees nothing */
		return;
	if (!cuf_block_find(CUF_SPACE_DEVICE, ptr, 0, &known)) {
		undo->external = cuf_external_buffer_free(call, ptr, &undo->block, &undo->object);
		/* memory of a graph has no block, so its free is not an unknown one */
		if (undo->external || cuf_nodes_were_added())
			return;
	}
	undo->freed = cuf_free_begin(call, CUF_SPACE_DEVICE, ptr, &undo->block);
	if (undo->freed)
		cuf_pool_block_freed(&undo->block, true);
}

/* A free that removed no block may have changed the pool of a graph. */
static CUresult linear_free_done(struct cuf_call *call, const struct linear_free *undo,
				 CUresult result)
{
	if (result != CUDA_SUCCESS && undo->external) {
		cuf_block_restore(call, &undo->block);
		cuf_release_undo(call, &undo->object);
	}
	if (result != CUDA_SUCCESS && undo->freed)
		cuf_pool_block_freed(&undo->block, false);
	if (result == CUDA_SUCCESS && !undo->freed)
		cuf_graph_levels(call);
	return cuf_free_done(call, undo->freed, &undo->block, result);
}

/* cudaFree ends here. An unknown address is passed on and recorded as an unknown free: it was
 * allocated before the recorder started, or by a function that it does not know. */
CUresult cuf_hook_cuMemFree_v2(CUdeviceptr ptr)
{
	struct linear_free undo;
	CUF_CALL(cuMemFree_v2);
	linear_free_begin(&call, ptr, &undo);
	CUresult result = cuf_real.cuMemFree_v2(ptr);
	return linear_free_done(&call, &undo, result);
}

/* The 32-bit interface. Its addresses are zero-extended. */
CUresult cuf_hook_cuMemFree(CUdeviceptr_v1 ptr)
{
	struct linear_free undo;
	CUF_CALL(cuMemFree);
	linear_free_begin(&call, ptr, &undo);
	CUresult result = cuf_real.cuMemFree(ptr);
	return linear_free_done(&call, &undo, result);
}

/* ---- free memory ---- */

/* Programs often decide by this number, so it is recorded as they see it. Both out-parameters may
 * be NULL: OptiX passes NULL for the free bytes. */
CUresult cuf_hook_cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	uint64_t total = CUF_UNKNOWN;
	CUF_CALL(cuMemGetInfo_v2);
	CUresult result = cuf_real.cuMemGetInfo_v2(free_bytes, total_bytes);
	int saved = errno, device;
	if (call.thread && result == CUDA_SUCCESS && free_bytes &&
	    (device = cuf_device_current()) >= 0) {
		if (total_bytes)
			total = *total_bytes;
		cuf_device_announce(device);
		const struct cuf_driver_view view = {
			.free_bytes = *free_bytes, .total_bytes = total
		};
		cuf_device_seen(&call, (unsigned)device, &view);
		cuf_free_memory_refresh(&call, (unsigned)device); /* and the pools */
	}
	errno = saved;
	return cuf_done(&call, result);
}
