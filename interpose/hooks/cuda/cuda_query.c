/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns every question that the recorder asks the driver on its own. Each may be missing in an old driver, and each is
 * asked only where it disturbs nobody: in relaxed capture mode, in a context that is current or can be borrowed.
 */
#include "interpose/hooks/cuda/cuda.h"

#include <string.h>
#include "interpose/hooks/framework/framework.h"

/* The driver answers with the result alone; a missing function answers like one that failed. */
#define ASK(name, ...) (cuf_query.name ? cuf_query.name(__VA_ARGS__) : CUDA_ERROR_NOT_FOUND)
#define ASK_REAL(name, ...) (cuf_real.name ? cuf_real.name(__VA_ARGS__) : CUDA_ERROR_NOT_FOUND)

int cuf_captures_open;

CUcontext cuf_context_current(void)
{
	CUcontext context = NULL;
	return ASK(cuCtxGetCurrent, &context) == CUDA_SUCCESS ? context : NULL;
}

int cuf_device_current(void)
{
	CUdevice device = -1;
	return ASK(cuCtxGetDevice, &device) == CUDA_SUCCESS ? device : -1;
}

int cuf_device_total_count(void)
{
	static int known;
	int count = __atomic_load_n(&known, __ATOMIC_RELAXED);
	if (count <= 0 && ASK(cuDeviceGetCount, &count) == CUDA_SUCCESS)
		__atomic_store_n(&known, count, __ATOMIC_RELAXED);
	return count > 0 ? count : -1;
}

/* Retaining an active primary context only counts: it is released at once, and known by its address afterwards. */
static CUcontext primary_retain(int device)
{
	CUcontext context = NULL;
	unsigned flags;
	int active = 0;
	if (ASK(cuDevicePrimaryCtxGetState, device, &flags, &active) != CUDA_SUCCESS || !active)
		return NULL;
	return ASK_REAL(cuDevicePrimaryCtxRetain, &context, device) == CUDA_SUCCESS ? context : NULL;
}

static void primary_release(int device)
{
	if (cuf_real.cuDevicePrimaryCtxRelease_v2)
		cuf_real.cuDevicePrimaryCtxRelease_v2(device);
	else if (cuf_real.cuDevicePrimaryCtxRelease)
		cuf_real.cuDevicePrimaryCtxRelease(device);
}

CUcontext cuf_context_primary(int device)
{
	CUcontext context = primary_retain(device);
	if (context)
		primary_release(device);
	return context;
}

/* A context of this device for a moment: the current one, else its primary one if that is alive. */
struct loan { int device; bool lent, pushed; CUstreamCaptureMode mode; };

static bool borrow(int device, struct loan *loan)
{
	CUcontext context;
	*loan = (struct loan){ .device = device, .mode = CU_STREAM_CAPTURE_MODE_RELAXED };
	if (device < 0 || ASK(cuThreadExchangeStreamCaptureMode, &loan->mode) != CUDA_SUCCESS)
		return false;
	loan->lent = true;
	if (cuf_device_current() == device)
		return true;
	context = primary_retain(device);
	if (!context)
		return false;
	loan->pushed = ASK(cuCtxPushCurrent_v2, context) == CUDA_SUCCESS;
	if (!loan->pushed)
		primary_release(device);
	return loan->pushed;
}

static void give_back(struct loan *loan)
{
	CUcontext context;
	if (loan->pushed) {
		ASK(cuCtxPopCurrent_v2, &context);
		primary_release(loan->device);
	}
	if (loan->lent)
		ASK(cuThreadExchangeStreamCaptureMode, &loan->mode);
}

static bool memory_now(uint64_t *free_bytes, uint64_t *total_bytes)
{
	size_t free_now = 0, total = 0;
	if (ASK_REAL(cuMemGetInfo_v2, &free_now, &total) != CUDA_SUCCESS)
		return false;
	*free_bytes = free_now;
	*total_bytes = total;
	return true;
}

