/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's memory calls: each is one call of the driver, with a small conversion where the two
 * differ.
 */
#include "tests/sim/runtime/runtime.h"

cudaError_t cudaMalloc(void **out, size_t bytes)
{
	if (!out)
		return leave(cudaErrorInvalidValue);
	if (!bytes) {
		*out = NULL; /* not an error in the runtime, unlike in the driver */
		return leave(enter());
	}
	FORWARD(mem_alloc, (out, bytes))
}

cudaError_t cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height) FORWARD(mem_pitch, (out, pitch, width, height, 4))

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
	cudaError_t result = enter();
	if (!result)
		result = driver.mem_pitch(&out->ptr, &out->pitch, extent.width, extent.height * extent.depth, 4);
	if (!result) {
		out->xsize = extent.width;
		out->ysize = extent.height;
	}
	return leave(result);
}

cudaError_t cudaFree(void *ptr) FORWARD(mem_free, (ptr))
cudaError_t cudaMallocManaged(void **out, size_t bytes, unsigned int flags) FORWARD(mem_managed, (out, bytes, flags))
cudaError_t cudaMallocHost(void **out, size_t bytes) FORWARD(host_alloc, (out, bytes, 0))
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned int flags) FORWARD(host_alloc, (out, bytes, flags))
cudaError_t cudaFreeHost(void *ptr) FORWARD(host_free, (ptr))
cudaError_t cudaHostRegister(void *ptr, size_t bytes, unsigned int flags) FORWARD(host_register, (ptr, bytes, flags))
cudaError_t cudaHostUnregister(void *ptr) FORWARD(host_unregister, (ptr))

static CUDA_ARRAY3D_DESCRIPTOR array_desc(const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned flags)
{
	/* bytes -> CU_AD_FORMAT_UNSIGNED_INT8/16/32; signed ones are 7 more */
	static const int integer_format[] = {0, 1, 2, 0, 3};
	int bytes = desc->x / 8, format = bytes > 0 && bytes <= 4 ? integer_format[bytes] : 0;
	unsigned channels = (desc->x > 0) + (desc->y > 0) + (desc->z > 0) + (desc->w > 0);
	if (desc->f == 2)
		format = bytes == 2 ? 0x10 : 0x20;
	else if (desc->f == 0)
		format += 7;
	return (CUDA_ARRAY3D_DESCRIPTOR){extent.width, extent.height, extent.depth, format, channels, flags};
}

cudaError_t cudaMalloc3DArray(cudaArray_t *out, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR full = array_desc(desc, extent, flags);
	FORWARD(array_create, (out, &full))
}

cudaError_t cudaMallocArray(cudaArray_t *out, const struct cudaChannelFormatDesc *desc, size_t width, size_t height, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR full = array_desc(desc, (struct cudaExtent){width, height, 0}, flags);
	FORWARD(array_create, (out, &full))
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *out, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
                                     unsigned int levels, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR full = array_desc(desc, extent, flags);
	FORWARD(mipmapped_create, (out, &full, levels))
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
	if (!array)
		return leave(enter());
	FORWARD(array_destroy, (array))
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array)
{
	if (!array)
		return leave(enter());
	FORWARD(mipmapped_destroy, (array))
}

cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream) FORWARD(alloc_async, (out, bytes, stream))
cudaError_t cudaMallocAsync_ptsz(void **out, size_t bytes, cudaStream_t stream) FORWARD(alloc_async_threads, (out, bytes, stream))
cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
	FORWARD(alloc_pool, (out, bytes, pool, stream))
cudaError_t cudaMallocFromPoolAsync_ptsz(void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
	FORWARD(alloc_pool_threads, (out, bytes, pool, stream))
cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream) FORWARD(free_async, (ptr, stream))
cudaError_t cudaFreeAsync_ptsz(void *ptr, cudaStream_t stream) FORWARD(free_async_threads, (ptr, stream))

cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const struct cudaMemPoolProps *props) FORWARD(pool_create, (out, props))
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) FORWARD(pool_destroy, (pool))
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) FORWARD(pool_trim, (pool, keep))
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value) FORWARD(pool_set, (pool, attribute, value))
EXPORT(cudaMemPoolGetAttribute, (cudaMemPool_t pool, int attribute, void *value)) FORWARD(pool_get, (pool, attribute, value))
EXPORT(cudaDeviceGetDefaultMemPool, (cudaMemPool_t *out, int device)) FORWARD(pool_default, (out, device))
EXPORT(cudaDeviceGetMemPool, (cudaMemPool_t *out, int device)) FORWARD(pool_current, (out, device))
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) FORWARD(pool_select, (device, pool))
EXPORT(cudaMemPoolExportToShareableHandle, (void *out, cudaMemPool_t pool, int type, unsigned flags))
	FORWARD(pool_export, (out, pool, type, flags))
cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *out, void *handle, int type, unsigned int flags)
	FORWARD(pool_import, (out, handle, type, flags))
EXPORT(cudaMemPoolExportPointer, (void *out, void *ptr)) FORWARD(pointer_export, (out, ptr))
cudaError_t cudaMemPoolImportPointer(void **out, cudaMemPool_t pool, void *data) FORWARD(pointer_import, (out, pool, data))

EXPORT(cudaIpcGetMemHandle, (cudaIpcMemHandle_t *out, void *ptr)) FORWARD(ipc_get, (out, ptr))
cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle, unsigned int flags) FORWARD(ipc_open, (out, handle, flags))
cudaError_t cudaIpcCloseMemHandle(void *ptr) FORWARD(ipc_close, (ptr))
cudaError_t cudaImportExternalMemory(cudaExternalMemory_t *out, const void *desc) FORWARD(external_import, (out, desc))
cudaError_t cudaExternalMemoryGetMappedBuffer(void **out, cudaExternalMemory_t memory, const void *desc)
	FORWARD(external_buffer, (out, memory, desc))
cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t memory) FORWARD(external_destroy, (memory))

/* device memory has nothing behind it here */
EXPORT(cudaMemcpy, (void *to, const void *from, size_t bytes, int kind)) { return leave(enter()); }
EXPORT(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, int kind, cudaStream_t stream)) { return leave(enter()); }
EXPORT(cudaMemset, (void *ptr, int value, size_t bytes)) { return leave(enter()); }
EXPORT(cudaMemsetAsync, (void *ptr, int value, size_t bytes, cudaStream_t stream)) { return leave(enter()); }
