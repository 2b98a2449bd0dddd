/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory: its events are followed twice, for the peaks and for who held them. */
#include "analysis/gate/take/account.h"

#include <math.h>
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/facts.h"
#include "analysis/gate/changes.h"
#include "analysis/host/heap.h"
#include "analysis/recording/host_weight.h"

static const char *const sampled = "host memory was sampled; record with --host=full";
static const char *const overwritten = "events were overwritten; record with a larger --size";
static const char *const not_recorded = "host memory was not recorded (--host=off)";

/* One group: the level since the first event, and where it was highest. */
struct level {
	struct host_estimate now, highest;
	uint64_t highest_event; /* 0: before the first one */
};

struct walk {
	const struct account_process *from;
	struct host_means means;
	uint64_t end_ns;  /* CLOCK_MONOTONIC; CUF_UNKNOWN: the end of the recording */
	bool *is_python;  /* by stack id */
	size_t stack_count;
	struct level levels[2];         /* HOST, PYTHON */
	struct host_estimate end[2];
};
static const enum gate_group groups[2] = { GROUP_HOST, GROUP_PYTHON };

static bool is_of(const struct walk *walk, int which, uint32_t stack)
{
	return !which || (stack < walk->stack_count && walk->is_python[stack]);
}

/* The next event that changes what is live, up to the end. */
static bool next_change(const struct walk *walk, struct host_stream *stream,
			struct host_event *event)
{
	while (host_stream_next(stream, event)) {
		if (event->time_ns > walk->end_ns)
			continue;
		if (host_event_sign(event->op) && event->bytes)
			return true;
	}
	return false;
}

/* First pass: where each level was highest. */
static void find_peaks(struct walk *walk)
{
	struct host_stream *stream = host_stream_new(walk->from->recorded->reader);
	struct host_event event;

	for (uint64_t number = 1; next_change(walk, stream, &event); number++) {
		double chance = host_weight_chance(event.bytes, event.sample_mean_bytes);
		for (int i = 0; i < 2; i++) {
			struct level *level = &walk->levels[i];
			if (!is_of(walk, i, event.stack))
				continue;
			host_estimate_add(&level->now, (double)event.bytes / chance, chance,
					  host_event_sign(event.op));
			if (level->now.value > level->highest.value) {
				level->highest = level->now;
				level->highest_event = number;
			}
		}
	}
	host_stream_free(stream);
}

/* Second pass: the sites at the end, minus what changed after the peak. */
static void take_peak_sites(struct walk *walk)
{
	struct host_stream *stream = host_stream_new(walk->from->recorded->reader);
	struct host_event event;

	for (uint64_t number = 1; next_change(walk, stream, &event); number++) {
		uint64_t mean = event.sample_mean_bytes;
		for (int i = 0; i < 2; i++) {
			struct account_site *site;
			uint64_t sign = (uint64_t)(int64_t)-host_event_sign(event.op);
			if (!is_of(walk, i, event.stack) ||
			    number <= walk->levels[i].highest_event)
				continue;
			site = account_site_of(walk->from, groups[i], event.stack);
			site->peak_bytes += sign * host_weight_bytes(event.bytes, mean);
			site->peak_count += sign * host_weight_count(event.bytes, mean);
		}
	}
	host_stream_free(stream);
}

/* A sum that lost events made negative held nothing. */
static void settle_sites(const struct walk *walk)
{
	struct account *account = walk->from->account;

	for (size_t i = 0; i < account->site_count; i++) {
		struct account_site *site = &account->sites[i];
		if (site->group < GROUP_HOST)
			continue;
		if ((int64_t)site->peak_bytes < 0 || (int64_t)site->peak_count <= 0)
			site->peak_bytes = site->peak_count = 0;
	}
}

/* The ledger: what is live at the end, by call site. */
static struct heap_totals take_end(struct walk *walk)
{
	const struct reader *reader = walk->from->recorded->reader;
	const struct heap_moment end = { .time_ns = walk->end_ns, .events = CUF_UNKNOWN };
	struct heap_totals totals;
	struct sites sites;

	sites_init(&sites);
	heap_read(reader, &walk->means, &end, &sites, &totals);
	for (size_t i = 0; i < sites.count; i++) {
		const struct site *held = &sites.items[i];
		for (int which = 0; which < 2; which++) {
			struct account_site *site;
			if (!is_of(walk, which, held->stack))
				continue;
			site = account_site_of(walk->from, groups[which], held->stack);
			site->peak_bytes = site->end_bytes = held->live_bytes;
			site->peak_count = site->end_count = held->live_count;
			walk->end[which].value += (double)held->live_bytes;
			walk->end[which].variance += held->live_variance;
			walk->end[which].third += held->live_third;
		}
	}
	sites_fini(&sites);
	return totals;
}

static void add_estimate(struct gate_value *sum, const struct host_estimate *estimate,
			 uint64_t mean_bytes, bool complete)
{
	struct host_interval interval = host_estimate_interval(estimate, (double)mean_bytes);
	uint64_t value = host_whole(estimate->value);

	if (!mean_bytes && complete)
		account_add(sum, value, value, value, "");
	else if (!complete)
		account_add(sum, value, mean_bytes ? host_whole(interval.low) : value, CUF_UNKNOWN,
			    overwritten);
	else
		account_add(sum, value, host_whole(interval.low), host_whole(interval.high),
			    sampled);
}

/* The level before the first event is what is live at the end, minus all changes. */
static struct host_estimate at_peak(const struct walk *walk, int which)
{
	const struct level *level = &walk->levels[which];
	struct host_estimate peak = walk->end[which];

	peak.value += level->highest.value - level->now.value;
	peak.variance += level->highest.variance - level->now.variance;
	peak.third += level->highest.third - level->now.third;
	peak.variance = fmax(0, peak.variance);
	peak.third = fmax(0, peak.third);
	return peak;
}

static void add_values(const struct walk *walk, const struct heap_totals *totals)
{
	const struct cuf_header *header = &walk->from->recorded->reader->header;
	bool complete = !header->host_overwritten && !header->lost[CUF_LOST_HOST_RING];
	bool whole = !header->lost[CUF_LOST_HOST_LEDGER];

	for (int i = 0; i < 2; i++) {
		struct host_estimate peak = at_peak(walk, i);
		struct account *account = walk->from->account;
		if (!totals->known) {
			account_add(&account->peak[groups[i]], CUF_UNKNOWN, 0, CUF_UNKNOWN,
				    not_recorded);
			account_add(&account->end[groups[i]], CUF_UNKNOWN, 0, CUF_UNKNOWN,
				    not_recorded);
			continue;
		}
		add_estimate(&account->peak[groups[i]], &peak, totals->mean_bytes,
			     complete && whole);
		add_estimate(&account->end[groups[i]], &walk->end[i], totals->mean_bytes, whole);
	}
}

void account_host(const struct account_process *from)
{
	const struct reader *reader = from->recorded->reader;
	struct walk walk = { .from = from, .end_ns = CUF_UNKNOWN };
	struct heap_totals totals;

	walk.means = host_means_of(reader, &from->recorded->meta);
	if (reader->header.work_end_ns)
		walk.end_ns = reader->header.work_end_ns;
	walk.is_python = python_stacks(walk.from->recorded->reader, &walk.stack_count);
	totals = take_end(&walk);
	find_peaks(&walk);
	take_peak_sites(&walk);
	settle_sites(&walk);
	add_values(&walk, &totals);
	free(walk.is_python);
}
