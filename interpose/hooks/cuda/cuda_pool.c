/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered memory and its pools. Used bytes are the ledger's; reserved bytes are the driver's secret and asked
 * of it: at failures, at the end, after trims, and when a pool must have grown. A small table remembers the pools, so
 * that a failure can name them.
 */
#include "interpose/hooks/cuda/cuda.h"

#define POOLS_KNOWN_MAX 64u
static struct known_pool {
	uint64_t pool;       /* 0 free slot */
	int64_t used_bytes;  /* of blocks the ledger has */
	uint64_t reserved_bytes; /* as last asked */
	int device;          /* -1: located on the host */
	uint8_t kind;        /* of its blocks: ASYNC, or MANAGED for the managed pools of CUDA 13 */
} pools[POOLS_KNOWN_MAX];

static struct known_pool *pool_find(uint64_t pool)
{
	for (unsigned i = 0; pool && i < POOLS_KNOWN_MAX; i++)
		if (__atomic_load_n(&pools[i].pool, __ATOMIC_ACQUIRE) == pool)
			return &pools[i];
	return NULL;
}

static void pool_remember(uint64_t pool, int device, unsigned kind)
{
	for (unsigned i = 0; pool && i < POOLS_KNOWN_MAX; i++) {
		uint64_t empty = 0;
		if (!__atomic_compare_exchange_n(&pools[i].pool, &empty, pool, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		pools[i].used_bytes = 0;
		pools[i].reserved_bytes = 0;
		pools[i].device = device;
		pools[i].kind = (uint8_t)kind;
		return;
	}
}

void cuf_pool_block_freed(const struct cuf_block *block, bool freed)
{
	struct known_pool *known = block->kind == CUF_KIND_ASYNC || block->kind == CUF_KIND_MANAGED ? pool_find(block->aux) : NULL;
	if (known)
		__atomic_fetch_add(&known->used_bytes, freed ? -(int64_t)block->bytes : (int64_t)block->bytes, __ATOMIC_RELAXED);
}

void cuf_pools_forget(void)
{
	for (unsigned i = 0; i < POOLS_KNOWN_MAX; i++)
		__atomic_store_n(&pools[i].pool, 0, __ATOMIC_RELEASE);
}

static uint64_t attribute_of(uint64_t pool, CUmemPool_attribute attribute)
{
	uint64_t value = 0;
	if (!cuf_query.cuMemPoolGetAttribute || cuf_query.cuMemPoolGetAttribute((CUmemoryPool)pool, attribute, &value) != CUDA_SUCCESS)
		return CUF_UNKNOWN;
	return value;
}

static struct cuf_pool_level level_of(uint64_t pool)
{
	return (struct cuf_pool_level){ pool, attribute_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
		attribute_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), attribute_of(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) };
}

unsigned cuf_pools_read(int device, struct cuf_pool_level *levels, unsigned max)
{
	unsigned count = 0;
	for (unsigned i = 0; i < POOLS_KNOWN_MAX; i++) {
		uint64_t pool = __atomic_load_n(&pools[i].pool, __ATOMIC_ACQUIRE);
		if (!pool || pools[i].device != device)
			continue;
		struct cuf_pool_level level = level_of(pool);
		if (level.reserved_bytes == CUF_UNKNOWN || (count == max && levels[max - 1].reserved_bytes >= level.reserved_bytes))
			continue;
		unsigned at = count < max ? count++ : max - 1; /* a new place, or that of the smallest */
		for (; at > 0 && levels[at - 1].reserved_bytes < level.reserved_bytes; at--)
			levels[at] = levels[at - 1];
		levels[at] = level;
	}
	return count;
}

/* The driver's figures as an event, when they changed since they were last asked. */
static void level_note(struct cuf_call *call, uint64_t pool)
{
	struct known_pool *known = pool_find(pool);
	struct cuf_pool_level level;
	if (!call->thread || !known)
		return;
	level = level_of(pool);
	if (level.reserved_bytes == CUF_UNKNOWN || level.reserved_bytes == __atomic_exchange_n(&known->reserved_bytes, level.reserved_bytes, __ATOMIC_RELAXED))
		return;
	struct cuf_request request = { .bytes = level.reserved_bytes, .aux = level.used_bytes, .kind = CUF_KIND_POOL,
		.device = known->device < 0 ? CUF_DEVICE_NONE : (uint8_t)known->device };
	cuf_event_note(call, CUF_OP_POOL_LEVEL, &request, pool, 0);
}

/* A pool object enters the ledger: created, imported, or (default pools) first met. */
static void pool_enter(struct cuf_call *call, uint64_t pool, int device, unsigned kind, unsigned flags)
{
	uint64_t threshold = attribute_of(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
	struct cuf_request request = { .bytes = threshold == CUF_UNKNOWN ? 0 : threshold, .kind = CUF_KIND_POOL,
		.device = device < 0 ? CUF_DEVICE_NONE : (uint8_t)device, .flags = (uint8_t)(flags | (device < 0 ? CUF_EVENT_HOST_LOCATION : 0)) };
	if (!call->thread || !pool || pool_find(pool))
		return;
	pool_remember(pool, device, kind);
	cuf_block_alloc(call, &request, pool);
}

/* ---- which pool, which device ---- */

/* The device of a stream: the current one unless the stream belongs to another context. */
static int stream_device(CUstream stream, bool per_thread, CUdeviceptr ptr)
{
	int current = cuf_device_current(), device = -1;
	CUcontext context = NULL;
	CUresult (*context_of)(CUstream, CUcontext *) = per_thread ? cuf_query.cuStreamGetCtx_ptsz : cuf_query.cuStreamGetCtx;
	enum { STREAM_SPECIAL_MAX = 2, POINTER_DEVICE_ORDINAL = 9 }; /* legacy and per-thread default streams are handles 1 and 2 */
	if ((uintptr_t)stream <= STREAM_SPECIAL_MAX || cuf_device_total_count() == 1 || !context_of)
		return current;
	if (context_of(stream, &context) != CUDA_SUCCESS || context == cuf_context_current())
		return current;
	if (ptr && cuf_query.cuPointerGetAttribute && cuf_query.cuPointerGetAttribute(&device, POINTER_DEVICE_ORDINAL, ptr) == CUDA_SUCCESS)
		return device;
	return current;
}

static uint64_t current_pool(int device)
{
	CUmemoryPool pool = NULL;
	if (device >= 0 && cuf_query.cuDeviceGetMemPool && cuf_query.cuDeviceGetMemPool(&pool, device) == CUDA_SUCCESS)
		return (uint64_t)(uintptr_t)pool;
	return 0;
}

struct async { size_t bytes; CUmemoryPool pool; CUstream stream; bool per_thread; };

static CUresult async_done(struct cuf_call *call, const struct async *a, CUresult result, const CUdeviceptr *out)
{
	int saved = errno, device;
	CUdeviceptr ptr = result == CUDA_SUCCESS && out ? *out : 0;
	struct known_pool *known;
	struct cuf_request request;
	if (!call->thread || (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY))
		return cuf_done(call, result);
	device = stream_device(a->stream, a->per_thread, ptr);
	request = cuf_request_here(call, CUF_KIND_ASYNC, a->bytes, 0);
	request.context = 0; /* survives its context */
	request.aux = a->pool ? (uint64_t)(uintptr_t)a->pool : current_pool(device);
	if ((known = pool_find(request.aux)))
		device = known->device;
	request.device = device < 0 ? CUF_DEVICE_NONE : (uint8_t)device;
	request.flags = known && known->device < 0 ? CUF_EVENT_HOST_LOCATION : 0;
	request.kind = known ? known->kind : CUF_KIND_ASYNC;
	if (ptr && cuf_stream_captures(a->stream, a->per_thread)) {
		cuf_node_added(call, &request, ptr);
		errno = saved;
		return cuf_done(call, result);
	}
	pool_enter(call, request.aux, device, CUF_KIND_ASYNC, 0);
	cuf_alloc_record(call, &request, result, ptr);
	if (ptr && (known = pool_find(request.aux)) &&
	    __atomic_add_fetch(&known->used_bytes, (int64_t)a->bytes, __ATOMIC_RELAXED) > (int64_t)__atomic_load_n(&known->reserved_bytes, __ATOMIC_RELAXED))
		level_note(call, request.aux);
	errno = saved;
	return cuf_done(call, result);
}

CUresult cuf_hook_cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream)
{
	CUF_CALL(cuMemAllocAsync);
	CUresult result = cuf_real.cuMemAllocAsync(out, bytes, stream);
	return async_done(&call, &(struct async){ bytes, NULL, stream, false }, result, out);
}

/* _ptsz: stream 0 means the thread's own default stream. */
CUresult cuf_hook_cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t bytes, CUstream stream)
{
	CUF_CALL(cuMemAllocAsync_ptsz);
	CUresult result = cuf_real.cuMemAllocAsync_ptsz(out, bytes, stream);
	return async_done(&call, &(struct async){ bytes, NULL, stream, true }, result, out);
}

