/* SPDX-License-Identifier: Apache-2.0 */
/* The driver at first contact, and what it reports of its devices. */
#include <stdbool.h>
#include <string.h>
#include "interpose/incident/device.h"
#include "interpose/incident/recent.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/process/gate.h"
#include "interpose/process/handover.h"
#include "interpose/record/recorder.h"
#include "interpose/store/hook_names.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum { FREE_EVENT_EVERY_NS = 100000000 };

/* The last event of free memory: when, and how much. */
static uint64_t event_ns[CUF_DEVICES_MAX], event_free_bytes[CUF_DEVICES_MAX];

/* A forked child has devices of its own: the first reading is logged again. */
static void forget_events(void)
{
	memset(event_ns, 0, sizeof event_ns);
	memset(event_free_bytes, 0, sizeof event_free_bytes);
}
CUF_AT_FORK_CHILD(forget_events);

/* The driver's version and whether cuGetProcAddress returned the addresses that the recorder knows.
 * A report lists both under coverage. */
void cuf_driver_seen(uint64_t driver_version, unsigned gpa_identity)
{
	struct cuf_header *header = cuf_recording.header;
	if (!header || !cuf_gate_is_on())
		return;
	header->driver_version = driver_version;
	header->gpa_identity = gpa_identity;
	if (!header->first_cuda_ns)
		header->first_cuda_ns = cuf_now_ns();
	cuf_hook_names_write();
	cuf_handover_to_file();
}

/* NULL: no recording, or no such device. */
static struct cuf_device *device_at(unsigned device)
{
	return cuf_recording.base ? cuf_device_at(device) : NULL;
}

const struct cuf_device *cuf_device_find(unsigned device)
{
	const struct cuf_device *found;
	if (device >= CUF_DEVICES_MAX || !cuf_recording.base)
		return NULL;
	found = &cuf_recording.devices[device];
	return __atomic_load_n(&found->present, __ATOMIC_ACQUIRE) ? found : NULL;
}

/* Called once for each device. `present` is stored last, so a reader finds a complete row or
 * none. */
void cuf_device_describe(unsigned device, const struct cuf_device_facts *facts)
{
	struct cuf_device *to = device_at(device);
	if (!to || to->present)
		return;
	to->ordinal = device;
	memcpy(to->uuid, facts->uuid, sizeof to->uuid);
	strncpy(to->name, facts->name, sizeof to->name - 1);
	strncpy(to->pci, facts->pci, sizeof to->pci - 1);
	to->total_bytes = facts->total_bytes;
	to->granularity_bytes = facts->granularity_bytes;
	to->free_bytes = to->first_free_bytes = to->end_free_bytes = CUF_UNKNOWN;
	__atomic_store_n(&to->present, 1, __ATOMIC_RELEASE);
}

/*
 * Programs look at free memory before they lay out a cache: a change of a thirty-second of the
 * device is logged at once.
 */
static bool has_moved(unsigned device, uint64_t free_bytes, uint64_t total_bytes)
{
	uint64_t last = event_free_bytes[device], moved = last - free_bytes;
	if (free_bytes > last)
		moved = free_bytes - last;
	return total_bytes != CUF_UNKNOWN && moved >= total_bytes / 32;
}

static void log_free_memory(struct cuf_call *call, unsigned device, const struct cuf_device *state)
{
	const struct cuf_request level = {
		.bytes = state->free_bytes, .aux = state->total_bytes, .device = (uint8_t)device
	};
	uint64_t now_ns = state->free_ns;
	if (now_ns - event_ns[device] < FREE_EVENT_EVERY_NS &&
	    !has_moved(device, state->free_bytes, state->total_bytes))
		return;
	event_ns[device] = now_ns;
	event_free_bytes[device] = state->free_bytes;
	cuf_event_note(call, CUF_OP_FREE_MEMORY, &level, 0, 0);
}

static void set_free(unsigned device, struct cuf_device *to, uint64_t free_bytes)
{
	to->free_bytes = free_bytes;
	to->free_ns = cuf_now_ns();
	cuf_recent_free(device, free_bytes, to->free_ns);
}

/* What the driver reported last. Nothing is queried at the end, so this is what remains. */
static void note_last(unsigned device, struct cuf_device *to, const struct cuf_driver_view *view)
{
	to->pool_count = view->pool_count < CUF_POOLS_MAX ? view->pool_count : CUF_POOLS_MAX;
	memcpy(to->end_pools, view->pools, to->pool_count * sizeof *view->pools);
	if (view->free_bytes != CUF_UNKNOWN)
		set_free(device, to, view->free_bytes);
}

/* After the mark of the end, what exit handlers release is not the program's state any more. */
static bool has_ended(void)
{
	return __atomic_load_n(&cuf_recording.header->end_kind, __ATOMIC_ACQUIRE) != CUF_END_NONE;
}

void cuf_device_seen(struct cuf_call *call, unsigned device, const struct cuf_driver_view *view)
{
	struct cuf_device *to = device_at(device);
	if (!to || !to->present || has_ended())
		return;
	if (!call) {
		note_last(device, to, view);
		return;
	}
	if (to->first_free_bytes == CUF_UNKNOWN) {
		to->first_live_bytes = cuf_device_live_bytes(to);
		to->first_free_bytes = view->free_bytes;
	}
	if (view->total_bytes != CUF_UNKNOWN)
		to->total_bytes = view->total_bytes;
	set_free(device, to, view->free_bytes);
	log_free_memory(call, device, to);
}