bool cuf_memory_of(int device, uint64_t *free_bytes, uint64_t *total_bytes)
{
	struct loan loan;
	bool told = borrow(device, &loan) && memory_now(free_bytes, total_bytes);
	give_back(&loan);
	return told;
}

static uint64_t granularity_of(int device)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
	size_t bytes = 0;
	return ASK(cuMemGetAllocationGranularity, &bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS && bytes ? bytes : CUF_UNKNOWN;
}

void cuf_device_introduce(int device)
{
	CUuuid uuid = { { 0 } };
	char name[64] = "", pci[16] = "";
	uint64_t free_bytes, total_bytes = CUF_UNKNOWN;
	size_t device_bytes = 0;
	if (device < 0 || cuf_device_known((unsigned)device))
		return;
	cuf_driver_greet_again();
	if (ASK(cuDeviceGetUuid_v2, &uuid, device) != CUDA_SUCCESS)
		ASK(cuDeviceGetUuid, &uuid, device);
	ASK(cuDeviceGetName, name, sizeof name - 1, device);
	ASK(cuDeviceGetPCIBusId, pci, sizeof pci - 1, device);
	if (!cuf_memory_of(device, &free_bytes, &total_bytes) && ASK(cuDeviceTotalMem_v2, &device_bytes, device) == CUDA_SUCCESS)
		total_bytes = device_bytes;
	cuf_device_describe((unsigned)device, (const uint8_t *)uuid.bytes, name, pci, total_bytes, granularity_of(device));
}

/* The largest request that the driver grants now, to one unit of granularity: each step really allocates. */
static uint64_t probe_largest(int device, uint64_t free_bytes)
{
	enum { STEPS_MAX = 20 };
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
	CUmemGenericAllocationHandle handle;
	uint64_t unit = granularity_of(device), granted = 0, refused;
	if (unit == CUF_UNKNOWN || free_bytes == CUF_UNKNOWN || !cuf_real.cuMemCreate || !cuf_real.cuMemRelease)
		return CUF_UNKNOWN;
	refused = free_bytes / unit + 1;
	for (int step = 0; step < STEPS_MAX && refused - granted > 1; step++) {
		uint64_t middle = granted + (refused - granted) / 2;
		if (cuf_real.cuMemCreate(&handle, middle * unit, &prop, 0) == CUDA_SUCCESS) {
			cuf_real.cuMemRelease(handle);
			granted = middle;
		} else {
			refused = middle;
		}
	}
	return granted * unit;
}

void cuf_view_read(int device, bool probe, struct cuf_driver_view *view)
{
	struct loan loan;
	*view = (struct cuf_driver_view){ .free_bytes = CUF_UNKNOWN, .total_bytes = CUF_UNKNOWN, .probed_bytes = CUF_UNKNOWN };
	if (borrow(device, &loan)) {
		memory_now(&view->free_bytes, &view->total_bytes);
		if (probe)
			view->probed_bytes = probe_largest(device, view->free_bytes);
	}
	if (loan.lent)
		view->pool_count = cuf_pools_read(device, view->pools, CUF_POOLS_MAX);
	give_back(&loan);
}

void cuf_devices_end(unsigned hook, void *frame)
{
	struct cuf_driver_view view;
	struct cuf_call call;
	int saved = errno;
	if (!cuf_real.cuMemGetInfo_v2) /* no driver was met */
		return;
	/* a forked child that did not use CUDA itself knows no device, so a driver broken by the fork is left alone */
	if (cuf_call_begin(&call, hook, frame)) {
		for (int device = 0; device < (int)CUF_DEVICES_MAX; device++) {
			if (!cuf_device_known((unsigned)device))
				continue;
			cuf_view_read(device, false, &view);
			cuf_device_end((unsigned)device, &view);
		}
	}
	cuf_call_end();
	cuf_framework_look();
	cuf_framework_check_blind();
	errno = saved;
}

bool cuf_range_of(CUdeviceptr ptr, CUdeviceptr *base, size_t *bytes)
{
	return ASK(cuMemGetAddressRange_v2, base, bytes, ptr) == CUDA_SUCCESS;
}
