/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page-locked host memory: allocated by the driver (pinned), or the program's and locked by it
 * (registered). It is no device memory. Registered bytes were counted before, by the malloc family
 * or as a map, so the two kinds are never added to host memory.
 *
 * Runtime functions that end here: cudaMallocHost and cudaHostAlloc (both through cuMemHostAlloc),
 * cudaFreeHost, cudaHostRegister, cudaHostUnregister. A program must unregister memory before it
 * frees it.
 */
#include "interpose/hooks/cuda/cuda.h"

/* Pinned blocks are freed with their context, like device memory. */
static CUresult pinned_done(struct cuf_call *call, uint64_t bytes, CUresult result, void **out)
{
	struct cuf_request request =
		cuf_request_here(call, CUF_KIND_PINNED, bytes, CUF_EVENT_CONTEXT_BOUND);
	return cuf_alloc_done(call, &request, result, cuf_output_pointer(result, out));
}

/* cudaMallocHost calls this function too: the runtime never calls cuMemAllocHost. */
CUresult cuf_hook_cuMemHostAlloc(void **out, size_t bytes, unsigned int flags)
{
	CUF_CALL(cuMemHostAlloc);
	return pinned_done(&call, bytes, cuf_real.cuMemHostAlloc(out, bytes, flags), out);
}

CUresult cuf_hook_cuMemAllocHost_v2(void **out, size_t bytes)
{
	CUF_CALL(cuMemAllocHost_v2);
	return pinned_done(&call, bytes, cuf_real.cuMemAllocHost_v2(out, bytes), out);
}

/* The 32-bit interface: sizes below 4 GiB. */
CUresult cuf_hook_cuMemAllocHost(void **out, unsigned int bytes)
{
	CUF_CALL(cuMemAllocHost);
	return pinned_done(&call, bytes, cuf_real.cuMemAllocHost(out, bytes), out);
}

/* Memory that was allocated before the recorder started has no block. The call is passed on all the
 * same. */
CUresult cuf_hook_cuMemFreeHost(void *ptr)
{
	struct cuf_block block;
	CUF_CALL(cuMemFreeHost);
	bool freed = cuf_free_begin(&call, CUF_SPACE_HOST, (uint64_t)(uintptr_t)ptr, &block);
	CUresult result = cuf_real.cuMemFreeHost(ptr);
	return cuf_free_done(&call, freed, &block, result);
}

/* The address is the program's, so it is known before the call. */
static CUresult registered_done(struct cuf_call *call, const void *ptr, uint64_t bytes,
				CUresult result)
{
	struct cuf_request request =
		cuf_request_here(call, CUF_KIND_REGISTERED, bytes, CUF_EVENT_CONTEXT_BOUND);
	return cuf_alloc_done(call, &request, result, (uint64_t)(uintptr_t)ptr);
}

CUresult cuf_hook_cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned int flags)
{
	CUF_CALL(cuMemHostRegister_v2);
	return registered_done(&call, ptr, bytes, cuf_real.cuMemHostRegister_v2(ptr, bytes, flags));
}

/* The interface before CUDA 6.5, with the same arguments. */
CUresult cuf_hook_cuMemHostRegister(void *ptr, size_t bytes, unsigned int flags)
{
	CUF_CALL(cuMemHostRegister);
	return registered_done(&call, ptr, bytes, cuf_real.cuMemHostRegister(ptr, bytes, flags));
}

/* Makes the memory pageable again. It stays with its owner. */
CUresult cuf_hook_cuMemHostUnregister(void *ptr)
{
	struct cuf_block block;
	CUF_CALL(cuMemHostUnregister);
	bool freed = cuf_free_begin(&call, CUF_SPACE_HOST, (uint64_t)(uintptr_t)ptr, &block);
	CUresult result = cuf_real.cuMemHostUnregister(ptr);
	return cuf_free_done(&call, freed, &block, result);
}
