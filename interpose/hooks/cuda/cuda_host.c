/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned host memory, and host memory of others that is pinned by registering it. A class of its own: it is no device
 * memory, and registered bytes are counted by the malloc family or a map already.
 */
#include "interpose/hooks/cuda/cuda.h"

CUresult cuf_hook_cuMemHostAlloc(void **out, size_t bytes, unsigned int flags)
{
	CUF_CALL(cuMemHostAlloc);
	CUresult result = cuf_real.cuMemHostAlloc(out, bytes, flags);
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_PINNED, bytes, CUF_EVENT_CONTEXT_BOUND);
	return cuf_alloc_done(&call, &request, result, result == CUDA_SUCCESS && out ? (uint64_t)(uintptr_t)*out : 0);
}

CUresult cuf_hook_cuMemAllocHost_v2(void **out, size_t bytes)
{
	CUF_CALL(cuMemAllocHost_v2);
	CUresult result = cuf_real.cuMemAllocHost_v2(out, bytes);
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_PINNED, bytes, CUF_EVENT_CONTEXT_BOUND);
	return cuf_alloc_done(&call, &request, result, result == CUDA_SUCCESS && out ? (uint64_t)(uintptr_t)*out : 0);
}

CUresult cuf_hook_cuMemAllocHost(void **out, unsigned int bytes)
{
	CUF_CALL(cuMemAllocHost);
	CUresult result = cuf_real.cuMemAllocHost(out, bytes);
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_PINNED, bytes, CUF_EVENT_CONTEXT_BOUND);
	return cuf_alloc_done(&call, &request, result, result == CUDA_SUCCESS && out ? (uint64_t)(uintptr_t)*out : 0);
}

CUresult cuf_hook_cuMemFreeHost(void *ptr)
{
	struct cuf_block block;
	CUF_CALL(cuMemFreeHost);
	bool taken = cuf_free_begin(&call, CUF_SPACE_HOST, (uint64_t)(uintptr_t)ptr, &block);
	CUresult result = cuf_real.cuMemFreeHost(ptr);
	return cuf_free_done(&call, taken ? &block : NULL, result);
}

CUresult cuf_hook_cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned int flags)
{
	CUF_CALL(cuMemHostRegister_v2);
	CUresult result = cuf_real.cuMemHostRegister_v2(ptr, bytes, flags);
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_REGISTERED, bytes, CUF_EVENT_CONTEXT_BOUND);
	return cuf_alloc_done(&call, &request, result, (uint64_t)(uintptr_t)ptr);
}

CUresult cuf_hook_cuMemHostRegister(void *ptr, size_t bytes, unsigned int flags)
{
	CUF_CALL(cuMemHostRegister);
	CUresult result = cuf_real.cuMemHostRegister(ptr, bytes, flags);
	struct cuf_request request = cuf_request_here(&call, CUF_KIND_REGISTERED, bytes, CUF_EVENT_CONTEXT_BOUND);
	return cuf_alloc_done(&call, &request, result, (uint64_t)(uintptr_t)ptr);
}

/* Makes it pageable again; the memory itself stays with its owner. */
CUresult cuf_hook_cuMemHostUnregister(void *ptr)
{
	struct cuf_block block;
	CUF_CALL(cuMemHostUnregister);
	bool taken = cuf_free_begin(&call, CUF_SPACE_HOST, (uint64_t)(uintptr_t)ptr, &block);
	CUresult result = cuf_real.cuMemHostUnregister(ptr);
	return cuf_free_done(&call, taken ? &block : NULL, result);
}
