/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management. Physical memory is a handle with two counts, references held and mappings; it dies when
 * both are zero. So a release right after the map, as llama.cpp does, is no free, and a reservation is never memory.
 */
#include "interpose/hooks/cuda/cuda.h"

/* ---- physical memory ---- */

CUresult cuf_hook_cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUF_CALL(cuMemCreate);
	CUresult result = cuf_real.cuMemCreate(out, bytes, prop, flags);
	/* the device is the one asked for: there may be no current context at all */
	struct cuf_request request = cuf_request_at(&call, CUF_KIND_VMM, bytes, prop ? prop->location.type : CU_MEM_LOCATION_TYPE_DEVICE,
						    prop ? prop->location.id : -1);
	return cuf_alloc_done(&call, &request, result, result == CUDA_SUCCESS && out ? *out : 0);
}

/* Imported handles are another process's bytes, and live in another space of the ledger. */
static unsigned handle_space(CUmemGenericAllocationHandle handle)
{
	struct cuf_block block;
	if (cuf_block_find(CUF_SPACE_HANDLE, handle, &block) || !cuf_block_find(CUF_SPACE_DEVICE, handle, &block))
		return CUF_SPACE_HANDLE;
	return block.kind == CUF_KIND_IMPORTED ? CUF_SPACE_DEVICE : CUF_SPACE_HANDLE;
}

static void handle_gain(struct cuf_call *call, CUmemGenericAllocationHandle handle, int references, int maps)
{
	struct cuf_block ignored;
	if (call->thread)
		cuf_block_add_refs(call, handle_space(handle), handle, references, maps, &ignored);
}

/* A handle that the ledger does not know is no unknown free: multicast objects are released here too. */
CUresult cuf_hook_cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct cuf_release release;
	CUF_CALL(cuMemRelease);
	cuf_release_begin(&call, &release, handle_space(handle), handle, 1, 0);
	CUresult result = cuf_real.cuMemRelease(handle);
	if (result != CUDA_SUCCESS)
		cuf_release_undo(&call, &release);
	return cuf_done(&call, result);
}

CUresult cuf_hook_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *addr)
{
	CUF_CALL(cuMemRetainAllocationHandle);
	CUresult result = cuf_real.cuMemRetainAllocationHandle(out, addr);
	if (result == CUDA_SUCCESS && out)
		handle_gain(&call, *out, 1, 0);
	return cuf_done(&call, result);
}

CUresult cuf_hook_cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, unsigned long long flags)
{
	CUF_CALL(cuMemExportToShareableHandle);
	CUresult result = cuf_real.cuMemExportToShareableHandle(shareable, handle, type, flags);
	if (call.thread && result == CUDA_SUCCESS)
		cuf_block_flag(handle_space(handle), handle, CUF_EVENT_EXPORTED);
	return cuf_done(&call, result);
}

/* The driver does not tell an imported handle's size: it is learnt when the handle is mapped. */
CUresult cuf_hook_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *shareable, CUmemAllocationHandleType type)
{
	CUF_CALL(cuMemImportFromShareableHandle);
	CUresult result = cuf_real.cuMemImportFromShareableHandle(out, shareable, type);
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_IMPORTED, 0, CUF_EVENT_ESTIMATED);
	request.context = 0;
	return cuf_alloc_done(&call, &request, result, result == CUDA_SUCCESS && out ? *out : 0);
}

/* ---- addresses ---- */

CUresult cuf_hook_cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	CUF_CALL(cuMemAddressReserve);
	CUresult result = cuf_real.cuMemAddressReserve(out, bytes, alignment, addr, flags);
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_RESERVATION, bytes, 0);
	request.context = 0;
	return cuf_alloc_done(&call, &request, result, result == CUDA_SUCCESS && out ? *out : 0);
}

