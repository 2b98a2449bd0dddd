/* SPDX-License-Identifier: Apache-2.0 */
/* The DEVICES section: facts, totals, peaks, free memory as last seen. */
#include "interpose/incident/device.h"

#include <string.h>
#include "interpose/platform/clock.h"
#include "interpose/store/dropped.h"
#include "interpose/record/recorder.h"
#include "interpose/store/recording.h"
#include "interpose/store/ring.h"
#include "interpose/process/thread.h"
#include "interpose/platform/laws.h"

enum { FREE_EVERY_NS = 1000000000, FREE_EVENT_EVERY_NS = 100000000 };

struct cuf_device *cuf_device_at(unsigned device)
{
	if (device < CUF_DEVICES_MAX)
		return &cuf_recording.devices[device];
	if (device != CUF_DEVICE_NONE)
		cuf_count_dropped(CUF_LOST_DEVICES);
	return NULL;
}

void cuf_device_count(const struct cuf_block *block, int sign, uint64_t now_ns)
{
	struct cuf_device *d = cuf_device_at(block->device);
	uint64_t live, peak;
	if (!d || block->kind >= 16 || (block->flags & CUF_EVENT_HOST_LOCATION))
		return;
	__atomic_fetch_add(&d->live_bytes[block->kind], sign > 0 ? block->bytes : -block->bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&d->live_count[block->kind], (uint64_t)(int64_t)sign, __ATOMIC_RELAXED);
	__atomic_fetch_add(sign > 0 ? &d->alloc_count : &d->free_count, 1, __ATOMIC_RELAXED);
	if (sign < 0)
		return;
	live = cuf_device_live_bytes(d);
	peak = __atomic_load_n(&d->peak_bytes, __ATOMIC_RELAXED);
	while (live > peak && live <= INT64_MAX)
		if (__atomic_compare_exchange_n(&d->peak_bytes, &peak, live, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			__atomic_store_n(&d->peak_ns, now_ns, __ATOMIC_RELAXED);
			break;
		}
}

bool cuf_device_known(unsigned device)
{
	return device >= CUF_DEVICES_MAX || !cuf_recording.base || __atomic_load_n(&cuf_recording.devices[device].present, __ATOMIC_ACQUIRE);
}

void cuf_device_describe(unsigned device, const uint8_t uuid[16], const char *name, const char *pci, uint64_t total_bytes, uint64_t granularity_bytes)
{
	struct cuf_device *d = cuf_recording.base ? cuf_device_at(device) : NULL;
	if (!d || d->present)
		return;
	d->ordinal = device;
	memcpy(d->uuid, uuid, sizeof d->uuid);
	strncpy(d->name, name, sizeof d->name - 1);
	strncpy(d->pci, pci, sizeof d->pci - 1);
	d->total_bytes = total_bytes;
	d->granularity_bytes = granularity_bytes;
	d->free_bytes = d->first_free_bytes = d->end_free_bytes = CUF_UNKNOWN;
	__atomic_store_n(&d->present, 1, __ATOMIC_RELEASE);
}

bool cuf_device_free_due(unsigned device)
{
	struct cuf_device *d;
	uint64_t now = cuf_now_ns(), seen;
	if (device >= CUF_DEVICES_MAX || !cuf_recording.base)
		return false;
	d = &cuf_recording.devices[device];
	seen = __atomic_load_n(&d->free_ns, __ATOMIC_RELAXED);
	/* claimed by moving the time stamp: one asker a second */
	return d->present && now - seen >= FREE_EVERY_NS && __atomic_compare_exchange_n(&d->free_ns, &seen, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* When free memory was last told by an event, and what it was. */
static uint64_t event_ns[CUF_DEVICES_MAX], event_free_bytes[CUF_DEVICES_MAX];

/* Changed by a thirty-second of the device: told at once, since programs look at free memory before they lay out a cache. */
static bool has_moved(unsigned device, uint64_t free_bytes, uint64_t total_bytes)
{
	uint64_t last = event_free_bytes[device], moved = free_bytes > last ? free_bytes - last : last - free_bytes;
	return total_bytes != CUF_UNKNOWN && moved >= total_bytes / 32;
}

void cuf_device_free_seen(struct cuf_call *call, unsigned device, uint64_t free_bytes, uint64_t total_bytes)
{
	struct cuf_device *d = cuf_recording.base ? cuf_device_at(device) : NULL;
	uint64_t now = cuf_now_ns();
	if (!d || !d->present)
		return;
	if (d->first_free_bytes == CUF_UNKNOWN) {
		d->first_live_bytes = cuf_device_live_bytes(d);
		d->first_free_bytes = free_bytes;
	}
	if (total_bytes != CUF_UNKNOWN)
		d->total_bytes = total_bytes;
	d->free_bytes = free_bytes;
	d->free_ns = now;
	if (now - event_ns[device] >= FREE_EVENT_EVERY_NS || has_moved(device, free_bytes, d->total_bytes)) {
		struct cuf_request request = { .bytes = free_bytes, .aux = d->total_bytes, .device = (uint8_t)device };
		event_ns[device] = now;
		event_free_bytes[device] = free_bytes;
		cuf_event_note(call, CUF_OP_FREE_MEMORY, &request, 0, 0);
	}
}

void cuf_device_end(unsigned device, const struct cuf_driver_view *view)
{
	struct cuf_device *d = cuf_recording.base ? cuf_device_at(device) : NULL;
	if (!d || !d->present)
		return;
	d->end_free_bytes = view->free_bytes;
	if (view->free_bytes != CUF_UNKNOWN) {
		d->free_bytes = view->free_bytes;
		d->free_ns = cuf_now_ns();
	}
	d->pool_count = view->pool_count < CUF_POOLS_MAX ? view->pool_count : CUF_POOLS_MAX;
	memcpy(d->end_pools, view->pools, d->pool_count * sizeof *view->pools);
}
