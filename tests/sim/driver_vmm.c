/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management: physical handles with references, reserved addresses, mappings.
 * Physical memory is released when no reference and no mapping is left. A reservation is only
 * addresses. Handles shared with other processes are passed as a file descriptor that names an
 * entry of the shared table. An open descriptor by itself keeps nothing alive.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/sim/driver.h"

#define TICKET_MAGIC 0x53494d564d4d3031ull

struct ticket { uint64_t magic, id; int index; bool on_host; CUmemAllocationProp prop; };

static struct object *handle_find(CUmemGenericAllocationHandle handle) { return object_find(KIND_VMM, handle); }

static bool aligned(uint64_t value) { return !(value % settings.granularity_bytes); }

static CUresult create(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop)
{
	bool on_host = prop && prop->location.type >= CU_MEM_LOCATION_TYPE_HOST;
	if (!out || !prop || !bytes || !aligned(bytes) || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (!on_host && !device_valid(prop->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!on_host && !device_take(prop->location.id, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct object *handle = object_new(KIND_VMM, 0);
	handle->bytes = handle->requested = bytes;
	handle->device = on_host ? -1 : prop->location.id;
	handle->refs = 1;
	handle->vmm.shared = -1;
	handle->vmm.on_host = on_host;
	handle->vmm.prop = *prop;
	*out = handle->addr;
	return 0;
}

static void settle(struct object *handle)
{
	if (handle->refs || handle->maps)
		return;
	if (handle->vmm.shared >= 0)
		shared_release(handle->vmm.shared);
	else if (!handle->vmm.on_host)
		device_give(handle->device, handle->bytes);
	object_delete(handle);
}

static CUresult release(CUmemGenericAllocationHandle id)
{
	struct object *handle = handle_find(id);
	if (!handle || !handle->refs)
		return CUDA_ERROR_INVALID_VALUE;
	handle->refs--;
	settle(handle);
	return 0;
}

static CUresult retain(CUmemGenericAllocationHandle *out, const void *addr)
{
	struct object *mapping = object_at((uint64_t)(uintptr_t)addr);
	if (!mapping || mapping->kind != KIND_MAPPING)
		return CUDA_ERROR_INVALID_VALUE;
	mapping->owner->refs++;
	*out = mapping->owner->addr;
	return 0;
}

static CUresult reserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr wish)
{
	uint64_t unit = settings.granularity_bytes;
	if (!out || !bytes || !aligned(bytes) || (alignment & (alignment - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t addr = wish && aligned(wish) && address_take_at(wish, bytes) ? wish : 0;
	if (!addr)
		addr = address_take(bytes, alignment > unit ? alignment : unit);
	if (!addr)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct object *reservation = object_new(KIND_RESERVATION, addr);
	reservation->bytes = reservation->requested = bytes;
	*out = addr;
	return 0;
}

static struct object *mapping_in(uint64_t addr, uint64_t bytes)
{
	for (struct object *m = object_next(NULL, true); m && m->addr < addr + bytes; m = object_next(m, true))
		if (m->kind == KIND_MAPPING && m->addr + m->bytes > addr)
			return m;
	return NULL;
}

static CUresult address_free(CUdeviceptr addr, size_t bytes)
{
	struct object *reservation = object_find(KIND_RESERVATION, addr);
	if (!reservation || reservation->bytes != bytes || mapping_in(addr, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	address_give(addr, bytes);
	object_delete(reservation);
	return 0;
}

static CUresult map(CUdeviceptr addr, size_t bytes, size_t offset, CUmemGenericAllocationHandle id)
{
	struct object *handle = handle_find(id);
	if (!handle || !bytes || offset || bytes > handle->bytes || !aligned(addr) || !aligned(bytes) || !reservation_at(addr, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (mapping_in(addr, bytes))
		return CUDA_ERROR_ALREADY_MAPPED;
	struct object *mapping = object_new(KIND_MAPPING, addr);
	mapping->bytes = mapping->requested = bytes;
	mapping->device = handle->device;
	mapping->owner = handle;
	handle->maps++;
	return 0;
}

/* The range must be made of whole mappings. */
static CUresult unmap(CUdeviceptr addr, size_t bytes)
{
	uint64_t at = addr, end = addr + bytes;
	while (at < end) {
		struct object *mapping = object_find(KIND_MAPPING, at);
		if (!mapping || mapping->bytes > end - at)
			return CUDA_ERROR_INVALID_VALUE;
		at += mapping->bytes;
	}
	for (at = addr; at < end;) {
		struct object *mapping = object_find(KIND_MAPPING, at), *handle = mapping->owner;
		at += mapping->bytes;
		object_delete(mapping);
		handle->maps--;
		settle(handle);
	}
	return bytes ? 0 : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_access(CUdeviceptr addr, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
	uint64_t at = addr;
	if (!desc || !count)
		return CUDA_ERROR_INVALID_VALUE;
	while (at < addr + bytes) {
		struct object *mapping = object_find(KIND_MAPPING, at);
		if (!mapping)
			return CUDA_ERROR_INVALID_VALUE;
		at += mapping->bytes;
	}
	return 0;
}

static CUresult properties(CUmemAllocationProp *out, CUmemGenericAllocationHandle id)
{
	struct object *handle = handle_find(id);
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	*out = handle->vmm.prop;
	return 0;
}

static CUresult export_handle(int *out, CUmemGenericAllocationHandle id, int type)
{
	struct object *handle = handle_find(id);
	if (!handle || type != 1 || !(handle->vmm.prop.requestedHandleTypes & type))
		return CUDA_ERROR_INVALID_VALUE;
	if (handle->vmm.shared < 0 && !handle->vmm.on_host)
		handle->vmm.shared = shared_export(handle->device, handle->bytes);
	int fd = handle->vmm.shared < 0 ? -1 : memfd_create("simcuda-handle", MFD_CLOEXEC);
	if (fd < 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	struct ticket ticket = {TICKET_MAGIC, shared_id(handle->vmm.shared), handle->vmm.shared, false, handle->vmm.prop};
	if (pwrite(fd, &ticket, sizeof ticket, 0) != sizeof ticket) {
		close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = fd;
	return 0;
}

static CUresult import_handle(CUmemGenericAllocationHandle *out, int fd, int type)
{
	struct ticket ticket;
	uint64_t bytes;
	int device;
	if (type != 1 || pread(fd, &ticket, sizeof ticket, 0) != sizeof ticket || ticket.magic != TICKET_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	if (!shared_import(ticket.index, ticket.id, &bytes, &device))
		return CUDA_ERROR_INVALID_VALUE;
	struct object *handle = object_new(KIND_VMM, 0);
	handle->bytes = handle->requested = bytes;
	handle->device = device;
	handle->refs = 1;
	handle->vmm.shared = ticket.index;
	handle->vmm.prop = ticket.prop;
	*out = handle->addr;
	return 0;
}

/* ---- multicast: what is bound stays alive ---- */

static CUresult multicast_create(CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *prop)
{
	if (!out || !prop || !prop->size || !aligned(prop->size))
		return CUDA_ERROR_INVALID_VALUE;
	*out = object_new(KIND_MULTICAST, 0)->addr;
	return 0;
}

static CUresult bind(CUmemGenericAllocationHandle multicast, size_t at, struct object *handle, size_t bytes)
{
	if (!object_find(KIND_MULTICAST, multicast) || !handle || !aligned(at) || !bytes || bytes > handle->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	struct object *binding = object_new(KIND_BINDING, 0);
	binding->requested = multicast;
	binding->bytes = at;
	binding->owner = handle;
	handle->maps++;
	return 0;
}

static CUresult bind_address(CUmemGenericAllocationHandle multicast, size_t at, CUdeviceptr ptr, size_t bytes)
{
	struct object *mapping = object_find(KIND_MAPPING, ptr);
	return mapping ? bind(multicast, at, mapping->owner, bytes) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult unbind(CUmemGenericAllocationHandle multicast, size_t at)
{
	for (struct object *b = object_next(NULL, false); b; b = object_next(b, false)) {
		struct object *handle = b->owner;
		if (b->kind != KIND_BINDING || b->requested != multicast || b->bytes != at)
			continue;
		object_delete(b);
		handle->maps--;
		settle(handle);
		return 0;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *prop)
	CALL("cuMulticastCreate", CALL_PLAIN, multicast_create(out, prop))
EXPORT(cuMulticastAddDevice, (CUmemGenericAllocationHandle multicast, CUdevice device))
	CALL("cuMulticastAddDevice", CALL_PLAIN, object_find(KIND_MULTICAST, multicast) ? 0 : CUDA_ERROR_INVALID_VALUE)
CUresult cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t at, CUmemGenericAllocationHandle handle, size_t offset, size_t bytes,
                            unsigned long long flags)
	CALL("cuMulticastBindMem", CALL_PLAIN, bind(multicast, at, handle_find(handle), bytes))
CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle multicast, CUdevice device, size_t at, CUmemGenericAllocationHandle handle,
                               size_t offset, size_t bytes, unsigned long long flags)
	CALL("cuMulticastBindMem", CALL_PLAIN, bind(multicast, at, handle_find(handle), bytes))
CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t at, CUdeviceptr ptr, size_t bytes, unsigned long long flags)
	CALL("cuMulticastBindAddr", CALL_PLAIN, bind_address(multicast, at, ptr, bytes))
CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle multicast, CUdevice device, size_t at, CUdeviceptr ptr, size_t bytes,
                                unsigned long long flags)
	CALL("cuMulticastBindAddr", CALL_PLAIN, bind_address(multicast, at, ptr, bytes))
CUresult cuMulticastUnbind(CUmemGenericAllocationHandle multicast, CUdevice device, size_t at, size_t bytes)
	CALL("cuMulticastUnbind", CALL_PLAIN, unbind(multicast, at))

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags)
	CALL("cuMemCreate", CALL_PLAIN, create(out, bytes, prop))
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) CALL("cuMemRelease", CALL_PLAIN, release(handle))
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *addr)
	CALL("cuMemRetainAllocationHandle", CALL_PLAIN, retain(out, addr))
CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr addr, unsigned long long flags)
	CALL("cuMemAddressReserve", CALL_PLAIN, reserve(out, bytes, alignment, addr))
CUresult cuMemAddressFree(CUdeviceptr addr, size_t bytes) CALL("cuMemAddressFree", CALL_PLAIN, address_free(addr, bytes))
CUresult cuMemMap(CUdeviceptr addr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
	CALL("cuMemMap", CALL_PLAIN, map(addr, bytes, offset, handle))
CUresult cuMemUnmap(CUdeviceptr addr, size_t bytes) CALL("cuMemUnmap", CALL_PLAIN, unmap(addr, bytes))
CUresult cuMemSetAccess(CUdeviceptr addr, size_t bytes, const CUmemAccessDesc *desc, size_t count)
	CALL("cuMemSetAccess", CALL_PLAIN, set_access(addr, bytes, desc, count))
EXPORT(cuMemGetAllocationGranularity, (size_t *out, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option))
	CALL("cuMemGetAllocationGranularity", CALL_PLAIN, (*out = settings.granularity_bytes, 0))
EXPORT(cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp *out, CUmemGenericAllocationHandle handle))
	CALL("cuMemGetAllocationPropertiesFromHandle", CALL_PLAIN, properties(out, handle))
CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, unsigned long long flags)
	CALL("cuMemExportToShareableHandle", CALL_PLAIN, export_handle(out, handle, type))
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *shareable, CUmemAllocationHandleType type)
	CALL("cuMemImportFromShareableHandle", CALL_PLAIN, import_handle(out, (int)(intptr_t)shareable, type))
