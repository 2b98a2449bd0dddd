/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management. Physical memory is a handle with two counts: references and mappings.
 * It is freed when both are zero. So a release right after the map, as llama.cpp does it, is no
 * free, and a reservation of addresses is never memory.
 *
 * Entries of this file: VMM for physical memory (address = handle), MAPPING for a mapped range (aux
 * = handle), RESERVATION for addresses. Only VMM counts as device memory.
 *
 * Since CUDA 10.2. The runtime has no functions for it. PyTorch's expandable segments and NCCL look
 * these up through cudaGetDriverEntryPoint; llama.cpp links libcuda. A mapping can be unmapped only
 * as a whole. Physical memory may be located on the host.
 */
#include "interpose/hooks/cuda/cuda.h"

/* ---- physical memory ---- */

/* One reference, no mapping. Physical memory belongs to no context. */
CUresult cuf_hook_cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes,
			      const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUmemLocation location = { CU_MEM_LOCATION_TYPE_DEVICE, -1 };
	CUF_CALL(cuMemCreate);
	CUresult result = cuf_real.cuMemCreate(out, bytes, prop, flags);
	if (prop) /* the device is the requested one: there may be no current context */
		location = prop->location;
	struct cuf_request request =
		cuf_request_at(&call, CUF_KIND_VMM, bytes, location.type, location.id);
	return cuf_alloc_done(&call, &request, result, cuf_output(result, out));
}

/* Imported handles are another process's bytes. They are in another space of the ledger. */
static unsigned handle_space(CUmemGenericAllocationHandle handle)
{
	struct cuf_block block;
	if (cuf_block_find(CUF_SPACE_HANDLE, handle, 0, &block) ||
	    !cuf_block_find(CUF_SPACE_DEVICE, handle, 0, &block))
		return CUF_SPACE_HANDLE;
	if (block.kind == CUF_KIND_IMPORTED)
		return CUF_SPACE_DEVICE;
	return CUF_SPACE_HANDLE;
}

/* For calls that succeeded. Calls that give something up use cuf_release_begin. */
static void add_to_counts(struct cuf_call *call, CUmemGenericAllocationHandle handle,
			  int references, int maps)
{
	struct cuf_block ignored;
	if (call->thread)
		cuf_block_add_refs(call, handle_space(handle), handle, references, maps, &ignored);
}

/* A handle that the ledger lacks is no unknown free: multicast objects are released here too. The
 * memory is freed only when its mappings are gone, too. */
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

/* Returns the handle of mapped memory, with one more reference. */
CUresult cuf_hook_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *addr)
{
	CUF_CALL(cuMemRetainAllocationHandle);
	CUresult result = cuf_real.cuMemRetainAllocationHandle(out, addr);
	if (result == CUDA_SUCCESS && out)
		add_to_counts(&call, *out, 1, 0);
	return cuf_done(&call, result);
}

/* Exported memory may stay alive in another process after it was released here. */
CUresult cuf_hook_cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
					       CUmemAllocationHandleType type,
					       unsigned long long flags)
{
	CUF_CALL(cuMemExportToShareableHandle);
	CUresult result = cuf_real.cuMemExportToShareableHandle(shareable, handle, type, flags);
	if (call.thread && result == CUDA_SUCCESS)
		cuf_block_find(handle_space(handle), handle, CUF_EVENT_EXPORTED, NULL);
	return cuf_done(&call, result);
}

/* The driver does not report the size of an imported handle. It becomes known with the first
 * map. */
CUresult cuf_hook_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *shareable,
						 CUmemAllocationHandleType type)
{
	CUF_CALL(cuMemImportFromShareableHandle);
	CUresult result = cuf_real.cuMemImportFromShareableHandle(out, shareable, type);
	struct cuf_request request =
		cuf_request_here(&call, CUF_KIND_IMPORTED, 0, CUF_EVENT_ESTIMATED);
	request.context = 0;
	return cuf_alloc_done(&call, &request, result, cuf_output(result, out));
}

/* ---- addresses ---- */

