/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays and mipmapped arrays. The driver reports the size of some (memory requirements). That of
 * the others is estimated from the descriptor and marked as an estimate. Sparse and deferred arrays
 * are only addresses: their memory is mapped in from handles.
 *
 * Memory requirements exist since CUDA 11.6. Runtime functions that end here: cudaMallocArray,
 * cudaMalloc3DArray, cudaMallocMipmappedArray and their frees.
 */
#include "interpose/hooks/cuda/cuda.h"

/* ---- estimated sizes ---- */

enum { ARRAY_LAYERED = 0x01, ARRAY_CUBEMAP = 0x04, ARRAY_SPARSE = 0x40, ARRAY_DEFERRED = 0x80 };

/* Bytes of one channel, by CUarray_format. A format that is not here counts 4. */
static const struct { int format; unsigned bytes; } channel_bytes[] = {
	{ 0x01, 1 }, { 0x02, 2 }, { 0x03, 4 }, /* unsigned, 8, 16, 32 bits */
	{ 0x08, 1 }, { 0x09, 2 }, { 0x0a, 4 }, /* signed */
	{ 0x10, 2 }, { 0x20, 4 },              /* half, float */
};

/* Formats outside the table (packed, block-compressed, NV12) are rare. 4 bytes keep the estimate in
 * the right order of magnitude. */
static unsigned bytes_of_format(int format)
{
	for (unsigned i = 0; i < sizeof channel_bytes / sizeof *channel_bytes; i++)
		if (channel_bytes[i].format == format)
			return channel_bytes[i].bytes;
	return 4;
}

/* Descriptors have 0 for a dimension that an array does not have. */
static uint64_t at_least_one(uint64_t extent) { return extent ? extent : 1; }

/* Each mipmap level halves the extents, but not the number of layers. Sparse and deferred arrays
 * have no memory at creation: 0. */
static uint64_t estimate_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
	uint64_t width = at_least_one(desc->Width), height = at_least_one(desc->Height);
	uint64_t depth = at_least_one(desc->Depth), texels = 0;
	if (desc->Flags & (ARRAY_SPARSE | ARRAY_DEFERRED))
		return 0;
	for (unsigned level = 0; level < at_least_one(levels); level++) {
		texels += width * height * depth;
		width = at_least_one(width / 2);
		height = at_least_one(height / 2);
		if (!(desc->Flags & (ARRAY_LAYERED | ARRAY_CUBEMAP)))
			depth = at_least_one(depth / 2);
	}
	return texels * at_least_one(desc->NumChannels) * bytes_of_format(desc->Format);
}

/* Starts with the estimate. It stays when the driver does not report the size. */
static struct cuf_request array_request(struct cuf_call *call, const CUDA_ARRAY3D_DESCRIPTOR *desc,
					unsigned levels)
{
	uint64_t bytes = 0;
	if (desc)
		bytes = estimate_bytes(desc, levels);
	return cuf_request_here(call, CUF_KIND_ARRAY, bytes,
				CUF_EVENT_CONTEXT_BOUND | CUF_EVENT_ESTIMATED);
}

/* Replaces the estimate by what the driver reports. A size of 0 stays: sparse and deferred arrays
 * have requirements, but no memory yet. */
static void use_requirements(struct cuf_request *request, CUresult result,
			     const CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements)
{
	if (result != CUDA_SUCCESS || !requirements->size || !request->bytes)
		return;
	request->bytes = requirements->size;
	request->flags &= (uint8_t)~CUF_EVENT_ESTIMATED;
}

/* ---- arrays ---- */

/* The address of an array is its handle. It is queried in the current context, which the driver has
 * just used for it. */
static CUresult array_done(struct cuf_call *call, const CUDA_ARRAY3D_DESCRIPTOR *desc,
			   CUresult result, const CUarray *out)
{
	CUDA_ARRAY_MEMORY_REQUIREMENTS requirements = { 0 };
	struct cuf_request request = array_request(call, desc, 1);
	uint64_t addr = cuf_output_pointer(result, out);
	int saved = errno;
	if (call->thread && addr && request.device != CUF_DEVICE_NONE) {
		CUresult known = CUF_QUERY(cuArrayGetMemoryRequirements, &requirements,
					   (CUarray)addr, request.device);
		use_requirements(&request, known, &requirements);
	}
	errno = saved;
	return cuf_alloc_done(call, &request, result, addr);
}

