/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Totals by device and kind, kept as blocks come and go, and what the driver says of its devices. Contract: any
 * thread; a device index of CUF_DEVICES_MAX or more is counted as lost, CUF_DEVICE_NONE is silently without totals.
 */
#ifndef CUF_DEVICE_H
#define CUF_DEVICE_H

#include <stdint.h>
#include "interpose/abi/format.h"

/* Bytes that this process holds of a device's memory: device + array + async + graph + vmm. */
static inline uint64_t cuf_device_live_bytes(const struct cuf_device *d)
{
	return d->live_bytes[CUF_KIND_DEVICE] + d->live_bytes[CUF_KIND_ARRAY] + d->live_bytes[CUF_KIND_ASYNC] +
	       d->live_bytes[CUF_KIND_GRAPH] + d->live_bytes[CUF_KIND_VMM];
}

/* A block came (sign 1) or went (-1). Host-located memory counts under its kind nowhere. */
void cuf_device_count(const struct cuf_block *block, int sign, uint64_t now_ns);
struct cuf_device *cuf_device_at(unsigned device); /* NULL: none or too many */

#endif
