/* SPDX-License-Identifier: Apache-2.0 */
/* Adds to and halves the timeline. */
#include "interpose/incident/timeline.h"

#include "interpose/incident/device.h"
#include "interpose/incident/recent.h"
#include "interpose/incident/totals.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/process/cgroup.h"
#include "interpose/store/fault.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum {
	LATEST_NS = 100000000, /* how old the last sample may be while events come */
	RISE_NS = 1000000,     /* a sample costs some 10 us: 1 % at most for those of a rise */
	RISE_BYTES_MIN = 1 << 20,
	RISES = 16, /* of the control group's limit */
	PACES = 4   /* samples before the limit, at the pace of the last growth */
};

static uint64_t due_ns;
static uint32_t is_sampling; /* one thread at a time */

/*
 * The spacing of a program that runs for weeks is minutes, and a process that the kernel kills has
 * only its last sample to show for it. So the last one may be a draft, which the next replaces.
 */
static bool is_last_draft;
static uint64_t kept_ns; /* the time of the last sample that is no draft */

static uint64_t latest_ns;
static int64_t rise_at_bytes; /* the host's live bytes that make a sample due before its time */

/* What the control group had at the last sample, without the page cache, and its limit. Files of
 * tmpfs, children and mapped memory grow with no rise of this process's live bytes. */
static struct group { uint64_t bytes, limit_bytes, time_ns; } group;

static void forget_timeline(void)
{
	due_ns = kept_ns = latest_ns = 0;
	rise_at_bytes = 0;
	group = (struct group){ 0 };
	is_sampling = 0;
	is_last_draft = false;
}
CUF_AT_FORK_CHILD(forget_timeline);

/* Drops every second sample and doubles the spacing. */
static void halve(struct cuf_header *header)
{
	uint64_t kept = (header->sample_count + 1) / 2;
	for (uint64_t i = 0; i < kept; i++)
		cuf_recording.samples[i] = cuf_recording.samples[2 * i];
	kept_ns = kept ? cuf_recording.samples[kept - 1].time_ns : 0;
	header->sample_interval_ns *= 2;
	__atomic_store_n(&header->sample_count, kept, __ATOMIC_RELEASE);
}

/* Programs without a limit have no moment that their samples must not miss. */
static void expect_rise(uint64_t live_bytes, uint64_t limit_bytes)
{
	uint64_t rise_bytes = limit_bytes / RISES;
	int64_t at_bytes = INT64_MAX;

	if (live_bytes != CUF_UNKNOWN && limit_bytes != CUF_UNKNOWN)
		at_bytes = (int64_t)(live_bytes + (rise_bytes < RISE_BYTES_MIN ? RISE_BYTES_MIN
										: rise_bytes));
	__atomic_store_n(&rise_at_bytes, at_bytes, __ATOMIC_RELAXED);
}

/* How long until the next sample, so that PACES of them come before the group is full. */
static uint64_t pace_ns(const struct group *before, const struct group *now)
{
	uint64_t grown_mib, left_mib, pace;

	if (!before->time_ns || now->bytes == CUF_UNKNOWN || before->bytes == CUF_UNKNOWN ||
	    now->limit_bytes == CUF_UNKNOWN || now->bytes <= before->bytes ||
	    now->bytes >= now->limit_bytes)
		return LATEST_NS;
	grown_mib = ((now->bytes - before->bytes) >> 20) + 1;
	left_mib = (now->limit_bytes - now->bytes) >> 20;
	pace = (now->time_ns - before->time_ns) / grown_mib * left_mib / PACES;
	if (pace < RISE_NS)
		return RISE_NS;
	return pace < LATEST_NS ? pace : LATEST_NS;
}

