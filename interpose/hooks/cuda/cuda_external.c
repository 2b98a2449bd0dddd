/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of other owners: legacy IPC, and external memory (Vulkan, D3D, other drivers).
 *
 * An opened IPC handle is a counted mapping of the exporter's whole block. An external memory
 * object owns the bytes. Buffers and arrays mapped from it are views: entries without bytes that
 * keep the object alive until they are freed themselves, even after the object was destroyed.
 *
 * Entries of this file: IMPORTED for a mapping or an object (references, maps), MAPPING and ARRAY
 * for the views. A view's aux is its object.
 *
 * cuMemFree frees a mapped buffer, and cuMipmappedArrayDestroy a mapped array. So their hooks in
 * other files look here whether a block is a view.
 */
#include "interpose/hooks/cuda/cuda.h"

/* ---- legacy IPC ---- */

void cuf_block_exported(CUdeviceptr ptr)
{
	CUdeviceptr base = ptr;
	size_t bytes;
	struct cuf_block block;
	if (!cuf_block_find(CUF_SPACE_DEVICE, ptr, 0, &block))
		cuf_range_of(ptr, &base, &bytes);
	cuf_block_find(CUF_SPACE_DEVICE, base, CUF_EVENT_EXPORTED, NULL);
}

CUresult cuf_hook_cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr ptr)
{
	CUF_CALL(cuIpcGetMemHandle);
	CUresult result = cuf_real.cuIpcGetMemHandle(out, ptr);
	int saved = errno;
	if (call.thread && result == CUDA_SUCCESS)
		cuf_block_exported(ptr);
	errno = saved;
	return cuf_done(&call, result);
}

/* A handle that was opened before gives the same mapping again: one more reference. */
static bool is_opened_again(uint64_t addr)
{
	struct cuf_block block;
	return cuf_block_find(CUF_SPACE_DEVICE, addr, 0, &block) && block.kind == CUF_KIND_IMPORTED;
}

/* The bytes belong to the exporter, so they are counted as imported. Where the driver does not
 * report the range, the size is unknown and marked as an estimate. */
static CUresult ipc_opened(struct cuf_call *call, CUresult result, const CUdeviceptr *out)
{
	uint64_t addr = cuf_output(result, out);
	CUdeviceptr base;
	size_t bytes = 0;
	unsigned flags = CUF_EVENT_CONTEXT_BOUND;
	struct cuf_block block;
	struct cuf_request request;
	int saved = errno;
	if (call->thread && addr && is_opened_again(addr)) {
		cuf_block_add_refs(call, CUF_SPACE_DEVICE, addr, 1, 0, &block);
		errno = saved;
		return cuf_done(call, result);
	}
	if (!call->thread || !addr || !cuf_range_of(addr, &base, &bytes))
		flags |= CUF_EVENT_ESTIMATED;
	request = cuf_request_here(call, CUF_KIND_IMPORTED, bytes, flags);
	errno = saved;
	return cuf_alloc_done(call, &request, result, addr);
}

CUresult cuf_hook_cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
	CUF_CALL(cuIpcOpenMemHandle_v2);
	CUresult result = cuf_real.cuIpcOpenMemHandle_v2(out, handle, flags);
	return ipc_opened(&call, result, out);
}

/* The runtime looks up both versions (4010 and 11000). */
CUresult cuf_hook_cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
	CUF_CALL(cuIpcOpenMemHandle);
	CUresult result = cuf_real.cuIpcOpenMemHandle(out, handle, flags);
	return ipc_opened(&call, result, out);
}

/* The mapping ends with its last reference. */
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

/* Whether this process ever imported memory. Otherwise the frees of unknown addresses need no look
 * at the mappings. */
static int objects_imported;

/* The size is the one in the descriptor. The object belongs to the context in which it was
 * imported, and is destroyed with it. */
CUresult cuf_hook_cuImportExternalMemory(CUexternalMemory *out,
					 const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
	uint64_t bytes = 0;
	CUF_CALL(cuImportExternalMemory);
	CUresult result = cuf_real.cuImportExternalMemory(out, desc);
	if (desc)
		bytes = desc->size;
	struct cuf_request request =
		cuf_request_here(&call, CUF_KIND_IMPORTED, bytes, CUF_EVENT_CONTEXT_BOUND);
	__atomic_store_n(&objects_imported, 1, __ATOMIC_RELAXED);
	return cuf_alloc_done(&call, &request, result, cuf_output_pointer(result, out));
}

/* Destroys the object, but not the views mapped from it. */
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

/* A view is an entry with one map count on its object (aux). The object owns the bytes. */
static CUresult view_done(struct cuf_call *call, unsigned kind, uint64_t bytes,
			  CUexternalMemory memory, CUresult result, uint64_t addr)
{
	struct cuf_block object;
	struct cuf_request request = cuf_request_here(call, kind, bytes, CUF_EVENT_CONTEXT_BOUND);
	request.aux = (uint64_t)(uintptr_t)memory;
	if (call->thread && result == CUDA_SUCCESS)
		cuf_block_add_refs(call, CUF_SPACE_DEVICE, request.aux, 0, 1, &object);
	return cuf_alloc_done(call, &request, result, addr);
}

/* The program frees the buffer with cuMemFree. cuDestroyExternalMemory does not free it. */
CUresult cuf_hook_cuExternalMemoryGetMappedBuffer(CUdeviceptr *out, CUexternalMemory memory,
						  const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	uint64_t bytes = 0;
	CUF_CALL(cuExternalMemoryGetMappedBuffer);
	CUresult result = cuf_real.cuExternalMemoryGetMappedBuffer(out, memory, desc);
	if (desc)
		bytes = desc->size;
	return view_done(&call, CUF_KIND_MAPPING, bytes, memory, result, cuf_output(result, out));
}

/* 0 bytes: the driver reports no size for the array, and its memory is counted in the object. */
CUresult cuf_hook_cuExternalMemoryGetMappedMipmappedArray(
	CUmipmappedArray *out, CUexternalMemory memory,
	const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc)
{
	CUF_CALL(cuExternalMemoryGetMappedMipmappedArray);
	CUresult result = cuf_real.cuExternalMemoryGetMappedMipmappedArray(out, memory, desc);
	return view_done(&call, CUF_KIND_ARRAY, 0, memory, result, cuf_output_pointer(result, out));
}

/* Removes the view first and its count on the object second. In the other order the object could
 * die while a view still refers to it. *buffer and *object are for the undo. */
bool cuf_external_buffer_free(struct cuf_call *call, uint64_t addr, struct cuf_block *buffer,
			      struct cuf_release *object)
{
	struct cuf_block owner;
	if (!__atomic_load_n(&objects_imported, __ATOMIC_RELAXED))
		return false;
	if (!cuf_block_find(CUF_SPACE_MAPPING, addr, 0, buffer) ||
	    !cuf_block_find(CUF_SPACE_DEVICE, buffer->aux, 0, &owner) ||
	    owner.kind != CUF_KIND_IMPORTED)
		return false;
	if (!cuf_block_free(call, CUF_SPACE_MAPPING, addr, buffer)) /* another thread was first */
		return false;
	cuf_release_begin(call, object, CUF_SPACE_DEVICE, buffer->aux, 0, 1);
	return true;
}