CUresult cuf_hook_cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	CUF_CALL(cuMemAllocFromPoolAsync);
	CUresult result = cuf_real.cuMemAllocFromPoolAsync(out, bytes, pool, stream);
	return async_done(&call, &(struct async){ bytes, pool, stream, false }, result, out);
}

CUresult cuf_hook_cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	CUF_CALL(cuMemAllocFromPoolAsync_ptsz);
	CUresult result = cuf_real.cuMemAllocFromPoolAsync_ptsz(out, bytes, pool, stream);
	return async_done(&call, &(struct async){ bytes, pool, stream, true }, result, out);
}

/* A free is logical now; the bytes are back in the pool when the stream gets there. A captured one becomes a node and
 * frees nothing by itself. */
static bool async_free_begin(struct cuf_call *call, CUdeviceptr ptr, CUstream stream, bool per_thread, struct cuf_block *block)
{
	if (!call->thread || !ptr || cuf_stream_captures(stream, per_thread))
		return false;
	if (cuf_nodes_were_added() && !cuf_block_find(CUF_SPACE_DEVICE, ptr, block))
		return false;
	if (!cuf_free_begin(call, CUF_SPACE_DEVICE, ptr, block))
		return false;
	cuf_pool_block_freed(block, true);
	return true;
}

static CUresult async_free_done(struct cuf_call *call, const struct cuf_block *block, CUresult result)
{
	if (block && result != CUDA_SUCCESS)
		cuf_pool_block_freed(block, false);
	return cuf_free_done(call, block, result);
}

