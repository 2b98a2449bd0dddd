/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of other owners: legacy IPC between processes, exported pool pointers, external memory. An
 * opened block is a mapping with a count. It adds no device bytes and covers the exporter's whole
 * block. Nothing follows the exporter's free: using the mapping afterwards is undefined in CUDA,
 * too.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/sim/driver.h"

#define IPC_MAGIC 0x53494d4950433031ull
#define POOL_MAGIC 0x53494d504f4f4c31ull

struct ipc { uint64_t magic, start_ticks, addr, bytes, id; int32_t pid, device; };
_Static_assert(sizeof(struct ipc) <= sizeof(CUipcMemHandle), "travels in the handle");

static struct object *imported_new(uint64_t bytes, int device, struct object *owner)
{
	uint64_t span = round_up(bytes, PAGE_BYTES), addr = address_take(span, PAGE_BYTES);
	if (!addr)
		return NULL;
	struct object *block = object_new(KIND_IMPORTED, addr);
	block->bytes = span;
	block->requested = bytes;
	block->device = device;
	block->owner = owner;
	block->refs = 1;
	return block;
}

static CUresult ticket_fill(struct ipc *out, uint64_t magic, CUdeviceptr ptr, enum kind kind)
{
	struct object *block = object_at(ptr);
	if (!block || block->kind != kind)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct ipc){magic, process_start_ticks(getpid()), block->addr, block->requested, block->id, getpid(), block->device};
	return 0;
}

static bool ticket_valid(const struct ipc *ticket, uint64_t magic)
{
	return ticket->magic == magic && process_alive(ticket->pid, ticket->start_ticks);
}

