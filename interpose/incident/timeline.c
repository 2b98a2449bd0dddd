/* SPDX-License-Identifier: Apache-2.0 */
/* Appends to and halves the timeline. */
#include "interpose/incident/timeline.h"

#include "interpose/incident/device.h"
#include "interpose/incident/totals.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/process/cgroup.h"
#include "interpose/store/fault.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

static uint64_t due_ns;
static uint32_t is_sampling; /* one thread at a time */

static void forget_timeline(void)
{
	due_ns = 0;
	is_sampling = 0;
}
CUF_AT_FORK_CHILD(forget_timeline);

/* Drops every second sample and doubles the spacing. */
static void halve(struct cuf_header *header)
{
	uint64_t kept = (header->sample_count + 1) / 2;
	for (uint64_t i = 0; i < kept; i++)
		cuf_recording.samples[i] = cuf_recording.samples[2 * i];
	header->sample_interval_ns *= 2;
	__atomic_store_n(&header->sample_count, kept, __ATOMIC_RELEASE);
}

/* Reads /proc and the cgroup: some 10 us, the larger part of a sample's cost. */
static void sample_process(struct cuf_sample *sample)
{
	struct cuf_process_memory memory;
	cuf_process_memory(&memory);
	sample->rss_bytes = memory.rss_bytes;
	sample->rss_shared_bytes = memory.rss_shared_bytes;
	sample->cgroup_bytes = memory.cgroup_bytes;
	sample->cgroup_file_bytes = memory.cgroup_file_bytes;
	sample->host_live_bytes = cuf_host_live_bytes();
}

static void sample_device(struct cuf_sample *sample, unsigned device)
{
	const struct cuf_device *state = &cuf_recording.devices[device];
	sample->pinned_bytes += __atomic_load_n(&state->live_bytes[CUF_KIND_PINNED],
						__ATOMIC_RELAXED) +
				__atomic_load_n(&state->live_bytes[CUF_KIND_REGISTERED],
						__ATOMIC_RELAXED);
	sample->framework_live_bytes[device] = cuf_framework_level(device).allocated_bytes;
	sample->device_live_bytes[device] = cuf_device_live_bytes(state);
	sample->device_free_bytes[device] = CUF_UNKNOWN;
	if (state->present && state->free_ns)
		sample->device_free_bytes[device] = state->free_bytes;
}

/* sample_count is the commit field, so it is stored last. */
static void append_sample(uint64_t now_ns)
{
	struct cuf_header *header = cuf_recording.header;
	struct cuf_sample *sample;
	if (header->sample_count > cuf_recording.sample_slots) {
		cuf_fault(CUF_FAULT_TIMELINE);
		return;
	}
	if (header->sample_count == cuf_recording.sample_slots)
		halve(header);
	sample = &cuf_recording.samples[header->sample_count];
	sample->time_ns = now_ns;
	sample->seq = __atomic_load_n(&header->next_seq, __ATOMIC_RELAXED);
	sample->pinned_bytes = 0;
	sample_process(sample);
	for (unsigned device = 0; device < CUF_DEVICES_MAX; device++)
		sample_device(sample, device);
	__atomic_store_n(&due_ns, now_ns + header->sample_interval_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&header->sample_count, header->sample_count + 1, __ATOMIC_RELEASE);
}

/* A thread that comes while another one samples returns at once. Its sample would be the same. */
void cuf_timeline_sample(uint64_t now_ns)
{
	if (__atomic_exchange_n(&is_sampling, 1, __ATOMIC_ACQUIRE))
		return;
	append_sample(now_ns);
	__atomic_store_n(&is_sampling, 0, __ATOMIC_RELEASE);
}

/* Called at every driver event. One load and one comparison when no sample is due. */
void cuf_timeline_tick(uint64_t now_ns)
{
	if (__builtin_expect(now_ns >= __atomic_load_n(&due_ns, __ATOMIC_RELAXED), 0))
		cuf_timeline_sample(now_ns);
}
