/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered memory and its pools. Bytes in use are counted here. Reserved bytes are known to
 * the driver only. They are queried at failures, at the end, after trims, and when a pool must have
 * grown.
 *
 * Events of this file: blocks of kind ASYNC (aux = pool), one entry of kind POOL for each pool
 * (bytes = its release threshold), and POOL_LEVEL with the driver's figures when they changed.
 *
 * Since CUDA 11.2. Runtime functions that end here: cudaMallocAsync, cudaMallocFromPoolAsync,
 * cudaFreeAsync and cudaMemPool*. An address is valid as soon as the allocation returns. A free is
 * only queued: its bytes are back in the pool when the stream gets there. The location of a pool
 * may be the host, so its blocks are not device memory by themselves.
 */
#include "interpose/hooks/cuda/cuda.h"
#include "interpose/hooks/cuda/cuda_pool_table.h"

/* ---- pools in the recording ---- */

/* Records the driver's figures as an event, when they changed since the last query. */
static void note_level(struct cuf_call *call, uint64_t pool)
{
	struct cuf_pool *known = cuf_pool_find(pool);
	struct cuf_request request = { .kind = CUF_KIND_POOL, .device = CUF_DEVICE_NONE };
	struct cuf_pool_level level;
	uint64_t before;
	if (!call->thread || !known)
		return;
	level = cuf_pool_query(pool);
	if (level.reserved_bytes == CUF_UNKNOWN)
		return;
	before = __atomic_exchange_n(&known->reserved_bytes, level.reserved_bytes,
				     __ATOMIC_RELAXED);
	if (before == level.reserved_bytes)
		return;
	request.bytes = level.reserved_bytes;
	request.aux = level.used_bytes;
	if (known->device >= 0)
		request.device = (uint8_t)known->device;
	cuf_event_note(call, CUF_OP_POOL_LEVEL, &request, pool, 0);
}

/* Stores a pool that was created or imported, or a default pool at its first use. device: -1 for a
 * pool located on the host. */
static void add_pool(struct cuf_call *call, uint64_t pool, int device, unsigned kind,
		     unsigned flags)
{
	struct cuf_request request = { .kind = CUF_KIND_POOL, .device = CUF_DEVICE_NONE,
				       .flags = (uint8_t)flags };
	uint64_t threshold;
	if (!call->thread || !pool || cuf_pool_find(pool))
		return;
	threshold = cuf_pool_threshold(pool);
	if (threshold != CUF_UNKNOWN)
		request.bytes = threshold;
	if (device >= 0)
		request.device = (uint8_t)device;
	else
		request.flags |= CUF_EVENT_HOST_LOCATION;
	cuf_pool_add(pool, device, kind);
	cuf_block_alloc(call, &request, pool);
}

/* -1: on the host. */
static int device_of_location(const CUmemLocation *location)
{
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return -1;
	return location->id;
}

/* Pools of managed memory exist since CUDA 13. */
static unsigned kind_of_blocks(CUmemAllocationType type)
{
	if (type == CU_MEM_ALLOCATION_TYPE_MANAGED)
		return CUF_KIND_MANAGED;
	return CUF_KIND_ASYNC;
}

/* ---- which pool, which device ---- */

/* The device of a stream: the current one, unless the stream belongs to another context. The
 * context of the stream decides. */
static int stream_device(CUstream stream, bool per_thread, CUdeviceptr ptr)
{
	enum { STREAM_SPECIAL_MAX = 2, POINTER_DEVICE_ORDINAL = 9 };
	int current = cuf_device_current(), device = -1;
	CUcontext context = NULL;
	CUresult (*context_of)(CUstream, CUcontext *) = cuf_query.cuStreamGetCtx;
	if (per_thread)
		context_of = cuf_query.cuStreamGetCtx_ptsz;
	/* handles 1 and 2 are the legacy and the per-thread default stream */
	if ((uintptr_t)stream <= STREAM_SPECIAL_MAX || cuf_device_total_count() == 1 || !context_of)
		return current;
	if (context_of(stream, &context) != CUDA_SUCCESS || context == cuf_context_current())
		return current;
	if (ptr && CUF_QUERY(cuPointerGetAttribute, &device, POINTER_DEVICE_ORDINAL, ptr) ==
			   CUDA_SUCCESS)
		return device;
	return current;
}

