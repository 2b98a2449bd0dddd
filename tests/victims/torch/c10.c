/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc10.so for torch_allocator: the functions by which PyTorch reports memory to its profiler, in
 * the shapes of all releases, under their mangled names. They add up their arguments, because the
 * recorder must pass on every call unchanged.
 */
#include <stdatomic.h>
#include "tests/victims/torch/c10.h"

#define EXPORT __attribute__((visibility("default")))

static struct c10_sums sums;
static atomic_uint_fast64_t mixed; /* over all arguments, so that none is lost or swapped */

static void arrived(const void *ptr, int64_t bytes, uint64_t allocated, uint64_t reserved,
                    struct c10_device device)
{
	sums.reports++;
	sums.came_bytes += bytes > 0 ? bytes : 0;
	sums.went_bytes += bytes < 0 ? -bytes : 0;
	mixed = (mixed ^ (uintptr_t)ptr) * 0x9E3779B97F4A7C15ull + (uint64_t)bytes;
	mixed = (mixed ^ allocated) * 0x9E3779B97F4A7C15ull + reserved;
	mixed += (uint64_t)(uint8_t)device.type << 8 | (uint8_t)device.index;
	sums.mixed = mixed;
}

EXPORT struct c10_sums c10_sums(void) { return sums; }

EXPORT void C10_REPORT_3(void *ptr, int64_t bytes, struct c10_device device)
{
	arrived(ptr, bytes, 0, 0, device);
}

EXPORT void C10_REPORT_L(void *ptr, int64_t bytes, int64_t allocated, int64_t reserved,
                         struct c10_device device)
{
	arrived(ptr, bytes, (uint64_t)allocated, (uint64_t)reserved, device);
}

EXPORT void C10_REPORT_M(void *ptr, int64_t bytes, size_t allocated, size_t reserved,
                         struct c10_device device)
{
	arrived(ptr, bytes, allocated, reserved, device);
}

EXPORT void C10_OOM_L(int64_t bytes, int64_t allocated, int64_t reserved, struct c10_device device)
{
	sums.failures++;
	arrived(NULL, bytes, (uint64_t)allocated, (uint64_t)reserved, device);
}

EXPORT void C10_OOM_M(int64_t bytes, size_t allocated, size_t reserved, struct c10_device device)
{
	sums.failures++;
	arrived(NULL, bytes, allocated, reserved, device);
}

EXPORT void C10_OOM_MMM(size_t bytes, size_t allocated, size_t reserved, struct c10_device device)
{
	sums.failures++;
	arrived(NULL, (int64_t)bytes, allocated, reserved, device);
}
