/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's reports to its profiler: each block of its caching allocators as it is allocated and
 * freed, and the request on which it gave up. They are made with the allocator locked, perhaps
 * while a stream captures. So nothing here may query CUDA.
 */
#include "interpose/record/recorder.h"
#include "interpose/hooks/framework/framework.h"
#include "interpose/hooks/loader/resolve.h"
#include "interpose/hooks/loader/table.h"

#define FRAME __builtin_frame_address(0)
#define CALLER __builtin_return_address(0)

/* Of other vendors' GPUs these reports are all that is seen. */
static inline bool is_gpu(c10_Device device)
{
	return __builtin_expect(device.type == C10_DEVICE_CUDA, 1) ||
	       device.type == C10_DEVICE_HIP || device.type == C10_DEVICE_XPU;
}

/* True for memory of a GPU. Host memory is only summed. */
static inline bool is_device(c10_Device device, int64_t bytes)
{
	if (is_gpu(device))
		return true;
	if (device.type == C10_DEVICE_CPU)
		cuf_framework_report(
			&(struct cuf_report){ .bytes = bytes, .type = CUF_REPORT_HOST }, NULL);
	return false;
}

/* Index -1 is PyTorch's current device, which the report does not name. CUF_DEVICE_NONE is the
 * recording's value for it. */
static inline uint8_t device_index(c10_Device device)
{
	return device.index < 0 ? CUF_DEVICE_NONE : (uint8_t)device.index;
}

/* The signed and the unsigned shape of the totals use the same registers. */
#define MEMORY_HOOK(name, total) \
	void cuf_hook_##name(void *ptr, int64_t bytes, total allocated, total reserved, \
			     c10_Device device) \
	{ \
		void (*next)(void *, int64_t, total, total, c10_Device) = \
			cuf_resolve_in_caller(CUF_HOOK_##name, CALLER); \
		cuf_framework_describe(CUF_HOOK_##name, (const void *)next); \
		if (is_device(device, bytes)) { \
			const struct cuf_report report = { \
				.addr = (uint64_t)(uintptr_t)ptr, \
				.bytes = bytes, \
				.allocated_bytes = (uint64_t)allocated, \
				.reserved_bytes = (uint64_t)reserved, \
				.device = device_index(device), \
				.hook = CUF_HOOK_##name, \
				.type = CUF_REPORT_BLOCK, \
			}; \
			cuf_framework_report(&report, FRAME); \
		} \
		if (next) \
			next(ptr, bytes, allocated, reserved, device); \
	}
/* PyTorch 1.10 to 1.13 has signed totals, 2.0 and later unsigned ones. A library has one of
 * them. */
MEMORY_HOOK(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE, int64_t)
MEMORY_HOOK(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE, size_t)

/* Before 1.10, the first argument was PyTorch's description of the block. It contains no
 * address. */
void cuf_hook__ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE(void *ptr, int64_t bytes,
								  c10_Device device)
{
	enum { HOOK_ID = CUF_HOOK__ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE };
	void (*next)(void *, int64_t, c10_Device) = cuf_resolve_in_caller(HOOK_ID, CALLER);
	cuf_framework_describe(HOOK_ID, (const void *)next);
	if (is_device(device, bytes))
		cuf_framework_report(&(struct cuf_report){ .type = CUF_REPORT_BLIND }, NULL);
	if (next)
		next(ptr, bytes, device);
}

/* The request on which PyTorch gave up. Its size is the true one; the driver's failures before it
 * had the sizes of segments. */
#define FAILURE_HOOK(name, size, total) \
	void cuf_hook_##name(size bytes, total allocated, total reserved, c10_Device device) \
	{ \
		void (*next)(size, total, total, c10_Device) = \
			cuf_resolve_in_caller(CUF_HOOK_##name, CALLER); \
		cuf_framework_describe(CUF_HOOK_##name, (const void *)next); \
		if (is_gpu(device)) { \
			const struct cuf_report report = { \
				.bytes = (int64_t)bytes, \
				.allocated_bytes = (uint64_t)allocated, \
				.reserved_bytes = (uint64_t)reserved, \
				.device = device_index(device), \
				.hook = CUF_HOOK_##name, \
				.type = CUF_REPORT_FAILED, \
			}; \
			cuf_framework_report(&report, FRAME); \
		} \
		if (next) \
			next(bytes, allocated, reserved, device); \
	}
/* Three shapes, by release. The mangled name ends in the types of the arguments: l is int64_t, m is
 * size_t. */
FAILURE_HOOK(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE, int64_t, int64_t)
FAILURE_HOOK(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE, int64_t, size_t)
FAILURE_HOOK(_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE, size_t, size_t)