static void see_group(const struct cuf_process_memory *memory, uint64_t now_ns)
{
	group = (struct group){ memory->cgroup_bytes, memory->cgroup_max_bytes, now_ns };
	if (memory->cgroup_bytes != CUF_UNKNOWN && memory->cgroup_file_bytes < memory->cgroup_bytes)
		group.bytes -= memory->cgroup_file_bytes;
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
	sample->cgroup_shmem_bytes = memory.cgroup_shmem_bytes;
	sample->host_live_bytes = cuf_host_live_bytes();
	sample->thread_count = cuf_process_threads();
	expect_rise(sample->host_live_bytes, memory.cgroup_max_bytes);
	see_group(&memory, sample->time_ns);
	cuf_recent_live(CUF_RECENT_HOST, sample->host_live_bytes, sample->time_ns);
	cuf_recent_inner(CUF_RECENT_HOST, (struct cuf_framework_level){
		memory.rss_bytes, memory.cgroup_bytes }, sample->time_ns);
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

static void fill_sample(struct cuf_sample *sample, uint64_t now_ns)
{
	sample->time_ns = now_ns;
	sample->seq = __atomic_load_n(&cuf_recording.header->next_seq, __ATOMIC_RELAXED);
	sample->pinned_bytes = 0;
	sample_process(sample);
	for (unsigned device = 0; device < CUF_DEVICES_MAX; device++)
		sample_device(sample, device);
}

/* sample_count is the commit field, so it is stored last. */
static void add_sample(uint64_t now_ns, bool may_be_draft)
{
	struct cuf_header *header = cuf_recording.header;
	struct group before = group;
	uint64_t at, next_ns, latest;
	if (header->sample_count > cuf_recording.sample_slots) {
		cuf_fault(CUF_FAULT_TIMELINE);
		return;
	}
	if (!header->sample_count) /* of a fresh recording in the place of one that failed */
		is_last_draft = false;
	if (header->sample_count == cuf_recording.sample_slots && !is_last_draft)
		halve(header);
	at = header->sample_count - is_last_draft;
	fill_sample(&cuf_recording.samples[at], now_ns);
	is_last_draft = may_be_draft && now_ns < kept_ns + header->sample_interval_ns;
	if (!is_last_draft)
		kept_ns = now_ns;
	next_ns = kept_ns + header->sample_interval_ns;
	latest = now_ns + pace_ns(&before, &group);
	if (next_ns > latest)
		next_ns = latest;
	__atomic_store_n(&latest_ns, now_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&due_ns, next_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&header->sample_count, at + 1, __ATOMIC_RELEASE);
}

/* A thread that comes while another one samples returns at once. Its sample would be the same. */
static void sample_once(uint64_t now_ns, bool may_be_draft)
{
	if (__atomic_exchange_n(&is_sampling, 1, __ATOMIC_ACQUIRE))
		return;
	add_sample(now_ns, may_be_draft);
	__atomic_store_n(&is_sampling, 0, __ATOMIC_RELEASE);
}

uint64_t cuf_timeline_room_bytes(void)
{
	struct group now = group;

	if (!now.time_ns || now.bytes == CUF_UNKNOWN || now.limit_bytes == CUF_UNKNOWN)
		return UINT64_MAX;
	return now.limit_bytes > now.bytes ? now.limit_bytes - now.bytes : 0;
}

void cuf_timeline_sample(uint64_t now_ns) { sample_once(now_ns, false); }

/* Called at every driver event. One load and one comparison when no sample is due. */
void cuf_timeline_tick(uint64_t now_ns)
{
	if (__builtin_expect(now_ns >= __atomic_load_n(&due_ns, __ATOMIC_RELAXED), 0))
		sample_once(now_ns, true);
}

/* The caller's clock may be coarse, and 10 ms are long for a program that fills memory. */
void cuf_timeline_rise(int64_t live_bytes)
{
	uint64_t now_ns;
	if (__builtin_expect(live_bytes < __atomic_load_n(&rise_at_bytes, __ATOMIC_RELAXED), 1))
		return;
	now_ns = cuf_now_ns();
	if (now_ns >= __atomic_load_n(&latest_ns, __ATOMIC_RELAXED) + RISE_NS)
		sample_once(now_ns, true);
}