/* Addresses only. PyTorch's expandable segments reserve more than the device has. */
CUresult cuf_hook_cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment,
				      CUdeviceptr addr, unsigned long long flags)
{
	CUF_CALL(cuMemAddressReserve);
	CUresult result = cuf_real.cuMemAddressReserve(out, bytes, alignment, addr, flags);
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_RESERVATION, bytes, 0);
	request.context = 0;
	return cuf_alloc_done(&call, &request, result, cuf_output(result, out));
}

/* Returns addresses, no memory. */
CUresult cuf_hook_cuMemAddressFree(CUdeviceptr ptr, size_t bytes)
{
	struct cuf_block block;
	CUF_CALL(cuMemAddressFree);
	bool freed = cuf_free_begin(&call, CUF_SPACE_RESERVATION, ptr, &block);
	CUresult result = cuf_real.cuMemAddressFree(ptr, bytes);
	return cuf_free_done(&call, freed, &block, result);
}

/* ---- mappings ---- */

/* An imported handle shows its size at its first mapping. Its entry is written again, with the same
 * counts. */
static void set_imported_size(struct cuf_call *call, CUmemGenericAllocationHandle handle,
			      uint64_t bytes)
{
	struct cuf_request request = { .bytes = bytes, .kind = CUF_KIND_IMPORTED };
	struct cuf_block block, ignored;
	if (!cuf_block_find(CUF_SPACE_DEVICE, handle, 0, &block) ||
	    block.kind != CUF_KIND_IMPORTED || block.bytes ||
	    !cuf_block_free(call, CUF_SPACE_DEVICE, handle, &block))
		return;
	request.device = block.device;
	cuf_block_alloc(call, &request, handle);
	cuf_block_add_refs(call, CUF_SPACE_DEVICE, handle, block.references - 1, block.maps,
			   &ignored);
}

/* The mapping has no bytes of its own. It keeps its handle alive (aux). The real call comes first:
 * a mapping that the driver refused must not raise the count. */
CUresult cuf_hook_cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset,
			   CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct cuf_block physical;
	CUF_CALL(cuMemMap);
	CUresult result = cuf_real.cuMemMap(ptr, bytes, offset, handle, flags);
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_MAPPING, bytes, 0);
	request.context = 0;
	request.aux = handle;
	if (call.thread && cuf_block_find(handle_space(handle), handle, 0, &physical)) {
		request.device = physical.device;
		request.flags = physical.flags & CUF_EVENT_HOST_LOCATION;
	}
	cuf_alloc_record(&call, &request, result, ptr);
	if (result == CUDA_SUCCESS && call.thread) {
		if (handle_space(handle) == CUF_SPACE_DEVICE)
			set_imported_size(&call, handle, bytes);
		add_to_counts(&call, handle, 0, 1);
	}
	return cuf_done(&call, result);
}

/*
 * What an unmap removed, kept until the driver accepts it. One call may cover many mappings, but
 * only whole ones. Those beyond UNMAP_KEPT are removed afterwards, since they could not be
 * restored.
 */
#define UNMAP_KEPT 2u
struct unmapping {
	CUdeviceptr next, end;
	unsigned count;
	struct {
		struct cuf_block mapping;
		struct cuf_release physical;
	} kept[UNMAP_KEPT];
};

/* Removes the mapping that starts at addr. Returns false when the ledger has none there. */
static bool unmap_one(struct cuf_call *call, CUdeviceptr addr, struct cuf_block *mapping,
		      struct cuf_release *physical)
{
	if (!cuf_block_find(CUF_SPACE_MAPPING, addr, 0, mapping) ||
	    !cuf_block_free(call, CUF_SPACE_MAPPING, addr, mapping))
		return false;
	cuf_release_begin(call, physical, handle_space(mapping->aux), mapping->aux, 0, 1);
	return true;
}

/* Stops at the first address without a known mapping: it was made before the recorder started. */
static void unmap_begin(struct cuf_call *call, struct unmapping *unmapping)
{
	while (call->thread && unmapping->next < unmapping->end && unmapping->count < UNMAP_KEPT) {
		struct cuf_block *mapping = &unmapping->kept[unmapping->count].mapping;
		struct cuf_release *physical = &unmapping->kept[unmapping->count].physical;
		if (!unmap_one(call, unmapping->next, mapping, physical))
			return;
		unmapping->next += mapping->bytes;
		unmapping->count++;
	}
}

