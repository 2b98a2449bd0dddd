/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays. Rows are padded to 512 bytes, like pitched memory; the real padding is not
 * documented. A deferred array takes no memory until memory is mapped to it. As in the real driver,
 * only deferred arrays have memory requirements.
 */
#include <string.h>

#include "tests/sim/driver.h"

enum { FLAG_LAYERED = 1, FLAG_CUBEMAP = 4, FLAG_SPARSE = 0x40, FLAG_DEFERRED = 0x80, LEVELS_MAX = 20 };

static unsigned element_bytes(int format)
{
	switch (format) {
	case 0x01: case 0x08: return 1; /* (un)signed 8-bit */
	case 0x02: case 0x09: case 0x10: return 2; /* 16-bit, half */
	case 0x03: case 0x0a: case 0x20: return 4; /* 32-bit, float */
	default: return 0;
	}
}

static uint64_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned level)
{
	bool layers = desc->Flags & (FLAG_LAYERED | FLAG_CUBEMAP);
	uint64_t width = desc->Width >> level, height = desc->Height >> level, depth = layers ? desc->Depth : desc->Depth >> level;
	return round_up((width ? width : 1) * desc->NumChannels * element_bytes(desc->Format), SLOT_BYTES) * (height ? height : 1) *
	       (depth ? depth : 1);
}

static CUresult create(uint64_t *out, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
	struct object *context;
	struct place place = {0, 0, NULL};
	uint64_t bytes = 0;
	CUresult result = context_current(&context);
	if (result)
		return result;
	if (!out || !desc->Width || !levels || levels > LEVELS_MAX || !element_bytes(desc->Format) || !desc->NumChannels || desc->NumChannels > 4)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned level = 0; level < levels; level++)
		bytes += level_bytes(desc, level);
	bool deferred = desc->Flags & (FLAG_DEFERRED | FLAG_SPARSE);
	if (!deferred && (result = place_take(context, bytes, &place)) != 0)
		return result;
	struct object *array = object_new(KIND_ARRAY, 0);
	array->bytes = array->requested = bytes;
	array->device = context->device;
	array->context = context;
	array->array.desc = *desc;
	array->array.place = place;
	array->array.deferred = deferred;
	*out = array->addr;
	return 0;
}

static CUresult create_flat(CUarray *out, size_t width, size_t height, int format, unsigned channels)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {width, height, 0, format, channels, 0};
	uint64_t handle;
	CUresult result = create(&handle, &desc, 1);
	if (!result)
		*out = (CUarray)(uintptr_t)handle;
	return result;
}

static CUresult create_deep(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	uint64_t handle;
	CUresult result = create(&handle, desc, 1);
	if (!result)
		*out = (CUarray)(uintptr_t)handle;
	return result;
}

static CUresult create_old(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *old)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {old->Width, old->Height, old->Depth, old->Format, old->NumChannels, old->Flags};
	return create_deep(out, &desc);
}

static CUresult create_mipmapped(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
	uint64_t handle;
	CUresult result = create(&handle, desc, levels);
	if (!result) {
		*out = (CUmipmappedArray)(uintptr_t)handle;
		object_find(KIND_ARRAY, handle)->flags = levels;
	}
	return result;
}

void array_free(struct object *array)
{
	if (!array->array.deferred)
		place_give(array->device, &array->array.place);
	object_delete(array);
}

static CUresult destroy(const void *handle, bool mipmapped)
{
	struct object *array = object_find(KIND_ARRAY, (uint64_t)(uintptr_t)handle);
	if (!array || (array->flags != 0) != mipmapped)
		return CUDA_ERROR_INVALID_HANDLE;
	array_free(array);
	return 0;
}

static CUresult describe(CUDA_ARRAY3D_DESCRIPTOR *out, const void *handle)
{
	struct object *array = object_find(KIND_ARRAY, (uint64_t)(uintptr_t)handle);
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	*out = array->array.desc;
	return 0;
}

static CUresult describe_flat(CUDA_ARRAY_DESCRIPTOR *out, CUarray handle)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;
	CUresult result = describe(&desc, handle);
	if (!result)
		*out = (CUDA_ARRAY_DESCRIPTOR){desc.Width, desc.Height, desc.Format, desc.NumChannels};
	return result;
}

static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, const void *handle)
{
	struct object *array = object_find(KIND_ARRAY, (uint64_t)(uintptr_t)handle);
	if (!array || !array->array.deferred)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUDA_ARRAY_MEMORY_REQUIREMENTS){round_up(array->bytes, PAGE_BYTES), PAGE_BYTES, {0}};
	return 0;
}

CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *desc)
	CALL("cuArrayCreate", CALL_UNSAFE, create_flat(out, desc->Width, desc->Height, desc->Format, desc->NumChannels))
CUresult cuArrayCreate(CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *desc)
	CALL("cuArrayCreate", CALL_UNSAFE, create_flat(out, desc->Width, desc->Height, desc->Format, desc->NumChannels))
CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc) CALL("cuArray3DCreate", CALL_UNSAFE, create_deep(out, desc))
CUresult cuArray3DCreate(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *desc) CALL("cuArray3DCreate", CALL_UNSAFE, create_old(out, desc))
CUresult cuArrayDestroy(CUarray array) CALL("cuArrayDestroy", CALL_UNSAFE, destroy(array, false))
CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels)
	CALL("cuMipmappedArrayCreate", CALL_UNSAFE, create_mipmapped(out, desc, levels))
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) CALL("cuMipmappedArrayDestroy", CALL_UNSAFE, destroy(array, true))
EXPORT(cuArrayGetDescriptor_v2, (CUDA_ARRAY_DESCRIPTOR *out, CUarray array))
	CALL("cuArrayGetDescriptor", CALL_PLAIN, describe_flat(out, array))
EXPORT(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR *out, CUarray array))
	CALL("cuArray3DGetDescriptor", CALL_PLAIN, describe(out, array))
EXPORT(cuArrayGetMemoryRequirements, (CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray array, CUdevice device))
	CALL("cuArrayGetMemoryRequirements", CALL_PLAIN, requirements(out, array))
EXPORT(cuMipmappedArrayGetMemoryRequirements, (CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUmipmappedArray array, CUdevice device))
	CALL("cuMipmappedArrayGetMemoryRequirements", CALL_PLAIN, requirements(out, array))
