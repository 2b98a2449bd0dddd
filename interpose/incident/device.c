/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DEVICES section: totals by kind and the peak. Each total is one atomic add, so a reader of a
 * live recording may see a block in one total and not yet in another.
 */
#include "interpose/incident/device.h"

#include "interpose/incident/recent.h"
#include "interpose/store/dropped.h"
#include "interpose/store/fault.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum { KINDS = sizeof((struct cuf_device *)0)->live_bytes / sizeof(uint64_t) };

struct cuf_device *cuf_device_at(unsigned device)
{
	if (device < CUF_DEVICES_MAX)
		return &cuf_recording.devices[device];
	if (device != CUF_DEVICE_NONE)
		cuf_count_dropped(CUF_LOST_DEVICES);
	return NULL;
}

/*
 * The sum is taken from five totals that other threads change meanwhile. It may be off by blocks
 * that are in flight, and even negative for a moment: such a sum is no peak.
 */
static void raise_peak(struct cuf_device *device, uint64_t live, uint64_t now_ns)
{
	uint64_t peak = __atomic_load_n(&device->peak_bytes, __ATOMIC_RELAXED);
	while (live > peak && live <= INT64_MAX)
		if (__atomic_compare_exchange_n(&device->peak_bytes, &peak, live, true,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			__atomic_store_n(&device->peak_ns, now_ns, __ATOMIC_RELAXED);
			break;
		}
}

/* sign: 1 for an allocation, -1 for a free. Memory located on the host is in no device's sum. */
void cuf_device_count(const struct cuf_block *block, int sign, uint64_t now_ns)
{
	struct cuf_device *device = cuf_device_at(block->device);
	uint64_t live;
	if (!device || block->flags & CUF_EVENT_HOST_LOCATION)
		return;
	/* a kind from a request is always valid, so this entry of the ledger was overwritten */
	if (block->kind >= KINDS) {
		cuf_fault(CUF_FAULT_LEDGER);
		return;
	}
	if (sign < 0) {
		__atomic_fetch_sub(&device->live_bytes[block->kind], block->bytes,
				   __ATOMIC_RELAXED);
		__atomic_fetch_sub(&device->live_count[block->kind], 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&device->free_count, 1, __ATOMIC_RELAXED);
		cuf_recent_live(block->device, cuf_device_live_bytes(device), now_ns);
		return;
	}
	__atomic_fetch_add(&device->live_bytes[block->kind], block->bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&device->live_count[block->kind], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&device->alloc_count, 1, __ATOMIC_RELAXED);
	live = cuf_device_live_bytes(device);
	raise_peak(device, live, now_ns);
	cuf_recent_live(block->device, live, now_ns);
}
