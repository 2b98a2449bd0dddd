/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver of a few counters behind the real hooks and the real core: each function answers what the test says, so that
 * refusals, absences and odd outputs can be had that no simulated device gives. Included by one-file tests.
 *
 * Contract: fake_start once a process; fake.result is what the next real calls answer, fake.out what they hand out.
 */
#ifndef FAKE_H
#define FAKE_H

#include "tests/unit/core/fixture.h"
#include "interpose/store/ledger.h"
#include "interpose/hooks/malloc/allocator.h"
#include "interpose/hooks/cuda/cuda.h"
#include "interpose/hooks/framework/framework.h"
#include "interpose/hooks/cuda/gpu_processes.h"

struct cuf_real cuf_real;
struct cuf_query cuf_query;

static struct {
	CUresult result;
	uint64_t out;
	int device;              /* current; -1 none */
	CUcontext context;       /* current */
	uint64_t free_bytes;
	int active;              /* of the primary context */
	bool capturing, context_dead;
	CUstreamCaptureMode mode;
	int pushed, retained, calls;
	bool last_user;          /* the program's own release of the primary context is the last */
	uint64_t reserved, used, threshold;
	uint64_t graph_reserved, graph_used;
	uint64_t grants_bytes;   /* cuMemCreate: the largest that succeeds; 0: by result */
	size_t array_bytes, range_bytes;
} fake;

#define TOTAL_BYTES (16ull << 30)
#define UNIT_BYTES (2ull << 20)
#define PRIMARY ((CUcontext)0x9000)

/* driver.h, without a libcuda */
bool cuf_driver_has(void *const *slot) { return cuf_slot_load(slot) != NULL; }
int cuf_driver_refusal(void) { return CUDA_ERROR_NOT_FOUND; }
/* allocator.h, tenants.h and framework.h, without one */
void cuf_allocator_read(enum cuf_moment moment, void *frame) {}
void cuf_gpu_processes_read(unsigned device, uint64_t incident, void *frame) {}
void cuf_framework_check_blind(void) {}
void cuf_framework_look(void) {}
void cuf_framework_streams(void) {}
void cuf_driver_greet_again(void) {}

static CUresult answer(void *out, size_t bytes)
{
	fake.calls++;
	if (fake.result == CUDA_SUCCESS && out)
		memcpy(out, &fake.out, bytes);
	return fake.result;
}

/* ---- queries ---- */

static CUresult get_current(CUcontext *out) { *out = fake.context; return CUDA_SUCCESS; }
static CUresult get_device(CUdevice *out)
{
	if (fake.device < 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	*out = fake.device;
	return CUDA_SUCCESS;
}
static CUresult push(CUcontext context)
{
	fake.pushed++;
	fake.device = 0;
	fake.context = context;
	return CUDA_SUCCESS;
}
static CUresult pop(CUcontext *out)
{
	fake.pushed--;
	*out = fake.context;
	fake.device = -1;
	fake.context = NULL;
	return CUDA_SUCCESS;
}
static CUresult primary_state(CUdevice device, unsigned *flags, int *active) { *flags = 0; *active = fake.active; return CUDA_SUCCESS; }
static CUresult primary_retain(CUcontext *out, CUdevice device) { fake.retained++; *out = PRIMARY; return CUDA_SUCCESS; }
static CUresult primary_drop(CUdevice device)
{
	if (--fake.retained < 0 && fake.last_user)
		fake.active = 0;
	return fake.result;
}
static CUresult exchange(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode old = fake.mode;
	fake.mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}
static CUresult memory_info(size_t *free_bytes, size_t *total_bytes)
{
	assert_int_equal(fake.mode, CU_STREAM_CAPTURE_MODE_RELAXED);
	*free_bytes = fake.free_bytes;
	*total_bytes = TOTAL_BYTES;
	errno = EBADF; /* a query of ours must not be seen by the program */
	return CUDA_SUCCESS;
}
static CUresult granularity(size_t *bytes, const CUmemAllocationProp *prop, int which) { *bytes = UNIT_BYTES; return CUDA_SUCCESS; }
static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status) { *status = fake.capturing; return CUDA_SUCCESS; }
static CUresult pool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	*(uint64_t *)value = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? fake.reserved :
			     attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? fake.used : fake.threshold;
	return CUDA_SUCCESS;
}
static CUresult device_pool(CUmemoryPool *out, CUdevice device) { *out = (CUmemoryPool)0xd00; return CUDA_SUCCESS; }
static CUresult graph_attribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
	*(uint64_t *)value = attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT ? fake.graph_reserved : fake.graph_used;
	return CUDA_SUCCESS;
}
static CUresult array_requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray array, CUdevice device)
{
	out->size = fake.array_bytes;
	return fake.array_bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
static CUresult address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr) { *base = ptr; *bytes = fake.range_bytes; return CUDA_SUCCESS; }
static CUresult api_version(CUcontext context, unsigned *version) { return fake.context_dead ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS; }
static CUresult device_count(int *count) { *count = 2; return CUDA_SUCCESS; }

