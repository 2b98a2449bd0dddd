/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Totals by device and kind, kept as blocks are allocated and freed. Contract: any thread; a device
 * index of CUF_DEVICES_MAX or more is counted as dropped, CUF_DEVICE_NONE has no totals.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "interpose/abi/format.h"

/* Bytes that this process holds of a device's memory: device + array + async + graph + vmm. */
static inline uint64_t cuf_device_live_bytes(const struct cuf_device *device)
{
	static const uint8_t kinds[] = {
		CUF_KIND_DEVICE, CUF_KIND_ARRAY, CUF_KIND_ASYNC, CUF_KIND_GRAPH, CUF_KIND_VMM
	};
	uint64_t sum = 0;
	for (unsigned i = 0; i < sizeof kinds; i++)
		sum += __atomic_load_n(&device->live_bytes[kinds[i]], __ATOMIC_RELAXED);
	return sum;
}

/*
 * A block was allocated (sign 1) or freed (-1). Memory located on the host is in no device's
 * totals.
 */
void cuf_device_count(const struct cuf_block *block, int sign, uint64_t now_ns);

/* NULL: none or too many. */
struct cuf_device *cuf_device_at(unsigned device);
