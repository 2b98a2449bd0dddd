/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of other owners: legacy IPC and external memory (Vulkan, D3D, sockets of other drivers).
 *
 * An opened IPC handle is a counted mapping of the exporter's whole block. An external memory object holds the bytes;
 * buffers and arrays mapped from it are views: entries without bytes that keep the object alive, even after it was
 * destroyed, until they are freed themselves.
 */
#include "interpose/hooks/cuda/cuda.h"

/* ---- legacy IPC ---- */

/* The handle names the driver's whole allocation around ptr. */
CUresult cuf_hook_cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr ptr)
{
	CUdeviceptr base = ptr;
	size_t bytes;
	struct cuf_block block;
	CUF_CALL(cuIpcGetMemHandle);
	CUresult result = cuf_real.cuIpcGetMemHandle(out, ptr);
	int saved = errno;
	if (call.thread && result == CUDA_SUCCESS) {
		if (!cuf_block_find(CUF_SPACE_DEVICE, ptr, &block))
			cuf_range_of(ptr, &base, &bytes);
		cuf_block_flag(CUF_SPACE_DEVICE, base, CUF_EVENT_EXPORTED);
	}
	errno = saved;
	return cuf_done(&call, result);
}

static CUresult ipc_opened(struct cuf_call *call, CUresult result, const CUdeviceptr *out)
{
	CUdeviceptr base, ptr = result == CUDA_SUCCESS && out ? *out : 0;
	size_t bytes = 0;
	struct cuf_block block;
	struct cuf_request request;
	int saved = errno;
	bool sized = call->thread && ptr && cuf_range_of(ptr, &base, &bytes);
	if (call->thread && ptr && cuf_block_find(CUF_SPACE_DEVICE, ptr, &block) && block.kind == CUF_KIND_IMPORTED) {
		cuf_block_add_refs(call, CUF_SPACE_DEVICE, ptr, 1, 0, &block); /* opened before: the same mapping again */
		errno = saved;
		return cuf_done(call, result);
	}
	request = cuf_request_here(call, CUF_KIND_IMPORTED, bytes, CUF_EVENT_CONTEXT_BOUND | (sized ? 0 : CUF_EVENT_ESTIMATED));
	errno = saved;
	return cuf_alloc_done(call, &request, result, ptr);
}

CUresult cuf_hook_cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
	CUF_CALL(cuIpcOpenMemHandle_v2);
	CUresult result = cuf_real.cuIpcOpenMemHandle_v2(out, handle, flags);
	return ipc_opened(&call, result, out);
}

CUresult cuf_hook_cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
	CUF_CALL(cuIpcOpenMemHandle);
	CUresult result = cuf_real.cuIpcOpenMemHandle(out, handle, flags);
	return ipc_opened(&call, result, out);
}

CUresult cuf_hook_cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	struct cuf_release release;
	CUF_CALL(cuIpcCloseMemHandle);
	cuf_release_begin(&call, &release, CUF_SPACE_DEVICE, ptr, 1, 0);
	CUresult result = cuf_real.cuIpcCloseMemHandle(ptr);
	if (result != CUDA_SUCCESS)
		cuf_release_undo(&call, &release);
	return cuf_done(&call, result);
}

/* ---- external memory ---- */

static int objects_imported; /* ever: without any, cuMemFree need not look for buffers of one */

CUresult cuf_hook_cuImportExternalMemory(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
	CUF_CALL(cuImportExternalMemory);
	CUresult result = cuf_real.cuImportExternalMemory(out, desc);
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_IMPORTED, desc ? desc->size : 0, CUF_EVENT_CONTEXT_BOUND);
	__atomic_store_n(&objects_imported, 1, __ATOMIC_RELAXED);
	return cuf_alloc_done(&call, &request, result, result == CUDA_SUCCESS && out ? (uint64_t)(uintptr_t)*out : 0);
}

/* Views live with what keeps them: destroyed is the object, not the buffers mapped from it. */
CUresult cuf_hook_cuDestroyExternalMemory(CUexternalMemory memory)
{
	struct cuf_release release;
	CUF_CALL(cuDestroyExternalMemory);
	cuf_release_begin(&call, &release, CUF_SPACE_DEVICE, (uint64_t)(uintptr_t)memory, 1, 0);
	CUresult result = cuf_real.cuDestroyExternalMemory(memory);
	if (result != CUDA_SUCCESS)
		cuf_release_undo(&call, &release);
	return cuf_done(&call, result);
}

static CUresult view_done(struct cuf_call *call, unsigned kind, uint64_t bytes, CUexternalMemory memory, CUresult result, uint64_t addr)
{
	struct cuf_block object;
	struct cuf_request request = cuf_request_here(call, kind, bytes, CUF_EVENT_CONTEXT_BOUND);
	request.aux = (uint64_t)(uintptr_t)memory;
	if (call->thread && result == CUDA_SUCCESS)
		cuf_block_add_refs(call, CUF_SPACE_DEVICE, request.aux, 0, 1, &object);
	return cuf_alloc_done(call, &request, result, addr);
}

CUresult cuf_hook_cuExternalMemoryGetMappedBuffer(CUdeviceptr *out, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	CUF_CALL(cuExternalMemoryGetMappedBuffer);
	CUresult result = cuf_real.cuExternalMemoryGetMappedBuffer(out, memory, desc);
	return view_done(&call, CUF_KIND_MAPPING, desc ? desc->size : 0, memory, result, result == CUDA_SUCCESS && out ? *out : 0);
}

CUresult cuf_hook_cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *out, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc)
{
	CUF_CALL(cuExternalMemoryGetMappedMipmappedArray);
	CUresult result = cuf_real.cuExternalMemoryGetMappedMipmappedArray(out, memory, desc);
	return view_done(&call, CUF_KIND_ARRAY, 0, memory, result, result == CUDA_SUCCESS && out ? (uint64_t)(uintptr_t)*out : 0);
}

bool cuf_external_buffer_free(struct cuf_call *call, uint64_t addr, struct cuf_block *buffer, struct cuf_release *object)
{
	struct cuf_block owner;
	if (!__atomic_load_n(&objects_imported, __ATOMIC_RELAXED) || !cuf_block_find(CUF_SPACE_MAPPING, addr, buffer) ||
	    !cuf_block_find(CUF_SPACE_DEVICE, buffer->aux, &owner) || owner.kind != CUF_KIND_IMPORTED ||
	    !cuf_block_free(call, CUF_SPACE_MAPPING, addr, buffer))
		return false;
	cuf_release_begin(call, object, CUF_SPACE_DEVICE, buffer->aux, 0, 1);
	return true;
}