static CUresult ipc_open(CUdeviceptr *out, const CUipcMemHandle *handle)
{
	struct ipc ticket;
	struct object *context;
	CUresult result = context_current(&context);
	memcpy(&ticket, handle, sizeof ticket);
	if (result)
		return result;
	if (!ticket_valid(&ticket, IPC_MAGIC))
		return CUDA_ERROR_INVALID_HANDLE;
	if (ticket.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT; /* not in the process that exported it */
	for (struct object *o = object_next(NULL, true); o; o = object_next(o, true))
		if (o->kind == KIND_IMPORTED && !memcmp(o->imported.handle, handle, sizeof *handle)) {
			o->refs++;
			*out = o->addr;
			return 0;
		}
	struct object *block = imported_new(ticket.bytes, ticket.device, NULL);
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block->context = context;
	memcpy(block->imported.handle, handle, sizeof *handle);
	*out = block->addr;
	return 0;
}

static CUresult ipc_close(CUdeviceptr ptr)
{
	struct object *block = object_find(KIND_IMPORTED, ptr);
	if (!block || !block->imported.handle[0])
		return CUDA_ERROR_INVALID_VALUE;
	if (!--block->refs)
		memory_free(block);
	return 0;
}

static CUresult ipc_get(CUipcMemHandle *out, CUdeviceptr ptr)
{
	struct ipc ticket;
	CUresult result = ticket_fill(&ticket, IPC_MAGIC, ptr, KIND_LINEAR);
	memset(out, 0, sizeof *out);
	memcpy(out, &ticket, result ? 0 : sizeof ticket);
	return result;
}

static CUresult pool_export(int *out, CUmemoryPool handle, int type)
{
	struct object *pool = object_find(KIND_POOL, (uint64_t)(uintptr_t)handle);
	struct ipc ticket = {POOL_MAGIC, process_start_ticks(getpid()), 0, 0, pool ? pool->id : 0, getpid(), pool ? pool->device : 0};
	int fd = pool && type == 1 ? memfd_create("simcuda-pool", MFD_CLOEXEC) : -1;
	if (fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (pwrite(fd, &ticket, sizeof ticket, 0) != sizeof ticket) {
		close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = fd;
	return 0;
}

static CUresult pool_import(CUmemoryPool *out, int fd, int type)
{
	struct ipc ticket;
	if (type != 1 || pread(fd, &ticket, sizeof ticket, 0) != sizeof ticket || !ticket_valid(&ticket, POOL_MAGIC))
		return CUDA_ERROR_INVALID_VALUE;
	struct object *pool = object_new(KIND_POOL, 0);
	pool->device = ticket.device;
	pool->pool.imported = true;
	*out = (CUmemoryPool)(uintptr_t)pool->addr;
	return 0;
}

static CUresult pointer_export(CUmemPoolPtrExportData *out, CUdeviceptr ptr)
{
	struct ipc ticket;
	CUresult result = ticket_fill(&ticket, POOL_MAGIC, ptr, KIND_ASYNC);
	memset(out, 0, sizeof *out);
	memcpy(out, &ticket, result ? 0 : sizeof ticket);
	return result;
}

static CUresult pointer_import(CUdeviceptr *out, CUmemoryPool handle, const CUmemPoolPtrExportData *data)
{
	struct ipc ticket;
	struct object *pool = object_find(KIND_POOL, (uint64_t)(uintptr_t)handle);
	memcpy(&ticket, data, sizeof ticket);
	if (!pool || !pool->pool.imported || !ticket_valid(&ticket, POOL_MAGIC))
		return CUDA_ERROR_INVALID_VALUE;
	struct object *block = imported_new(ticket.bytes, ticket.device, pool);
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = block->addr;
	return 0;
}

/* The descriptor belongs to the driver from here on, as in CUDA. */
static CUresult external_import(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
	struct object *context;
	CUresult result = context_current(&context);
	if (result)
		return result;
	if (!out || !desc || desc->type != 1 || !desc->size)
		return CUDA_ERROR_INVALID_VALUE;
	struct object *external = object_new(KIND_EXTERNAL, 0);
	external->bytes = external->requested = desc->size;
	external->device = context->device;
	external->context = context;
	close(desc->handle.fd);
	*out = (CUexternalMemory)(uintptr_t)external->addr;
	return 0;
}

static CUresult external_buffer(CUdeviceptr *out, CUexternalMemory handle, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	struct object *external = object_find(KIND_EXTERNAL, (uint64_t)(uintptr_t)handle);
	if (!external || !desc || !desc->size || desc->size > external->bytes || desc->offset > external->bytes - desc->size)
		return CUDA_ERROR_INVALID_VALUE;
	struct object *block = imported_new(desc->size, external->device, external);
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block->context = external->context;
	*out = block->addr;
	return 0;
}

/* Mapped buffers stay, to be freed by cuMemFree. */
static CUresult external_destroy(CUexternalMemory handle)
{
	struct object *external = object_find(KIND_EXTERNAL, (uint64_t)(uintptr_t)handle);
	if (!external)
		return CUDA_ERROR_INVALID_HANDLE;
	object_delete(external);
	return 0;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr ptr) CALL("cuIpcGetMemHandle", CALL_PLAIN, ipc_get(out, ptr))
CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
	CALL("cuIpcOpenMemHandle", CALL_PLAIN, ipc_open(out, &handle))
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
	CALL("cuIpcOpenMemHandle", CALL_PLAIN, ipc_open(out, &handle))
CUresult cuIpcCloseMemHandle(CUdeviceptr ptr) CALL("cuIpcCloseMemHandle", CALL_PLAIN, ipc_close(ptr))
CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool, CUmemAllocationHandleType type, unsigned long long flags)
	CALL("cuMemPoolExportToShareableHandle", CALL_PLAIN, pool_export(out, pool, type))
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *handle, CUmemAllocationHandleType type, unsigned long long flags)
	CALL("cuMemPoolImportFromShareableHandle", CALL_PLAIN, pool_import(out, (int)(intptr_t)handle, type))
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr ptr) CALL("cuMemPoolExportPointer", CALL_PLAIN, pointer_export(out, ptr))
CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool, CUmemPoolPtrExportData *data)
	CALL("cuMemPoolImportPointer", CALL_PLAIN, pointer_import(out, pool, data))
CUresult cuImportExternalMemory(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
	CALL("cuImportExternalMemory", CALL_PLAIN, external_import(out, desc))
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *out, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
	CALL("cuExternalMemoryGetMappedBuffer", CALL_PLAIN, external_buffer(out, memory, desc))
CUresult cuDestroyExternalMemory(CUexternalMemory memory) CALL("cuDestroyExternalMemory", CALL_PLAIN, external_destroy(memory))