/* The pool that cuMemAllocAsync uses on this device now; 0: unknown. */
static uint64_t current_pool(int device)
{
	CUmemoryPool pool = NULL;
	if (device < 0 || CUF_QUERY(cuDeviceGetMemPool, &pool, device) != CUDA_SUCCESS)
		return 0;
	return (uint64_t)(uintptr_t)pool;
}

/* ---- allocations ---- */

struct async_request {
	size_t bytes;
	CUmemoryPool pool;       /* NULL: the device's current pool */
	CUstream stream;
	bool per_thread;         /* a _ptsz function: stream 0 is the thread's default stream */
};

/* The pool decides where the block is and of which kind. */
static struct cuf_request describe_request(struct cuf_call *call, const struct async_request *async,
					   CUdeviceptr ptr)
{
	int device = stream_device(async->stream, async->per_thread, ptr);
	struct cuf_request request = cuf_request_here(call, CUF_KIND_ASYNC, async->bytes, 0);
	struct cuf_pool *known;
	request.context = 0; /* it survives its context */
	request.aux = (uint64_t)(uintptr_t)async->pool;
	if (!request.aux)
		request.aux = current_pool(device);
	known = cuf_pool_find(request.aux);
	if (known) {
		device = known->device;
		request.kind = known->kind;
		if (device < 0)
			request.flags = CUF_EVENT_HOST_LOCATION;
	}
	request.device = CUF_DEVICE_NONE;
	if (device >= 0)
		request.device = (uint8_t)device;
	return request;
}

/* More bytes in use than were last reserved: the pool must have grown. */
static void count_in_pool(struct cuf_call *call, uint64_t pool, uint64_t bytes)
{
	struct cuf_pool *known = cuf_pool_find(pool);
	int64_t used;
	if (!known)
		return;
	used = __atomic_add_fetch(&known->used_bytes, (int64_t)bytes, __ATOMIC_RELAXED);
	if (used > (int64_t)__atomic_load_n(&known->reserved_bytes, __ATOMIC_RELAXED))
		note_level(call, pool);
}

/* An allocation on a capturing stream becomes a node of the graph. All others are blocks, and their
 * pool is stored at its first use. */
static CUresult async_done(struct cuf_call *call, const struct async_request *async,
			   CUresult result, const CUdeviceptr *out)
{
	int saved = errno, device = -1;
	CUdeviceptr ptr = cuf_output(result, out);
	struct cuf_request request;
	if (!call->thread || (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY))
		return cuf_done(call, result);
	request = describe_request(call, async, ptr);
	if (ptr && cuf_stream_captures(async->stream, async->per_thread)) {
		cuf_node_added(call, &request, ptr);
	} else {
		if (request.device != CUF_DEVICE_NONE)
			device = request.device;
		add_pool(call, request.aux, device, CUF_KIND_ASYNC, 0);
		cuf_alloc_record(call, &request, result, ptr);
		if (ptr)
			count_in_pool(call, request.aux, async->bytes);
	}
	errno = saved;
	return cuf_done(call, result);
}

/* A pool of NULL selects the current pool of the stream's device, which is queried after the
 * call. */
CUresult cuf_hook_cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream)
{
	CUF_CALL(cuMemAllocAsync);
	CUresult result = cuf_real.cuMemAllocAsync(out, bytes, stream);
	struct async_request async = { bytes, NULL, stream, false };
	return async_done(&call, &async, result, out);
}

/* _ptsz functions are what programs call that were compiled for per-thread default streams. */
CUresult cuf_hook_cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t bytes, CUstream stream)
{
	CUF_CALL(cuMemAllocAsync_ptsz);
	CUresult result = cuf_real.cuMemAllocAsync_ptsz(out, bytes, stream);
	struct async_request async = { bytes, NULL, stream, true };
	return async_done(&call, &async, result, out);
}

/* The program names the pool, so the current pool of the device plays no part. */
CUresult cuf_hook_cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
					  CUstream stream)
{
	CUF_CALL(cuMemAllocFromPoolAsync);
	CUresult result = cuf_real.cuMemAllocFromPoolAsync(out, bytes, pool, stream);
	struct async_request async = { bytes, pool, stream, false };
	return async_done(&call, &async, result, out);
}

CUresult cuf_hook_cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
					       CUstream stream)
{
	CUF_CALL(cuMemAllocFromPoolAsync_ptsz);
	CUresult result = cuf_real.cuMemAllocFromPoolAsync_ptsz(out, bytes, pool, stream);
	struct async_request async = { bytes, pool, stream, true };
	return async_done(&call, &async, result, out);
}

/* ---- frees ---- */