CUresult cuf_hook_cuMemAddressFree(CUdeviceptr ptr, size_t bytes)
{
	struct cuf_block block;
	CUF_CALL(cuMemAddressFree);
	bool taken = cuf_free_begin(&call, CUF_SPACE_RESERVATION, ptr, &block);
	CUresult result = cuf_real.cuMemAddressFree(ptr, bytes);
	return cuf_free_done(&call, taken ? &block : NULL, result);
}

/* ---- mappings ---- */

/* An imported handle shows its size at its first mapping: its entry is written anew, with the counts it had. */
static void imported_learns_size(struct cuf_call *call, CUmemGenericAllocationHandle handle, uint64_t bytes)
{
	struct cuf_block block, ignored;
	if (!cuf_block_find(CUF_SPACE_DEVICE, handle, &block) || block.kind != CUF_KIND_IMPORTED || block.bytes ||
	    !cuf_block_free(call, CUF_SPACE_DEVICE, handle, &block))
		return;
	struct cuf_request request = { .bytes = bytes, .kind = CUF_KIND_IMPORTED, .device = block.device };
	cuf_block_alloc(call, &request, handle);
	cuf_block_add_refs(call, CUF_SPACE_DEVICE, handle, block.references - 1, block.maps, &ignored);
}

CUresult cuf_hook_cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct cuf_block physical;
	CUF_CALL(cuMemMap);
	CUresult result = cuf_real.cuMemMap(ptr, bytes, offset, handle, flags);
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_MAPPING, bytes, 0);
	request.context = 0;
	request.aux = handle;
	if (call.thread && cuf_block_find(handle_space(handle), handle, &physical)) {
		request.device = physical.device;
		request.flags = physical.flags & CUF_EVENT_HOST_LOCATION;
	}
	cuf_alloc_record(&call, &request, result, ptr);
	if (result == CUDA_SUCCESS && call.thread) {
		if (handle_space(handle) == CUF_SPACE_DEVICE)
			imported_learns_size(&call, handle, bytes);
		handle_gain(&call, handle, 0, 1);
	}
	return cuf_done(&call, result);
}

/* What an unmap took apart, kept until the driver has agreed. One call may cover many mappings, whole ones alone. */
#define UNMAP_KEPT 32u
struct unmapping {
	CUdeviceptr next, end;
	unsigned count;
	struct { struct cuf_block mapping; struct cuf_release physical; } kept[UNMAP_KEPT];
};

/* Takes the mapping at u->next apart; false: there is none that we know. */
static bool unmap_one(struct cuf_call *call, CUdeviceptr at, struct cuf_block *mapping, struct cuf_release *physical)
{
	if (!cuf_block_find(CUF_SPACE_MAPPING, at, mapping) || !cuf_block_free(call, CUF_SPACE_MAPPING, at, mapping))
		return false;
	cuf_release_begin(call, physical, handle_space(mapping->aux), mapping->aux, 0, 1);
	return true;
}

static void unmap_before(struct cuf_call *call, struct unmapping *u)
{
	while (call->thread && u->next < u->end && u->count < UNMAP_KEPT) {
		if (!unmap_one(call, u->next, &u->kept[u->count].mapping, &u->kept[u->count].physical))
			return;
		u->next += u->kept[u->count++].mapping.bytes;
	}
}

/* Refused: all back, in reverse. Agreed: the rest, had there been more than could be kept. */
static void unmap_after(struct cuf_call *call, struct unmapping *u, CUresult result)
{
	struct cuf_block mapping;
	struct cuf_release physical;
	if (result == CUDA_SUCCESS) {
		while (call->thread && u->count == UNMAP_KEPT && u->next < u->end && unmap_one(call, u->next, &mapping, &physical))
			u->next += mapping.bytes;
		return;
	}
	while (u->count) {
		u->count--;
		cuf_block_restore(call, &u->kept[u->count].mapping);
		cuf_release_undo(call, &u->kept[u->count].physical);
	}
}

CUresult cuf_hook_cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
	struct unmapping u;
	CUF_CALL(cuMemUnmap);
	u.next = ptr;
	u.end = ptr + bytes;
	u.count = 0;
	unmap_before(&call, &u);
	CUresult result = cuf_real.cuMemUnmap(ptr, bytes);
	unmap_after(&call, &u, result);
	return cuf_done(&call, result);
}