/* The descriptors of the older functions, in the present shape. */
#define WIDEN_2D(desc) \
	{ (desc)->Width, (desc)->Height, 0, (desc)->Format, (desc)->NumChannels, 0 }
#define WIDEN_3D(desc) \
	{ (desc)->Width, (desc)->Height, (desc)->Depth, (desc)->Format, (desc)->NumChannels, \
	  (desc)->Flags }

/* The descriptor is copied only after the real call. The driver, not the recorder, is the first to
 * read it, so a wrong pointer fails as it does without us. */
CUresult cuf_hook_cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	CUF_CALL(cuArrayCreate_v2);
	CUresult result = cuf_real.cuArrayCreate_v2(out, desc);
	if (!desc)
		return array_done(&call, NULL, result, out);
	CUDA_ARRAY3D_DESCRIPTOR wide = WIDEN_2D(desc);
	return array_done(&call, &wide, result, out);
}

CUresult cuf_hook_cuArrayCreate(CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *desc)
{
	CUF_CALL(cuArrayCreate);
	CUresult result = cuf_real.cuArrayCreate(out, desc);
	if (!desc)
		return array_done(&call, NULL, result, out);
	CUDA_ARRAY3D_DESCRIPTOR wide = WIDEN_2D(desc);
	return array_done(&call, &wide, result, out);
}

CUresult cuf_hook_cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	CUF_CALL(cuArray3DCreate_v2);
	CUresult result = cuf_real.cuArray3DCreate_v2(out, desc);
	return array_done(&call, desc, result, out);
}

CUresult cuf_hook_cuArray3DCreate(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *desc)
{
	CUF_CALL(cuArray3DCreate);
	CUresult result = cuf_real.cuArray3DCreate(out, desc);
	if (!desc)
		return array_done(&call, NULL, result, out);
	CUDA_ARRAY3D_DESCRIPTOR wide = WIDEN_3D(desc);
	return array_done(&call, &wide, result, out);
}

/* The runtime's cudaFreeArray ends here. */
CUresult cuf_hook_cuArrayDestroy(CUarray array)
{
	struct cuf_block block;
	CUF_CALL(cuArrayDestroy);
	bool freed = cuf_free_begin(&call, CUF_SPACE_ARRAY, (uint64_t)(uintptr_t)array, &block);
	CUresult result = cuf_real.cuArrayDestroy(array);
	return cuf_free_done(&call, freed, &block, result);
}

/* ---- mipmapped arrays ---- */

/* One block for all levels. A level that cuMipmappedArrayGetLevel returns is a view of this
 * block. */
CUresult cuf_hook_cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc,
					 unsigned int levels)
{
	CUF_CALL(cuMipmappedArrayCreate);
	CUresult result = cuf_real.cuMipmappedArrayCreate(out, desc, levels);
	CUDA_ARRAY_MEMORY_REQUIREMENTS requirements = { 0 };
	struct cuf_request request = array_request(&call, desc, levels);
	uint64_t addr = cuf_output_pointer(result, out);
	int saved = errno;
	if (call.thread && addr && request.device != CUF_DEVICE_NONE) {
		CUresult known = CUF_QUERY(cuMipmappedArrayGetMemoryRequirements, &requirements,
					   (CUmipmappedArray)addr, request.device);
		use_requirements(&request, known, &requirements);
	}
	errno = saved;
	return cuf_alloc_done(&call, &request, result, addr);
}

/* An array mapped from external memory has no bytes itself. It keeps its memory object (aux)
 * alive. */
CUresult cuf_hook_cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	struct cuf_block block;
	struct cuf_release object = { .outcome = -1 };
	CUF_CALL(cuMipmappedArrayDestroy);
	bool freed = cuf_free_begin(&call, CUF_SPACE_ARRAY, (uint64_t)(uintptr_t)array, &block);
	if (freed && block.aux)
		cuf_release_begin(&call, &object, CUF_SPACE_DEVICE, block.aux, 0, 1);
	CUresult result = cuf_real.cuMipmappedArrayDestroy(array);
	if (result != CUDA_SUCCESS)
		cuf_release_undo(&call, &object);
	return cuf_free_done(&call, freed, &block, result);
}