/* The free is recorded now, although the bytes return to the pool only when the stream gets there.
 * A captured free becomes a node of the graph and frees nothing by itself. */
static bool async_free_begin(struct cuf_call *call, CUdeviceptr ptr, CUstream stream,
			     bool per_thread, struct cuf_block *block)
{
	if (!call->thread || !ptr || cuf_stream_captures(stream, per_thread))
		return false;
	if (cuf_nodes_were_added() && !cuf_block_find(CUF_SPACE_DEVICE, ptr, 0, block))
		return false;
	if (!cuf_free_begin(call, CUF_SPACE_DEVICE, ptr, block))
		return false;
	cuf_pool_block_freed(block, true);
	return true;
}

/* The pool's sum is corrected first, because cuf_free_done ends the call. */
static CUresult async_free_done(struct cuf_call *call, bool freed, const struct cuf_block *block,
				CUresult result)
{
	if (freed && result != CUDA_SUCCESS)
		cuf_pool_block_freed(block, false);
	return cuf_free_done(call, freed, block, result);
}

/* Accepts blocks of any pool. */
CUresult cuf_hook_cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	struct cuf_block block;
	CUF_CALL(cuMemFreeAsync);
	bool freed = async_free_begin(&call, ptr, stream, false, &block);
	CUresult result = cuf_real.cuMemFreeAsync(ptr, stream);
	return async_free_done(&call, freed, &block, result);
}

CUresult cuf_hook_cuMemFreeAsync_ptsz(CUdeviceptr ptr, CUstream stream)
{
	struct cuf_block block;
	CUF_CALL(cuMemFreeAsync_ptsz);
	bool freed = async_free_begin(&call, ptr, stream, true, &block);
	CUresult result = cuf_real.cuMemFreeAsync_ptsz(ptr, stream);
	return async_free_done(&call, freed, &block, result);
}

/* ---- pool objects ---- */

/* The properties name the location of the pool and the type of its memory. */
CUresult cuf_hook_cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
	CUF_CALL(cuMemPoolCreate);
	CUresult result = cuf_real.cuMemPoolCreate(out, props);
	int saved = errno;
	if (call.thread && result == CUDA_SUCCESS && out && props)
		add_pool(&call, (uint64_t)(uintptr_t)*out, device_of_location(&props->location),
			 kind_of_blocks(props->allocType), 0);
	errno = saved;
	return cuf_done(&call, result);
}

/* The object ends at once, its storage with the last block in it. A table entry that is removed
 * before the call cannot be mistaken for a new pool at the same address. When the driver refuses,
 * the entry returns with its sums at 0, and the next query corrects them. */
CUresult cuf_hook_cuMemPoolDestroy(CUmemoryPool pool)
{
	uint64_t handle = (uint64_t)(uintptr_t)pool;
	struct cuf_block block;
	CUF_CALL(cuMemPoolDestroy);
	bool freed = cuf_free_begin(&call, CUF_SPACE_POOL, handle, &block);
	struct cuf_pool *known = cuf_pool_find(handle);
	if (known)
		cuf_pool_remove(known);
	CUresult result = cuf_real.cuMemPoolDestroy(pool);
	if (result != CUDA_SUCCESS && known)
		cuf_pool_add(handle, known->device, known->kind);
	return cuf_free_done(&call, freed, &block, result);
}

/* Returns reserved memory to the device, so the figures are read again. Only reserved memory that
 * no block uses is released. */
CUresult cuf_hook_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
	CUF_CALL(cuMemPoolTrimTo);
	CUresult result = cuf_real.cuMemPoolTrimTo(pool, keep_bytes);
	int saved = errno;
	if (result == CUDA_SUCCESS)
		note_level(&call, (uint64_t)(uintptr_t)pool);
	errno = saved;
	return cuf_done(&call, result);
}

/* The release threshold limits how much an unused pool keeps. It is the size of the pool's entry.
 * The default is 0: everything unused goes back to the device at the next synchronisation. PyTorch
 * and RMM set the maximum, so their pools keep it. */
static void set_threshold(struct cuf_call *call, uint64_t pool, uint64_t threshold)
{
	struct cuf_request request = { .bytes = threshold, .kind = CUF_KIND_POOL };
	struct cuf_block block;
	if (!cuf_pool_find(pool)) {
		add_pool(call, pool, cuf_device_current(), CUF_KIND_ASYNC, 0);
		return;
	}
	if (!cuf_block_find(CUF_SPACE_POOL, pool, 0, &block) || block.bytes == threshold ||
	    !cuf_block_free(call, CUF_SPACE_POOL, pool, &block))
		return;
	request.device = block.device;
	request.flags = block.flags;
	cuf_block_alloc(call, &request, pool);
}