/* ---- interposed functions, those that the tests call ---- */

static CUresult real_alloc(CUdeviceptr *out, size_t bytes) { return answer(out, sizeof *out); }
static CUresult real_pitch(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
	if (fake.result == CUDA_SUCCESS && pitch)
		*pitch = (width + 511) & ~511ull;
	return answer(out, sizeof *out);
}
static CUresult real_free(CUdeviceptr ptr) { return answer(NULL, 0); }
static CUresult real_async(CUdeviceptr *out, size_t bytes, CUstream stream) { return answer(out, sizeof *out); }
static CUresult real_free_async(CUdeviceptr ptr, CUstream stream) { return answer(NULL, 0); }
static CUresult real_pool_create(CUmemoryPool *out, const CUmemPoolProps *props) { return answer(out, sizeof *out); }
static CUresult real_pool_destroy(CUmemoryPool pool) { return answer(NULL, 0); }
static CUresult real_pool_set(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) { return answer(NULL, 0); }
static CUresult real_create(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags)
{
	if (fake.grants_bytes)
		return bytes <= fake.grants_bytes ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	return answer(out, sizeof *out);
}
static CUresult real_release(CUmemGenericAllocationHandle handle) { return answer(NULL, 0); }
static CUresult real_retain(CUmemGenericAllocationHandle *out, void *addr) { return answer(out, sizeof *out); }
static CUresult real_import(CUmemGenericAllocationHandle *out, void *shareable, CUmemAllocationHandleType type) { return answer(out, sizeof *out); }
static CUresult real_map(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags) { return answer(NULL, 0); }
static CUresult real_unmap(CUdeviceptr ptr, size_t bytes) { return answer(NULL, 0); }
static CUresult real_bind(CUmemGenericAllocationHandle multicast, size_t at, CUmemGenericAllocationHandle handle, size_t offset, size_t bytes, unsigned long long flags)
{
	return answer(NULL, 0);
}
static CUresult real_unbind(CUmemGenericAllocationHandle multicast, CUdevice device, size_t at, size_t bytes) { return answer(NULL, 0); }
static CUresult real_array(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc) { return answer(out, sizeof *out); }
static CUresult real_mipmap(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels) { return answer(out, sizeof *out); }
static CUresult real_array_destroy(CUarray array) { return answer(NULL, 0); }
static CUresult real_ipc_open(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags) { return answer(out, sizeof *out); }
static CUresult real_external(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc) { return answer(out, sizeof *out); }
static CUresult real_external_buffer(CUdeviceptr *out, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc) { return answer(out, sizeof *out); }
static CUresult real_external_destroy(CUexternalMemory memory) { return answer(NULL, 0); }
static CUresult real_context(CUcontext context) { return answer(NULL, 0); }
static CUresult real_begin(CUstream stream, CUstreamCaptureMode mode) { return answer(NULL, 0); }
static CUresult real_end(CUstream stream, CUgraph *out) { return answer(NULL, 0); }
static CUresult real_launch(CUgraphExec exec, CUstream stream) { return answer(NULL, 0); }
static CUresult real_limit(CUlimit limit, size_t value)
{
	fake.free_bytes -= value; /* the driver takes it for itself */
	return answer(NULL, 0);
}
static CUresult real_kernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
			    CUstream stream, void **params, void **extra)
{
	return answer(NULL, 0);
}

