/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered memory. A pool reserves whole pages and packs blocks at 512 bytes, first fit by
 * address. It releases unused pages at a synchronize above its release threshold, at a trim, or
 * with its last block once destroyed. A freed block can be reused immediately, whatever the stream:
 * streams never run late here.
 */
#include "tests/sim/driver.h"

static struct object *defaults[DEVICES_MAX], *current[DEVICES_MAX], *host_default;

static struct object *pool_of(CUmemoryPool handle)
{
	struct object *pool = object_find(KIND_POOL, (uint64_t)(uintptr_t)handle);
	return pool && !pool->pool.destroyed ? pool : NULL;
}

static CUmemoryPool handle_of(const struct object *pool) { return (CUmemoryPool)(uintptr_t)pool->addr; }

static struct object *pool_new(int device, bool on_host)
{
	struct object *pool = object_new(KIND_POOL, 0);
	pool->device = device;
	pool->pool.on_host = on_host;
	pool->pool.reuse[1] = pool->pool.reuse[2] = pool->pool.reuse[3] = 1;
	return pool;
}

static struct object *pool_default(CUdevice device)
{
	if (!defaults[device])
		defaults[device] = pool_new(device, false);
	return defaults[device];
}

struct object *pool_current(CUdevice device)
{
	return current[device] ? current[device] : pool_default(device);
}

static bool pages_map(struct object *pool, uint64_t bytes, uint64_t *addr)
{
	*addr = pool->pool.on_host ? (uint64_t)(uintptr_t)host_take(bytes) : address_take(bytes, settings.granularity_bytes);
	if (*addr && !pool->pool.on_host && !device_take(pool->device, bytes)) {
		address_give(*addr, bytes);
		*addr = 0;
	}
	return *addr != 0;
}

static void pages_unmap(struct object *pool, uint64_t addr, uint64_t bytes)
{
	range_take_at(&pool->pool.unused, addr, bytes);
	pool->pool.reserved -= bytes;
	if (pool->pool.on_host) {
		host_give(addr, bytes);
		return;
	}
	address_give(addr, bytes);
	device_give(pool->device, bytes);
}

static bool grow(struct object *pool, uint64_t bytes)
{
	uint64_t addr, whole = round_up(bytes, settings.granularity_bytes);
	struct pool *p = &pool->pool;
	if (p->max_bytes && p->reserved + whole > p->max_bytes)
		return false;
	if (!pages_map(pool, whole, &addr))
		return false;
	range_give(&p->unused, addr, whole);
	p->reserved += whole;
	if (p->reserved > p->reserved_high)
		p->reserved_high = p->reserved;
	return true;
}

/* Releases whole unused pages, highest first, until at most keep bytes stay reserved. */
static void trim(struct object *pool, uint64_t keep)
{
	const uint64_t unit = pool->pool.on_host ? 4096 : settings.granularity_bytes;
	while (pool->pool.reserved > keep) {
		uint64_t start = 0, bytes = 0;
		for (struct range *r = pool->pool.unused; r; r = r->next) {
			uint64_t first = round_up(r->start, unit), end = (r->start + r->bytes) / unit * unit;
			if (first < end) {
				start = first;
				bytes = end - first;
			}
		}
		uint64_t excess = (pool->pool.reserved - keep) / unit * unit;
		if (!bytes || !excess)
			return;
		if (bytes > excess) {
			start += bytes - excess;
			bytes = excess;
		}
		pages_unmap(pool, start, bytes);
	}
}

static void retire(struct object *pool)
{
	if (!pool->pool.destroyed || pool->pool.blocks)
		return;
	trim(pool, 0);
	object_delete(pool);
}

void pools_settle(int device)
{
	for (struct object *pool = object_next(NULL, false); pool; pool = object_next(pool, false))
		if (pool->kind == KIND_POOL && pool->device == device)
			trim(pool, pool->pool.threshold);
}

