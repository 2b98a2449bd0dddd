/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libc10.so exports to libc10_cuda.so in PyTorch, and the sums for the test. Not thread-safe:
 * the caller holds one lock, as in PyTorch.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define C10_REPORT_3 _ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE
#define C10_REPORT_L _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE
#define C10_REPORT_M _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define C10_OOM_L _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE
#define C10_OOM_M _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE
#define C10_OOM_MMM _ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE

struct c10_device { int8_t type, index; };
struct c10_sums { uint64_t reports, failures; int64_t came_bytes, went_bytes; uint64_t mixed; };

struct c10_sums c10_sums(void);
void C10_REPORT_3(void *ptr, int64_t bytes, struct c10_device device);
void C10_REPORT_L(void *ptr, int64_t bytes, int64_t allocated, int64_t reserved,
                  struct c10_device device);
void C10_REPORT_M(void *ptr, int64_t bytes, size_t allocated, size_t reserved,
                  struct c10_device device);
void C10_OOM_L(int64_t bytes, int64_t allocated, int64_t reserved, struct c10_device device);
void C10_OOM_M(int64_t bytes, size_t allocated, size_t reserved, struct c10_device device);
void C10_OOM_MMM(size_t bytes, size_t allocated, size_t reserved, struct c10_device device);