/* Other attributes steer reuse inside the pool or reset a peak. value points to a uint64_t for the
 * threshold. */
CUresult cuf_hook_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
					void *value)
{
	CUF_CALL(cuMemPoolSetAttribute);
	CUresult result = cuf_real.cuMemPoolSetAttribute(pool, attribute, value);
	int saved = errno;
	if (call.thread && result == CUDA_SUCCESS && value &&
	    attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		set_threshold(&call, (uint64_t)(uintptr_t)pool, *(const uint64_t *)value);
	errno = saved;
	return cuf_done(&call, result);
}

/* From now on cuMemAllocAsync uses this pool. Each allocation queries the current pool, so it is
 * only stored here. */
CUresult cuf_hook_cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	CUF_CALL(cuDeviceSetMemPool);
	CUresult result = cuf_real.cuDeviceSetMemPool(device, pool);
	int saved = errno;
	if (result == CUDA_SUCCESS)
		add_pool(&call, (uint64_t)(uintptr_t)pool, device, CUF_KIND_ASYNC, 0);
	errno = saved;
	return cuf_done(&call, result);
}

/* The form of CUDA 13, for any location and for managed memory. */
CUresult cuf_hook_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
				  CUmemoryPool pool)
{
	CUF_CALL(cuMemSetMemPool);
	CUresult result = cuf_real.cuMemSetMemPool(location, type, pool);
	int saved = errno;
	if (result == CUDA_SUCCESS && location)
		add_pool(&call, (uint64_t)(uintptr_t)pool, device_of_location(location),
			 kind_of_blocks(type), 0);
	errno = saved;
	return cuf_done(&call, result);
}

/* ---- pools shared between processes ---- */

/* The pool belongs to the exporter. Its own allocations are not seen here. */
CUresult cuf_hook_cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *handle,
						     CUmemAllocationHandleType type,
						     unsigned long long flags)
{
	CUF_CALL(cuMemPoolImportFromShareableHandle);
	CUresult result = cuf_real.cuMemPoolImportFromShareableHandle(out, handle, type, flags);
	int saved = errno;
	if (call.thread && result == CUDA_SUCCESS && out)
		add_pool(&call, (uint64_t)(uintptr_t)*out, cuf_device_current(), CUF_KIND_ASYNC,
			 CUF_EVENT_EXPORTED);
	errno = saved;
	return cuf_done(&call, result);
}

/* Another process may allocate from this pool from now on. */
CUresult cuf_hook_cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool,
						   CUmemAllocationHandleType type,
						   unsigned long long flags)
{
	CUF_CALL(cuMemPoolExportToShareableHandle);
	CUresult result = cuf_real.cuMemPoolExportToShareableHandle(handle, pool, type, flags);
	if (call.thread && result == CUDA_SUCCESS)
		cuf_block_find(CUF_SPACE_POOL, (uint64_t)(uintptr_t)pool, CUF_EVENT_EXPORTED, NULL);
	return cuf_done(&call, result);
}

/* Bytes of the exporting process, mapped here. They are freed like any other asynchronous block. */
CUresult cuf_hook_cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool,
					 CUmemPoolPtrExportData *data)
{
	CUdeviceptr base, ptr;
	size_t bytes = 0;
	unsigned flags = 0;
	CUF_CALL(cuMemPoolImportPointer);
	CUresult result = cuf_real.cuMemPoolImportPointer(out, pool, data);
	int saved = errno;
	ptr = cuf_output(result, out);
	if (!call.thread || !ptr || !cuf_range_of(ptr, &base, &bytes))
		flags = CUF_EVENT_ESTIMATED;
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_IMPORTED, bytes, flags);
	request.context = 0;
	request.aux = (uint64_t)(uintptr_t)pool;
	errno = saved;
	return cuf_alloc_done(&call, &request, result, ptr);
}

/* Another process may map this block: it is marked, since a free here may not release it. */
CUresult cuf_hook_cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr ptr)
{
	CUF_CALL(cuMemPoolExportPointer);
	CUresult result = cuf_real.cuMemPoolExportPointer(data, ptr);
	if (call.thread && result == CUDA_SUCCESS)
		cuf_block_find(CUF_SPACE_DEVICE, ptr, CUF_EVENT_EXPORTED, NULL);
	return cuf_done(&call, result);
}