CUresult cuf_hook_cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	struct cuf_block block;
	CUF_CALL(cuMemFreeAsync);
	bool taken = async_free_begin(&call, ptr, stream, false, &block);
	CUresult result = cuf_real.cuMemFreeAsync(ptr, stream);
	return async_free_done(&call, taken ? &block : NULL, result);
}

CUresult cuf_hook_cuMemFreeAsync_ptsz(CUdeviceptr ptr, CUstream stream)
{
	struct cuf_block block;
	CUF_CALL(cuMemFreeAsync_ptsz);
	bool taken = async_free_begin(&call, ptr, stream, true, &block);
	CUresult result = cuf_real.cuMemFreeAsync_ptsz(ptr, stream);
	return async_free_done(&call, taken ? &block : NULL, result);
}

/* ---- pool objects ---- */

CUresult cuf_hook_cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
	CUF_CALL(cuMemPoolCreate);
	CUresult result = cuf_real.cuMemPoolCreate(out, props);
	int saved = errno;
	if (call.thread && result == CUDA_SUCCESS && out && props)
		pool_enter(&call, (uint64_t)(uintptr_t)*out, props->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? props->location.id : -1,
			   props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED ? CUF_KIND_MANAGED : CUF_KIND_ASYNC, 0);
	errno = saved;
	return cuf_done(&call, result);
}

/* The object goes at once, its storage with the last block in it. */
CUresult cuf_hook_cuMemPoolDestroy(CUmemoryPool pool)
{
	struct cuf_block block;
	CUF_CALL(cuMemPoolDestroy);
	bool taken = cuf_free_begin(&call, CUF_SPACE_POOL, (uint64_t)(uintptr_t)pool, &block);
	struct known_pool *known = pool_find((uint64_t)(uintptr_t)pool);
	if (known) /* before the call: its handle may be another's right after */
		__atomic_store_n(&known->pool, 0, __ATOMIC_RELEASE);
	CUresult result = cuf_real.cuMemPoolDestroy(pool);
	if (result != CUDA_SUCCESS && known)
		pool_remember((uint64_t)(uintptr_t)pool, known->device, known->kind);
	return cuf_free_done(&call, taken ? &block : NULL, result);
}

CUresult cuf_hook_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
	CUF_CALL(cuMemPoolTrimTo);
	CUresult result = cuf_real.cuMemPoolTrimTo(pool, keep_bytes);
	int saved = errno;
	if (result == CUDA_SUCCESS)
		level_note(&call, (uint64_t)(uintptr_t)pool);
	errno = saved;
	return cuf_done(&call, result);
}