/* The mappings that did not fit in `kept`, after the driver accepted the call. */
static void unmap_rest(struct cuf_call *call, struct unmapping *unmapping)
{
	struct cuf_block mapping;
	struct cuf_release physical;
	if (!call->thread || unmapping->count < UNMAP_KEPT)
		return;
	while (unmapping->next < unmapping->end &&
	       unmap_one(call, unmapping->next, &mapping, &physical))
		unmapping->next += mapping.bytes;
}

/* In reverse order. */
static void unmap_undo(struct cuf_call *call, struct unmapping *unmapping)
{
	while (unmapping->count) {
		unmapping->count--;
		cuf_block_restore(call, &unmapping->kept[unmapping->count].mapping);
		cuf_release_undo(call, &unmapping->kept[unmapping->count].physical);
	}
}

/* One call may cover several mappings that are next to each other. */
CUresult cuf_hook_cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
	struct unmapping unmapping;
	CUF_CALL(cuMemUnmap);
	unmapping.next = ptr;
	unmapping.end = ptr + bytes;
	unmapping.count = 0;
	unmap_begin(&call, &unmapping);
	CUresult result = cuf_real.cuMemUnmap(ptr, bytes);
	if (result == CUDA_SUCCESS)
		unmap_rest(&call, &unmapping);
	else
		unmap_undo(&call, &unmapping);
	return cuf_done(&call, result);
}

/* ---- multicast objects and logical endpoints: what is bound to them stays alive ---- */

/*
 * Which memory is bound where: an unbinding names only the place. When the table is full, a
 * binding is not counted, and its unbinding is not either.
 */
#define BINDINGS_MAX 256u
#define ENDPOINT (1ull << 63) /* an object that is an endpoint, not a multicast handle */
#define ANY_DEVICE (-1)
enum binding_state { BINDING_FREE, BINDING_BUSY, BINDING_HELD };
struct place {
	uint64_t object;
	CUdevice device;
	uint64_t offset, end;
};
static struct binding {
	struct place at; /* its end is not used */
	CUmemGenericAllocationHandle physical;
	int state;               /* enum binding_state */
} bindings[BINDINGS_MAX];

