/* SPDX-License-Identifier: Apache-2.0 */
/* Appends to and halves the timeline. */
#include "interpose/incident/timeline.h"

#include "interpose/incident/device.h"
#include "interpose/incident/totals.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/process/cgroup.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

static uint64_t due_ns;
static uint32_t taking;

static void forget_timeline(void)
{
	due_ns = 0;
	taking = 0;
}
CUF_AT_FORK_CHILD(forget_timeline);

static void halve(struct cuf_header *h)
{
	uint64_t kept = (h->sample_count + 1) / 2;
	for (uint64_t i = 0; i < kept; i++)
		cuf_recording.samples[i] = cuf_recording.samples[2 * i];
	h->sample_interval_ns *= 2;
	__atomic_store_n(&h->sample_count, kept, __ATOMIC_RELEASE);
}

static void take(uint64_t now_ns)
{
	struct cuf_header *h = cuf_recording.header;
	struct cuf_process_memory memory;
	struct cuf_sample *s;
	if (h->sample_count >= cuf_recording.sample_slots)
		halve(h);
	s = &cuf_recording.samples[h->sample_count];
	cuf_process_memory(&memory);
	s->time_ns = now_ns;
	s->seq = __atomic_load_n(&h->next_seq, __ATOMIC_RELAXED);
	s->rss_bytes = memory.rss_bytes;
	s->rss_shared_bytes = memory.rss_shared_bytes;
	s->cgroup_bytes = memory.cgroup_bytes;
	s->cgroup_file_bytes = memory.cgroup_file_bytes;
	s->host_live_bytes = cuf_host_live_bytes();
	s->pinned_bytes = 0;
	for (unsigned d = 0; d < CUF_DEVICES_MAX; d++) {
		const struct cuf_device *device = &cuf_recording.devices[d];
		s->pinned_bytes += __atomic_load_n(&device->live_bytes[CUF_KIND_PINNED], __ATOMIC_RELAXED) +
				   __atomic_load_n(&device->live_bytes[CUF_KIND_REGISTERED], __ATOMIC_RELAXED);
		s->framework_live_bytes[d] = cuf_framework_level(d).allocated_bytes;
		s->device_live_bytes[d] = cuf_device_live_bytes(device);
		s->device_free_bytes[d] = device->present && device->free_ns ? device->free_bytes : CUF_UNKNOWN;
	}
	__atomic_store_n(&due_ns, now_ns + h->sample_interval_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&h->sample_count, h->sample_count + 1, __ATOMIC_RELEASE);
}

void cuf_timeline_sample(uint64_t now_ns)
{
	if (__atomic_exchange_n(&taking, 1, __ATOMIC_ACQUIRE))
		return;
	take(now_ns);
	__atomic_store_n(&taking, 0, __ATOMIC_RELEASE);
}

void cuf_timeline_tick(uint64_t now_ns)
{
	if (__builtin_expect(now_ns >= __atomic_load_n(&due_ns, __ATOMIC_RELAXED), 0))
		cuf_timeline_sample(now_ns);
}