/* The release threshold decides how much a pool may keep: it is the size of the pool's own entry. */
CUresult cuf_hook_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	struct cuf_block block;
	uint64_t handle = (uint64_t)(uintptr_t)pool;
	CUF_CALL(cuMemPoolSetAttribute);
	CUresult result = cuf_real.cuMemPoolSetAttribute(pool, attribute, value);
	int saved = errno;
	if (call.thread && result == CUDA_SUCCESS && attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD && value) {
		if (!pool_find(handle))
			pool_enter(&call, handle, cuf_device_current(), CUF_KIND_ASYNC, 0);
		else if (cuf_block_find(CUF_SPACE_POOL, handle, &block) && block.bytes != *(const uint64_t *)value && cuf_block_free(&call, CUF_SPACE_POOL, handle, &block)) {
			struct cuf_request request = { .bytes = *(const uint64_t *)value, .kind = CUF_KIND_POOL, .device = block.device, .flags = block.flags };
			cuf_block_alloc(&call, &request, handle);
		}
	}
	errno = saved;
	return cuf_done(&call, result);
}

/* From now on cuMemAllocAsync draws from this pool: it is asked at each allocation, here the pool only becomes known. */
CUresult cuf_hook_cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	CUF_CALL(cuDeviceSetMemPool);
	CUresult result = cuf_real.cuDeviceSetMemPool(device, pool);
	int saved = errno;
	if (result == CUDA_SUCCESS)
		pool_enter(&call, (uint64_t)(uintptr_t)pool, device, CUF_KIND_ASYNC, 0);
	errno = saved;
	return cuf_done(&call, result);
}

CUresult cuf_hook_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	CUF_CALL(cuMemSetMemPool);
	CUresult result = cuf_real.cuMemSetMemPool(location, type, pool);
	int saved = errno;
	if (result == CUDA_SUCCESS && location)
		pool_enter(&call, (uint64_t)(uintptr_t)pool, location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : -1,
			   type == CU_MEM_ALLOCATION_TYPE_MANAGED ? CUF_KIND_MANAGED : CUF_KIND_ASYNC, 0);
	errno = saved;
	return cuf_done(&call, result);
}

/* ---- pools shared between processes ---- */

CUresult cuf_hook_cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *handle, CUmemAllocationHandleType type, unsigned long long flags)
{
	CUF_CALL(cuMemPoolImportFromShareableHandle);
	CUresult result = cuf_real.cuMemPoolImportFromShareableHandle(out, handle, type, flags);
	int saved = errno;
	if (call.thread && result == CUDA_SUCCESS && out)
		pool_enter(&call, (uint64_t)(uintptr_t)*out, cuf_device_current(), CUF_KIND_ASYNC, CUF_EVENT_EXPORTED);
	errno = saved;
	return cuf_done(&call, result);
}

CUresult cuf_hook_cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool, CUmemAllocationHandleType type, unsigned long long flags)
{
	CUF_CALL(cuMemPoolExportToShareableHandle);
	CUresult result = cuf_real.cuMemPoolExportToShareableHandle(handle, pool, type, flags);
	if (call.thread && result == CUDA_SUCCESS)
		cuf_block_flag(CUF_SPACE_POOL, (uint64_t)(uintptr_t)pool, CUF_EVENT_EXPORTED);
	return cuf_done(&call, result);
}

/* Bytes of the exporting process, mapped here; freed like any other asynchronous block. */
CUresult cuf_hook_cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	CUdeviceptr base;
	size_t bytes = 0;
	CUF_CALL(cuMemPoolImportPointer);
	CUresult result = cuf_real.cuMemPoolImportPointer(out, pool, data);
	int saved = errno;
	bool sized = call.thread && result == CUDA_SUCCESS && out && cuf_range_of(*out, &base, &bytes);
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_IMPORTED, bytes, sized ? 0 : CUF_EVENT_ESTIMATED);
	request.context = 0;
	request.aux = (uint64_t)(uintptr_t)pool;
	errno = saved;
	return cuf_alloc_done(&call, &request, result, result == CUDA_SUCCESS && out ? *out : 0);
}

CUresult cuf_hook_cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr ptr)
{
	CUF_CALL(cuMemPoolExportPointer);
	CUresult result = cuf_real.cuMemPoolExportPointer(data, ptr);
	if (call.thread && result == CUDA_SUCCESS)
		cuf_block_flag(CUF_SPACE_DEVICE, ptr, CUF_EVENT_EXPORTED);
	return cuf_done(&call, result);
}
