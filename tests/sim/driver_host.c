/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned and registered host memory, and pointer attributes. The memory is real; no limit on locked
 * pages is modelled.
 */
#include <string.h>

#include "tests/sim/driver.h"

enum { HOST_PAGE = 4096 };

static CUresult pinned_alloc(void **out, size_t bytes, unsigned flags)
{
	struct object *context;
	CUresult result = out && bytes ? context_current(&context) : CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	void *p = host_take(round_up(bytes, HOST_PAGE));
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct object *block = object_new(KIND_PINNED, (uint64_t)(uintptr_t)p);
	block->bytes = round_up(bytes, HOST_PAGE);
	block->requested = bytes;
	block->device = context->device;
	block->context = context;
	block->flags = flags;
	*out = p;
	return 0;
}

static CUresult pinned_free(const void *ptr)
{
	struct object *block = object_find(KIND_PINNED, (uint64_t)(uintptr_t)ptr);
	if (!block)
		return ptr ? CUDA_ERROR_INVALID_VALUE : 0;
	memory_free(block);
	return 0;
}

static CUresult host_register(void *ptr, size_t bytes, unsigned flags)
{
	struct object *context;
	CUresult result = ptr && bytes ? context_current(&context) : CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	if (object_at((uint64_t)(uintptr_t)ptr) || object_at((uint64_t)(uintptr_t)ptr + bytes - 1))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	struct object *block = object_new(KIND_REGISTERED, (uint64_t)(uintptr_t)ptr);
	block->bytes = block->requested = bytes;
	block->device = context->device;
	block->context = context;
	block->flags = flags;
	return 0;
}

static CUresult host_unregister(const void *ptr)
{
	struct object *block = object_find(KIND_REGISTERED, (uint64_t)(uintptr_t)ptr);
	if (!block)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	memory_free(block);
	return 0;
}

static CUresult device_pointer(CUdeviceptr *out, const void *ptr)
{
	struct object *block = object_at((uint64_t)(uintptr_t)ptr);
	if (!block || (block->kind != KIND_PINNED && block->kind != KIND_REGISTERED))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUdeviceptr)(uintptr_t)ptr;
	return 0;
}

static CUresult address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
	struct object *block = object_at(ptr);
	if (!block)
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = block->addr;
	if (bytes)
		*bytes = block->requested;
	return 0;
}

/* What the block lies in: its own pages, shared page, or physical handle. */
static void mapping_of(const struct object *block, uint64_t *start, uint64_t *bytes, uint64_t *id)
{
	*start = block->addr;
	*bytes = block->bytes;
	*id = block->kind == KIND_MAPPING ? block->owner->id : block->id;
	if (block->kind != KIND_LINEAR)
		return;
	*start = block->addr / PAGE_BYTES * PAGE_BYTES;
	*bytes = round_up(block->addr + block->bytes, PAGE_BYTES) - *start;
	if (block->bytes <= SMALL_BYTES)
		*id = block->place.page->addr / PAGE_BYTES;
}

static bool on_host(const struct object *block)
{
	return block->kind == KIND_PINNED || block->kind == KIND_REGISTERED || block->device < 0;
}

static uint64_t attribute_value(const struct object *block, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	uint64_t start, bytes, id;
	mapping_of(block, &start, &bytes, &id);
	switch (attribute) {
	case 1: return block->context ? block->context->addr : 0;
	case 2: return on_host(block) ? 1 : 2; /* CU_MEMORYTYPE_HOST, _DEVICE */
	case 3: return ptr;
	case 4: return on_host(block) || block->kind == KIND_MANAGED ? ptr : 0;
	case 7: return block->id;
	case 8: return block->kind == KIND_MANAGED;
	case 9: return (uint32_t)block->device;
	case 10: return block->kind == KIND_LINEAR;
	case 11: return block->addr;
	case 12: return block->requested;
	case 13: return 1;
	case 14: return block->kind == KIND_MAPPING ? (uint64_t)block->owner->vmm.prop.requestedHandleTypes : 0;
	case 16: return 3; /* read and write */
	case 17: return block->kind == KIND_ASYNC ? block->owner->addr : 0;
	case 18: return bytes;
	case 19: return start;
	case 20: return id;
	default: return 0;
	}
}

/* bytes of each attribute's value; 0: not known to the driver */
static const unsigned char attribute_bytes[] = {0, 8, 4, 8, 8, 16, 4, 8, 4, 4, 4, 8, 8, 4, 8, 4, 4, 8, 8, 8, 8, 4};

static CUresult attributes(unsigned count, const CUpointer_attribute *asked, void **data, CUdeviceptr ptr, bool strict)
{
	struct object *block = object_at(ptr);
	for (unsigned i = 0; i < count; i++) {
		unsigned bytes = asked[i] > 0 && asked[i] < (int)sizeof attribute_bytes ? attribute_bytes[asked[i]] : 0;
		if (!bytes || !data[i] || (strict && !block))
			return CUDA_ERROR_INVALID_VALUE;
		uint64_t value[2] = { 0, 0 };
		if (block)
			value[0] = attribute_value(block, asked[i], ptr);
		else if (asked[i] == 9)
			value[0] = UINT32_MAX - 1;
		memcpy(data[i], value, bytes);
	}
	return 0;
}

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned int flags) CALL("cuMemHostAlloc", CALL_UNSAFE, pinned_alloc(out, bytes, flags))
CUresult cuMemAllocHost_v2(void **out, size_t bytes) CALL("cuMemAllocHost", CALL_UNSAFE, pinned_alloc(out, bytes, 0))
CUresult cuMemAllocHost(void **out, unsigned int bytes) CALL("cuMemAllocHost", CALL_UNSAFE, pinned_alloc(out, bytes, 0))
CUresult cuMemFreeHost(void *ptr) CALL("cuMemFreeHost", CALL_UNSAFE, pinned_free(ptr))
CUresult cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned int flags)
	CALL("cuMemHostRegister", CALL_UNSAFE, host_register(ptr, bytes, flags))
CUresult cuMemHostRegister(void *ptr, size_t bytes, unsigned int flags) CALL("cuMemHostRegister", CALL_UNSAFE, host_register(ptr, bytes, flags))
CUresult cuMemHostUnregister(void *ptr) CALL("cuMemHostUnregister", CALL_UNSAFE, host_unregister(ptr))
EXPORT(cuMemHostGetDevicePointer_v2, (CUdeviceptr *out, void *ptr, unsigned int flags))
	CALL("cuMemHostGetDevicePointer", CALL_PLAIN, device_pointer(out, ptr))
EXPORT(cuMemGetAddressRange_v2, (CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr))
	CALL("cuMemGetAddressRange", CALL_PLAIN, address_range(base, bytes, ptr))
EXPORT(cuPointerGetAttribute, (void *data, CUpointer_attribute attribute, CUdeviceptr ptr))
	CALL("cuPointerGetAttribute", CALL_PLAIN, attributes(1, &attribute, &data, ptr, true))
EXPORT(cuPointerGetAttributes, (unsigned int count, CUpointer_attribute *asked, void **data, CUdeviceptr ptr))
	CALL("cuPointerGetAttributes", CALL_PLAIN, attributes(count, asked, data, ptr, false))
EXPORT(cuPointerSetAttribute, (const void *value, CUpointer_attribute attribute, CUdeviceptr ptr))
	CALL("cuPointerSetAttribute", CALL_PLAIN, object_at(ptr) ? 0 : CUDA_ERROR_INVALID_VALUE)