CUresult pool_alloc(CUdeviceptr *out, uint64_t bytes, struct object *pool, CUstream stream)
{
	if (!out || !bytes || !pool || pool->pool.imported)
		return CUDA_ERROR_INVALID_VALUE;
	struct object *capturing = capture_of(stream);
	if (capturing) {
		CUmemPoolProps props = {CU_MEM_ALLOCATION_TYPE_PINNED, 0, {CU_MEM_LOCATION_TYPE_DEVICE, pool->device}, NULL, 0, 0, {0}};
		return capture_alloc(capturing, out, bytes, &props);
	}
	uint64_t rounded = round_up(bytes, SLOT_BYTES), addr;
	if (rounded < bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	addr = range_take(&pool->pool.unused, rounded, SLOT_BYTES);
	if (!addr && grow(pool, rounded))
		addr = range_take(&pool->pool.unused, rounded, SLOT_BYTES);
	if (!addr)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct object *block = object_new(KIND_ASYNC, addr);
	block->bytes = rounded;
	block->requested = bytes;
	block->device = pool->device;
	block->owner = pool;
	pool->pool.blocks++;
	pool->pool.used += rounded;
	if (pool->pool.used > pool->pool.used_high)
		pool->pool.used_high = pool->pool.used;
	*out = addr;
	return 0;
}

void pool_block_free(struct object *block)
{
	struct object *pool = block->owner;
	range_give(&pool->pool.unused, block->addr, block->bytes);
	pool->pool.used -= block->bytes;
	pool->pool.blocks--;
	object_delete(block);
	retire(pool);
}

static CUresult alloc_async(CUdeviceptr *out, size_t bytes, CUstream stream)
{
	struct object *context;
	CUresult result = context_current(&context);
	return result ? result : pool_alloc(out, bytes, pool_current(context->device), stream);
}

static CUresult free_async(CUdeviceptr ptr, CUstream stream)
{
	struct object *capturing = capture_of(stream);
	if (capturing)
		return capture_free(capturing, ptr);
	static const enum kind freed[] = {KIND_ASYNC, KIND_NODE_MEMORY, KIND_LINEAR, KIND_IMPORTED};
	for (unsigned i = 0; i < sizeof freed / sizeof *freed; i++) {
		struct object *block = object_find(freed[i], ptr);
		if (block) {
			memory_free(block);
			return 0;
		}
	}
	return ptr ? CUDA_ERROR_INVALID_VALUE : 0;
}

static CUresult pool_create(CUmemoryPool *out, const CUmemPoolProps *props)
{
	bool on_host = props && props->location.type >= CU_MEM_LOCATION_TYPE_HOST;
	if (!out || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (!on_host && !device_valid(props->location.id))
		return CUDA_ERROR_INVALID_VALUE;
	struct object *pool = pool_new(on_host ? -1 : props->location.id, on_host);
	pool->pool.max_bytes = props->maxSize;
	*out = handle_of(pool);
	return 0;
}

static CUresult pool_destroy(CUmemoryPool handle)
{
	struct object *pool = pool_of(handle);
	if (!pool || pool == host_default)
		return CUDA_ERROR_INVALID_VALUE;
	for (int device = 0; device < DEVICES_MAX; device++) {
		if (pool == defaults[device])
			return CUDA_ERROR_INVALID_VALUE;
		if (pool == current[device])
			current[device] = NULL;
	}
	pool->pool.destroyed = true;
	retire(pool);
	return 0;
}

static CUresult pool_set(CUmemoryPool handle, CUmemPool_attribute attribute, const void *value)
{
	struct object *object = pool_of(handle);
	struct pool *pool = object ? &object->pool : NULL;
	if (!pool || !value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case 1: case 2: case 3:
		pool->reuse[attribute] = (uint64_t)*(const int *)value;
		return 0;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold = *(const uint64_t *)value;
		return 0;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		pool->reserved_high = pool->reserved;
		return *(const uint64_t *)value ? CUDA_ERROR_INVALID_VALUE : 0;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		pool->used_high = pool->used;
		return *(const uint64_t *)value ? CUDA_ERROR_INVALID_VALUE : 0;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult pool_get(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
	struct object *object = pool_of(handle);
	if (!object || !value)
		return CUDA_ERROR_INVALID_VALUE;
	const struct pool *pool = &object->pool;
	const uint64_t values[] = {0, pool->reuse[1], pool->reuse[2], pool->reuse[3], pool->threshold, pool->reserved,
	                           pool->reserved_high, pool->used, pool->used_high};
	if (attribute < 1 || attribute > CU_MEMPOOL_ATTR_USED_MEM_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute <= 3)
		*(int *)value = (int)values[attribute];
	else
		*(uint64_t *)value = values[attribute];
	return 0;
}

static CUresult pool_trim(CUmemoryPool handle, size_t keep)
{
	struct object *pool = pool_of(handle);
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	trim(pool, keep);
	return 0;
}

static CUresult device_pool(CUmemoryPool *out, CUdevice device, bool by_default)
{
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = handle_of(by_default ? pool_default(device) : pool_current(device));
	return 0;
}

static CUresult device_pool_set(CUdevice device, CUmemoryPool handle)
{
	struct object *pool = pool_of(handle);
	if (!device_valid(device) || !pool || pool->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	current[device] = pool;
	return 0;
}

static CUresult location_pool(CUmemoryPool *out, const CUmemLocation *location, CUmemAllocationType type, bool by_default)
{
	if (type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
		return device_pool(out, location->id, by_default);
	if (!host_default)
		host_default = pool_new(-1, true);
	*out = handle_of(host_default);
	return 0;
}

#define ALLOC_ASYNC(suffix) \
	CUresult cuMemAllocAsync##suffix(CUdeviceptr *out, size_t bytes, CUstream stream) \
		CALL("cuMemAllocAsync", CALL_PLAIN, alloc_async(out, bytes, stream)) \
	CUresult cuMemAllocFromPoolAsync##suffix(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream) \
		CALL("cuMemAllocFromPoolAsync", CALL_PLAIN, pool_alloc(out, bytes, pool_of(pool), stream)) \
	CUresult cuMemFreeAsync##suffix(CUdeviceptr ptr, CUstream stream) CALL("cuMemFreeAsync", CALL_PLAIN, free_async(ptr, stream))
ALLOC_ASYNC()
ALLOC_ASYNC(_ptsz)

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props) CALL("cuMemPoolCreate", CALL_PLAIN, pool_create(out, props))
CUresult cuMemPoolDestroy(CUmemoryPool pool) CALL("cuMemPoolDestroy", CALL_PLAIN, pool_destroy(pool))
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) CALL("cuMemPoolTrimTo", CALL_PLAIN, pool_trim(pool, keep))
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
	CALL("cuMemPoolSetAttribute", CALL_PLAIN, pool_set(pool, attribute, value))
EXPORT(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value))
	CALL("cuMemPoolGetAttribute", CALL_PLAIN, pool_get(pool, attribute, value))
EXPORT(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *map, size_t count))
	CALL("cuMemPoolSetAccess", CALL_PLAIN, pool_of(pool) ? 0 : CUDA_ERROR_INVALID_VALUE)
EXPORT(cuDeviceGetDefaultMemPool, (CUmemoryPool *out, CUdevice device))
	CALL("cuDeviceGetDefaultMemPool", CALL_PLAIN, device_pool(out, device, true))
EXPORT(cuDeviceGetMemPool, (CUmemoryPool *out, CUdevice device)) CALL("cuDeviceGetMemPool", CALL_PLAIN, device_pool(out, device, false))
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) CALL("cuDeviceSetMemPool", CALL_PLAIN, device_pool_set(device, pool))
EXPORT(cuMemGetMemPool, (CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type))
	CALL("cuMemGetMemPool", CALL_PLAIN, location_pool(out, location, type, false))
EXPORT(cuMemGetDefaultMemPool, (CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type))
	CALL("cuMemGetDefaultMemPool", CALL_PLAIN, location_pool(out, location, type, true))
CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
	CALL("cuMemSetMemPool", CALL_PLAIN, location->type == CU_MEM_LOCATION_TYPE_DEVICE ? device_pool_set(location->id, pool) : CUDA_ERROR_NOT_SUPPORTED)