/* ---- multicast: no bytes of its own, but what is bound stays alive ---- */

/* Who is bound where, because cuMulticastUnbind names the place alone. A binding that finds no room is not counted, so
 * that it is not missed later either. */
#define BINDINGS_MAX 256u
static struct binding { CUmemGenericAllocationHandle multicast, physical; size_t offset; int state; } bindings[BINDINGS_MAX];
enum { BINDING_FREE, BINDING_BUSY, BINDING_HELD };

static bool binding_add(CUmemGenericAllocationHandle multicast, size_t offset, CUmemGenericAllocationHandle physical)
{
	for (unsigned i = 0; i < BINDINGS_MAX; i++) {
		int expected = BINDING_FREE;
		if (!__atomic_compare_exchange_n(&bindings[i].state, &expected, BINDING_BUSY, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		bindings[i].multicast = multicast;
		bindings[i].offset = offset;
		bindings[i].physical = physical;
		__atomic_store_n(&bindings[i].state, BINDING_HELD, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

static CUmemGenericAllocationHandle binding_take(CUmemGenericAllocationHandle multicast, size_t offset)
{
	for (unsigned i = 0; i < BINDINGS_MAX; i++) {
		int expected = BINDING_HELD;
		if (__atomic_load_n(&bindings[i].state, __ATOMIC_ACQUIRE) != BINDING_HELD || bindings[i].multicast != multicast ||
		    bindings[i].offset != offset ||
		    !__atomic_compare_exchange_n(&bindings[i].state, &expected, BINDING_BUSY, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		CUmemGenericAllocationHandle physical = bindings[i].physical;
		__atomic_store_n(&bindings[i].state, BINDING_FREE, __ATOMIC_RELEASE);
		return physical;
	}
	return 0;
}

CUresult cuf_hook_cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t multicast_offset, CUmemGenericAllocationHandle handle, size_t offset,
				     size_t bytes, unsigned long long flags)
{
	CUF_CALL(cuMulticastBindMem);
	CUresult result = cuf_real.cuMulticastBindMem(multicast, multicast_offset, handle, offset, bytes, flags);
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_MAPPING, bytes, 0);
	if (result == CUDA_SUCCESS && call.thread && binding_add(multicast, multicast_offset, handle))
		handle_gain(&call, handle, 0, 1);
	return cuf_alloc_done(&call, &request, result, 0);
}

CUresult cuf_hook_cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t multicast_offset, CUdeviceptr ptr, size_t bytes, unsigned long long flags)
{
	struct cuf_block mapping;
	CUF_CALL(cuMulticastBindAddr);
	CUresult result = cuf_real.cuMulticastBindAddr(multicast, multicast_offset, ptr, bytes, flags);
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_MAPPING, bytes, 0);
	if (result == CUDA_SUCCESS && call.thread && cuf_block_find(CUF_SPACE_MAPPING, ptr, &mapping) &&
	    binding_add(multicast, multicast_offset, mapping.aux))
		handle_gain(&call, mapping.aux, 0, 1);
	return cuf_alloc_done(&call, &request, result, 0);
}

CUresult cuf_hook_cuMulticastUnbind(CUmemGenericAllocationHandle multicast, CUdevice device, size_t multicast_offset, size_t bytes)
{
	struct cuf_release release;
	CUF_CALL(cuMulticastUnbind);
	CUmemGenericAllocationHandle physical = call.thread ? binding_take(multicast, multicast_offset) : 0;
	cuf_release_begin(&call, &release, handle_space(physical), physical, 0, 1);
	CUresult result = cuf_real.cuMulticastUnbind(multicast, device, multicast_offset, bytes);
	if (result != CUDA_SUCCESS && physical) {
		binding_add(multicast, multicast_offset, physical);
		cuf_release_undo(&call, &release);
	}
	return cuf_done(&call, result);
}