/* Claims or releases a slot. A slot in another state belongs to another thread. */
static bool change_state(struct binding *binding, int from, int to)
{
	return __atomic_compare_exchange_n(&binding->state, &from, to, 0, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/* Returns false when the table is full, and counts it. */
static bool binding_add(const struct binding *binding)
{
	for (unsigned i = 0; i < BINDINGS_MAX; i++) {
		if (!change_state(&bindings[i], BINDING_FREE, BINDING_BUSY))
			continue;
		bindings[i].at = binding->at;
		bindings[i].physical = binding->physical;
		__atomic_store_n(&bindings[i].state, BINDING_HELD, __ATOMIC_RELEASE);
		return true;
	}
	cuf_note_dropped(CUF_LOST_SMALL);
	return false;
}

static bool is_in(const struct place *binding, const struct place *range)
{
	return binding->object == range->object && binding->offset >= range->offset &&
	       binding->offset < range->end &&
	       (binding->device == range->device || range->device == ANY_DEVICE);
}

/* Removes one binding of a range. Returns false when there is none. */
static bool binding_take(const struct place *range, struct binding *taken)
{
	for (unsigned i = 0; i < BINDINGS_MAX; i++) {
		struct binding *binding = &bindings[i];
		if (__atomic_load_n(&binding->state, __ATOMIC_ACQUIRE) != BINDING_HELD ||
		    !is_in(&binding->at, range) ||
		    !change_state(binding, BINDING_HELD, BINDING_BUSY))
			continue;
		*taken = *binding;
		__atomic_store_n(&binding->state, BINDING_FREE, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

/* A binding adds no bytes, but it keeps the physical memory alive like a mapping. Without space in
 * the table the count is not raised, and the memory may be recorded as freed too early. */
static CUresult bound(struct cuf_call *call, const struct binding *binding, size_t bytes,
		      CUresult result)
{
	struct cuf_request request = cuf_request_here(call, CUF_KIND_MAPPING, bytes, 0);

	if (result == CUDA_SUCCESS && call->thread && binding->physical && binding_add(binding))
		add_to_counts(call, binding->physical, 0, 1);
	return cuf_alloc_done(call, &request, result, 0);
}

/* What an unbinding removed, kept until the driver accepts it: the first binding of its range. The
 * others are removed afterwards. */
struct unbinding {
	struct place range;
	struct binding kept; /* physical 0: none */
	struct cuf_release release;
};

static void unbind_begin(struct cuf_call *call, struct unbinding *unbinding)
{
	unbinding->kept.physical = 0;
	if (call->thread && binding_take(&unbinding->range, &unbinding->kept))
		cuf_release_begin(call, &unbinding->release, handle_space(unbinding->kept.physical),
				  unbinding->kept.physical, 0, 1);
}

static CUresult unbind_done(struct cuf_call *call, struct unbinding *unbinding, CUresult result)
{
	bool was_bound = unbinding->kept.physical != 0;

	if (result != CUDA_SUCCESS && was_bound) {
		binding_add(&unbinding->kept);
		cuf_release_undo(call, &unbinding->release);
	}
	while (result == CUDA_SUCCESS && was_bound &&
	       binding_take(&unbinding->range, &unbinding->kept))
		cuf_release_begin(call, &unbinding->release, handle_space(unbinding->kept.physical),
				  unbinding->kept.physical, 0, 1);
	return cuf_done(call, result);
}

/* The memory that is mapped at ptr; 0: unknown. */
static CUmemGenericAllocationHandle mapped_at(CUdeviceptr ptr)
{
	struct cuf_block mapping;

	return cuf_block_find(CUF_SPACE_MAPPING, ptr, 0, &mapping) ? mapping.aux : 0;
}

/* Before CUDA 13.1 the device of a binding is that of the memory. */
static CUdevice device_of(CUmemGenericAllocationHandle handle)
{
	struct cuf_block block;

	return cuf_block_find(handle_space(handle), handle, 0, &block) ? block.device : 0;
}

CUresult cuf_hook_cuMulticastBindMem(CUmemGenericAllocationHandle multicast,
				     size_t multicast_offset,
				     CUmemGenericAllocationHandle handle, size_t offset,
				     size_t bytes, unsigned long long flags)
{
	struct binding binding = { { multicast, 0, multicast_offset, 0 }, handle, 0 };
	CUF_CALL(cuMulticastBindMem);
	binding.at.device = device_of(handle);
	CUresult result = cuf_real.cuMulticastBindMem(multicast, multicast_offset, handle, offset,
						      bytes, flags);
	return bound(&call, &binding, bytes, result);
}

CUresult cuf_hook_cuMulticastBindMem_v2(CUmemGenericAllocationHandle multicast, CUdevice device,
					size_t multicast_offset,
					CUmemGenericAllocationHandle handle, size_t offset,
					size_t bytes, unsigned long long flags)
{
	const struct binding binding = { { multicast, device, multicast_offset, 0 }, handle, 0 };
	CUF_CALL(cuMulticastBindMem_v2);
	CUresult result = cuf_real.cuMulticastBindMem_v2(multicast, device, multicast_offset,
							 handle, offset, bytes, flags);
	return bound(&call, &binding, bytes, result);
}

CUresult cuf_hook_cuMulticastBindAddr(CUmemGenericAllocationHandle multicast,
				      size_t multicast_offset, CUdeviceptr ptr, size_t bytes,
				      unsigned long long flags)
{
	struct binding binding = { { multicast, 0, multicast_offset, 0 }, mapped_at(ptr), 0 };
	CUF_CALL(cuMulticastBindAddr);
	binding.at.device = device_of(binding.physical);
	CUresult result =
		cuf_real.cuMulticastBindAddr(multicast, multicast_offset, ptr, bytes, flags);
	return bound(&call, &binding, bytes, result);
}

CUresult cuf_hook_cuMulticastBindAddr_v2(CUmemGenericAllocationHandle multicast, CUdevice device,
					 size_t multicast_offset, CUdeviceptr ptr, size_t bytes,
					 unsigned long long flags)
{
	struct binding binding = { { multicast, device, multicast_offset, 0 }, 0, 0 };
	CUF_CALL(cuMulticastBindAddr_v2);
	binding.physical = mapped_at(ptr);
	CUresult result = cuf_real.cuMulticastBindAddr_v2(multicast, device, multicast_offset, ptr,
							  bytes, flags);
	return bound(&call, &binding, bytes, result);
}

CUresult cuf_hook_cuMulticastUnbind(CUmemGenericAllocationHandle multicast, CUdevice device,
				    size_t multicast_offset, size_t bytes)
{
	struct unbinding unbinding = {
		.range = { multicast, device, multicast_offset, multicast_offset + bytes }
	};
	CUF_CALL(cuMulticastUnbind);
	unbind_begin(&call, &unbinding);
	CUresult result = cuf_real.cuMulticastUnbind(multicast, device, multicast_offset, bytes);
	return unbind_done(&call, &unbinding, result);
}

CUresult cuf_hook_cuLogicalEndpointBindMem(CUlogicalEndpointId endpoint, CUdevice device,
					   cuuint64_t offset,
					   CUmemGenericAllocationHandle handle,
					   cuuint64_t memory_offset, cuuint64_t bytes,
					   unsigned long long flags)
{
	const struct binding binding = { { ENDPOINT | endpoint, device, offset, 0 }, handle, 0 };
	CUF_CALL(cuLogicalEndpointBindMem);
	CUresult result = cuf_real.cuLogicalEndpointBindMem(endpoint, device, offset, handle,
							    memory_offset, bytes, flags);
	return bound(&call, &binding, bytes, result);
}

/* Memory of a pool stays in its pool, whatever it is bound to. */
CUresult cuf_hook_cuLogicalEndpointBindAddr(CUlogicalEndpointId endpoint, CUdevice device,
					    cuuint64_t offset, void *ptr, cuuint64_t bytes,
					    unsigned long long flags)
{
	struct binding binding = { { ENDPOINT | endpoint, device, offset, 0 }, 0, 0 };
	CUF_CALL(cuLogicalEndpointBindAddr);
	binding.physical = mapped_at((CUdeviceptr)ptr);
	CUresult result = cuf_real.cuLogicalEndpointBindAddr(endpoint, device, offset, ptr, bytes,
							     flags);
	return bound(&call, &binding, bytes, result);
}

CUresult cuf_hook_cuLogicalEndpointUnbind(CUlogicalEndpointId endpoint, CUdevice device,
					  cuuint64_t offset, cuuint64_t bytes)
{
	struct unbinding unbinding = {
		.range = { ENDPOINT | endpoint, device, offset, offset + bytes }
	};
	CUF_CALL(cuLogicalEndpointUnbind);
	unbind_begin(&call, &unbinding);
	CUresult result = cuf_real.cuLogicalEndpointUnbind(endpoint, device, offset, bytes);
	return unbind_done(&call, &unbinding, result);
}

/* Unbinds all that this process bound. */
CUresult cuf_hook_cuLogicalEndpointDestroy(CUlogicalEndpointId endpoint)
{
	struct unbinding unbinding = {
		.range = { ENDPOINT | endpoint, ANY_DEVICE, 0, UINT64_MAX }
	};
	CUF_CALL(cuLogicalEndpointDestroy);
	unbind_begin(&call, &unbinding);
	CUresult result = cuf_real.cuLogicalEndpointDestroy(endpoint);
	return unbind_done(&call, &unbinding, result);
}

/* ---- export for other drivers ---- */

/* A dma-buf (GPUDirect RDMA) holds the memory behind the addresses, of whatever kind it is. */
CUresult cuf_hook_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr, size_t bytes,
						CUmemRangeHandleType type,
						unsigned long long flags)
{
	CUF_CALL(cuMemGetHandleForAddressRange);
	CUresult result =
		cuf_real.cuMemGetHandleForAddressRange(handle, ptr, bytes, type, flags);
	int saved = errno;
	if (call.thread && result == CUDA_SUCCESS) {
		CUmemGenericAllocationHandle physical = mapped_at(ptr);
		if (physical)
			cuf_block_find(handle_space(physical), physical, CUF_EVENT_EXPORTED, NULL);
		else
			cuf_block_exported(ptr);
	}
	errno = saved;
	return cuf_done(&call, result);
}