static inline void fake_reset(void)
{
	memset(&fake, 0, sizeof fake);
	fake.context = PRIMARY;
	fake.free_bytes = 1ull << 30;
	fake.active = 1;
	fake.mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
}

static inline void fake_start(const char *options)
{
	cuf_query = (struct cuf_query){
		.cuCtxGetCurrent = get_current, .cuCtxGetDevice = get_device, .cuCtxPushCurrent_v2 = push, .cuCtxPopCurrent_v2 = pop,
		.cuDevicePrimaryCtxGetState = primary_state, .cuThreadExchangeStreamCaptureMode = exchange,
		.cuMemGetAllocationGranularity = granularity, .cuStreamIsCapturing = is_capturing, .cuMemPoolGetAttribute = pool_attribute,
		.cuDeviceGetMemPool = device_pool, .cuDeviceGetGraphMemAttribute = graph_attribute,
		.cuArrayGetMemoryRequirements = array_requirements, .cuMemGetAddressRange_v2 = address_range,
		.cuCtxGetApiVersion = api_version, .cuDeviceGetCount = device_count,
	};
	cuf_real = (struct cuf_real){
		.cuMemGetInfo_v2 = memory_info, .cuMemAlloc_v2 = real_alloc, .cuMemAllocPitch_v2 = real_pitch, .cuMemFree_v2 = real_free,
		.cuMemAllocAsync = real_async, .cuMemFreeAsync = real_free_async, .cuMemPoolCreate = real_pool_create,
		.cuMemPoolDestroy = real_pool_destroy, .cuMemPoolSetAttribute = real_pool_set, .cuMemCreate = real_create,
		.cuMemRelease = real_release, .cuMemRetainAllocationHandle = real_retain, .cuMemImportFromShareableHandle = real_import,
		.cuMemMap = real_map, .cuMemUnmap = real_unmap, .cuMulticastBindMem = real_bind, .cuMulticastUnbind = real_unbind,
		.cuArray3DCreate_v2 = real_array, .cuMipmappedArrayCreate = real_mipmap, .cuArrayDestroy = real_array_destroy,
		.cuIpcOpenMemHandle_v2 = real_ipc_open, .cuIpcCloseMemHandle = real_free, .cuImportExternalMemory = real_external,
		.cuExternalMemoryGetMappedBuffer = real_external_buffer, .cuDestroyExternalMemory = real_external_destroy,
		.cuCtxDestroy_v2 = real_context, .cuCtxDetach = real_context, .cuDevicePrimaryCtxRetain = primary_retain,
		.cuDevicePrimaryCtxRelease_v2 = primary_drop, .cuDevicePrimaryCtxReset_v2 = primary_drop,
		.cuStreamBeginCapture_v2 = real_begin, .cuStreamEndCapture = real_end, .cuGraphLaunch = real_launch,
		.cuCtxSetLimit = real_limit, .cuLaunchKernel = real_kernel,
	};
	fake_reset();
	fixture_start(options, "/nonexistent-directory/");
}

/* ---- what the ledger says ---- */

static inline bool is_live(unsigned space, uint64_t addr)
{
	struct cuf_block block;
	return cuf_block_find(space, addr, &block);
}

static inline struct cuf_block block_at(unsigned space, uint64_t addr)
{
	struct cuf_block block = { 0 };
	assert_true(cuf_block_find(space, addr, &block));
	return block;
}

static inline uint64_t live_bytes(unsigned kind) { return cuf_recording.devices[0].live_bytes[kind]; }

#endif
