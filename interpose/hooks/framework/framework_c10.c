/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's reports to its profiler: every block of its caching allocators as it comes and goes, and the request on
 * which it gave up. They are made with the allocator locked, perhaps while a stream captures: nothing here may ask CUDA.
 */
#include "interpose/record/framework.h"
#include "interpose/hooks/loader/bound.h"
#include "interpose/hooks/framework/framework.h"
#include "interpose/hooks/loader/table.h"

#define FRAME __builtin_frame_address(0)

/* True for memory of a CUDA device; other memory is counted at most. */
static inline bool is_device(c10_Device device, int64_t bytes)
{
	if (__builtin_expect(device.type == C10_DEVICE_CUDA, 1))
		return true;
	if (device.type == C10_DEVICE_CPU)
		cuf_framework_host(bytes);
	return false;
}

static inline uint8_t device_index(c10_Device device) { return device.index < 0 ? CUF_DEVICE_NONE : (uint8_t)device.index; }

/* The signed and the unsigned shapes, with the same registers. */
#define MEMORY_HOOK(name, total) \
	void cuf_hook_##name(void *ptr, int64_t bytes, total allocated, total reserved, c10_Device device) \
	{ \
		void (*next)(void *, int64_t, total, total, c10_Device) = cuf_bound_find(CUF_HOOK_##name, __builtin_return_address(0)); \
		cuf_framework_introduce(CUF_HOOK_##name, (const void *)next); \
		if (is_device(device, bytes)) { \
			const struct cuf_report report = { (uint64_t)(uintptr_t)ptr, bytes, (uint64_t)allocated, (uint64_t)reserved, \
				device_index(device), CUF_HOOK_##name }; \
			cuf_framework_block(&report, FRAME); \
		} \
		if (next) \
			next(ptr, bytes, allocated, reserved, device); \
	}
MEMORY_HOOK(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE, int64_t)
MEMORY_HOOK(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE, size_t)

/* Before 1.10 the first argument was PyTorch's own description of the block, which no address can be read from. */
void cuf_hook__ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE(void *ptr, int64_t bytes, c10_Device device)
{
	void (*next)(void *, int64_t, c10_Device) =
		cuf_bound_find(CUF_HOOK__ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE, __builtin_return_address(0));
	cuf_framework_introduce(CUF_HOOK__ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE, (const void *)next);
	if (is_device(device, bytes))
		cuf_framework_blind();
	if (next)
		next(ptr, bytes, device);
}

#define FAILURE_HOOK(name, size, total) \
	void cuf_hook_##name(size bytes, total allocated, total reserved, c10_Device device) \
	{ \
		void (*next)(size, total, total, c10_Device) = cuf_bound_find(CUF_HOOK_##name, __builtin_return_address(0)); \
		cuf_framework_introduce(CUF_HOOK_##name, (const void *)next); \
		if (device.type == C10_DEVICE_CUDA) { \
			const struct cuf_report report = { 0, (int64_t)bytes, (uint64_t)allocated, (uint64_t)reserved, device_index(device), \
				CUF_HOOK_##name }; \
			cuf_framework_failed(&report, FRAME); \
		} \
		if (next) \
			next(bytes, allocated, reserved, device); \
	}
FAILURE_HOOK(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE, int64_t, int64_t)
FAILURE_HOOK(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE, int64_t, size_t)
FAILURE_HOOK(_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE, size_t, size_t)
