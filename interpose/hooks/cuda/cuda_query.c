/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's queries of the driver, and the loan of a context to run them in.
 *
 * Rules for each of them: it uses the real functions, so it is not recorded. A function that the
 * driver lacks is the same as one that fails. No lock is held across a query. A query in a stream
 * capture can invalidate it, so the capture mode of the thread is relaxed first.
 */
#include "interpose/hooks/cuda/cuda_query.h"

#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/driver.h"
#include "interpose/hooks/loader/real.h"

int cuf_captures_open;

/* NULL is an ordinary result: NCCL calls cuMemCreate with no current context. */
CUcontext cuf_context_current(void)
{
	CUcontext context = NULL;
	if (CUF_QUERY(cuCtxGetCurrent, &context) != CUDA_SUCCESS)
		return NULL;
	return context;
}

/* -1 without a current context. */
int cuf_device_current(void)
{
	CUdevice device = -1;
	if (CUF_QUERY(cuCtxGetDevice, &device) != CUDA_SUCCESS)
		return -1;
	return device;
}

/* Queried once: devices do not come and go while a process runs. */
int cuf_device_total_count(void)
{
	static int known;
	int count = __atomic_load_n(&known, __ATOMIC_RELAXED);
	if (count <= 0 && CUF_QUERY(cuDeviceGetCount, &count) == CUDA_SUCCESS)
		__atomic_store_n(&known, count, __ATOMIC_RELAXED);
	if (count <= 0)
		return -1;
	return count;
}

/* The driver's whole allocation around ptr, which may be larger than what was requested. */
bool cuf_range_of(CUdeviceptr ptr, CUdeviceptr *base, size_t *bytes)
{
	return CUF_QUERY(cuMemGetAddressRange_v2, base, bytes, ptr) == CUDA_SUCCESS;
}

/* 2 MiB on the devices of data centres, but the driver decides. */
uint64_t cuf_granularity_of(int device)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
	size_t bytes = 0;
	CUresult result = CUF_QUERY(cuMemGetAllocationGranularity, &bytes, &prop,
				    CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	if (result != CUDA_SUCCESS || !bytes)
		return CUF_UNKNOWN;
	return bytes;
}

/* ---- a context for queries ---- */

/* Retaining an active primary context only counts. The caller releases it. Querying the state first
 * keeps us from creating a context. */
static CUcontext primary_retain(int device)
{
	CUcontext context = NULL;
	unsigned flags;
	int active = 0;
	if (CUF_QUERY(cuDevicePrimaryCtxGetState, device, &flags, &active) != CUDA_SUCCESS)
		return NULL;
	if (!active)
		return NULL;
	if (CUF_QUERY_REAL(cuDevicePrimaryCtxRetain, &context, device) != CUDA_SUCCESS)
		return NULL;
	return context;
}

/* Older drivers have only the name without _v2. */
static void primary_release(int device)
{
	if (cuf_real.cuDevicePrimaryCtxRelease_v2)
		cuf_real.cuDevicePrimaryCtxRelease_v2(device);
	else if (cuf_real.cuDevicePrimaryCtxRelease)
		cuf_real.cuDevicePrimaryCtxRelease(device);
}

/* The address only. It stays valid as long as somebody else retains the context, so it may be
 * compared but not used. */
CUcontext cuf_context_primary(int device)
{
	CUcontext context = primary_retain(device);
	if (context)
		primary_release(device);
	return context;
}

/* In relaxed capture mode, queries are legal while another stream of this thread captures. */
bool cuf_context_borrow(int device, struct cuf_context_loan *loan)
{
	CUcontext context;
	*loan = (struct cuf_context_loan){ .device = device,
					   .mode = CU_STREAM_CAPTURE_MODE_RELAXED };
	if (device < 0 || CUF_QUERY(cuThreadExchangeStreamCaptureMode, &loan->mode) != CUDA_SUCCESS)
		return false;
	loan->relaxed = true;
	if (cuf_device_current() == device)
		return true;
	context = primary_retain(device);
	if (!context)
		return false;
	loan->pushed = CUF_QUERY(cuCtxPushCurrent_v2, context) == CUDA_SUCCESS;
	if (!loan->pushed)
		primary_release(device);
	return loan->pushed;
}

/* In reverse order of cuf_context_borrow, and also after a borrow that failed half-way: each step
 * is undone only if it was done. */
void cuf_context_return(struct cuf_context_loan *loan)
{
	CUcontext context;
	if (loan->pushed) {
		CUF_QUERY(cuCtxPopCurrent_v2, &context);
		primary_release(loan->device);
	}
	if (loan->relaxed)
		CUF_QUERY(cuThreadExchangeStreamCaptureMode, &loan->mode);
}

/* ---- free memory ---- */

/* In the current context. The real function is called, so that the query is not recorded as the
 * program's. */
bool cuf_memory_here(uint64_t *free_bytes, uint64_t *total_bytes)
{
	size_t free_now = 0, total = 0;
	if (CUF_QUERY_REAL(cuMemGetInfo_v2, &free_now, &total) != CUDA_SUCCESS)
		return false;
	*free_bytes = free_now;
	*total_bytes = total;
	return true;
}

/* May be called without any current context. */
bool cuf_memory_of(int device, uint64_t *free_bytes, uint64_t *total_bytes)
{
	struct cuf_context_loan loan;
	bool known = cuf_context_borrow(device, &loan) && cuf_memory_here(free_bytes, total_bytes);
	cuf_context_return(&loan);
	return known;
}

/* ---- devices ---- */

/* Called at each allocation; all but the first return at once. UUIDs of MIG instances come from the
 * _v2 function only. */
void cuf_device_announce(int device)
{
	CUuuid uuid = { { 0 } };
	char name[64] = "", pci[16] = "";
	uint64_t free_bytes, total_bytes = CUF_UNKNOWN;
	size_t device_bytes = 0;
	if (device < 0 || device >= (int)CUF_DEVICES_MAX || cuf_device_find((unsigned)device))
		return;
	cuf_driver_announce();
	if (CUF_QUERY(cuDeviceGetUuid_v2, &uuid, device) != CUDA_SUCCESS)
		CUF_QUERY(cuDeviceGetUuid, &uuid, device);
	CUF_QUERY(cuDeviceGetName, name, sizeof name - 1, device);
	CUF_QUERY(cuDeviceGetPCIBusId, pci, sizeof pci - 1, device);
	if (!cuf_memory_of(device, &free_bytes, &total_bytes) &&
	    CUF_QUERY(cuDeviceTotalMem_v2, &device_bytes, device) == CUDA_SUCCESS)
		total_bytes = device_bytes;
	const struct cuf_device_facts facts = {
		.uuid = (const uint8_t *)uuid.bytes,
		.name = name,
		.pci = pci,
		.total_bytes = total_bytes,
		.granularity_bytes = cuf_granularity_of(device),
	};
	cuf_device_describe((unsigned)device, &facts);
}
