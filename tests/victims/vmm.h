/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management as the victims use it: one reservation, handles of one granule or more.
 */
#pragma once

#include "tests/victims/doors.h"

static const CUmemAllocationProp vmm_on_device = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc vmm_read_write = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, 3};

static inline size_t vmm_granule(void)
{
	size_t bytes = 0;
	MUST(cu.granularity(&bytes, &vmm_on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	return bytes;
}

static inline CUdeviceptr vmm_reserve(size_t bytes)
{
	CUdeviceptr addr = 0;
	MUST(cu.reserve(&addr, bytes, 0, 0, 0));
	return addr;
}

/* as llama.cpp does it: the handle is let go of as soon as the memory is mapped */
static inline void vmm_grow(CUdeviceptr at, size_t bytes)
{
	CUmemGenericAllocationHandle handle;
	MUST(cu.create(&handle, bytes, &vmm_on_device, 0));
	MUST(cu.map(at, bytes, 0, handle, 0));
	MUST(cu.handle_release(handle));
	MUST(cu.set_access(at, bytes, &vmm_read_write, 1));
}
