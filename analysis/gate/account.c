/* SPDX-License-Identifier: Apache-2.0 */
/* Live memory over the whole time: rows of call sites, and sums that both sides add to. */
#include "analysis/gate/account.h"

#include <math.h>
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/facts.h"
#include "analysis/gate/changes.h"
#include "analysis/measure/heap.h"
#include "analysis/recording/host_weight.h"

/* One recorded process, whose share is added. */
struct account_process {
	struct account *account;
	const struct facts *facts;
	struct run_process *recorded;
	uint32_t process;
};

static struct fact_stack copy_stack(const struct account_process *from, uint32_t id)
{
	struct fact_stack stack = { .process = from->process, .time_ns = CUF_UNKNOWN };
	const uint64_t *addrs = reader_stack(from->recorded->reader, id, &stack.depth, &stack.stop);

	if (stack.depth) {
		stack.id = id;
		stack.addrs = arena_copy(from->account->arena, addrs, stack.depth, sizeof *addrs);
	}
	return stack;
}

/* The row of a call site of this process; valid until the next call. */
static struct account_site *account_site_of(const struct account_process *from,
					    enum gate_group group, uint32_t stack)
{
	struct account *account = from->account;
	uint64_t owner = (uint64_t)from->process * GROUP_MAX + group;
	uint32_t id = reader_call_site(from->recorded->reader, stack);
	uint32_t *place = hash_index_place(&account->index, owner << 32 | id);

	if (!*place) {
		xalloc_grow(&account->sites, account->site_count, &account->site_room,
			    sizeof *account->sites);
		account->sites[account->site_count] =
			(struct account_site){ .stack = copy_stack(from, id), .group = group };
		*place = (uint32_t)++account->site_count;
	}
	return &account->sites[*place - 1];
}

static void account_add(struct gate_value *sum, uint64_t value, uint64_t low, uint64_t high,
			const char *why)
{
	if (value == CUF_UNKNOWN || sum->value == CUF_UNKNOWN)
		sum->value = CUF_UNKNOWN;
	else
		sum->value += value;
	sum->low += low;
	if (high == CUF_UNKNOWN || sum->high == CUF_UNKNOWN)
		sum->high = CUF_UNKNOWN;
	else
		sum->high += high;
	if (!*sum->why)
		sum->why = why;
}

/* A sum that lost events made negative held nothing. */
static void settle_site(struct account_site *site)
{
	if ((int64_t)site->peak_bytes < 0 || (int64_t)site->peak_count <= 0)
		site->peak_bytes = site->peak_count = 0;
}

/* ---- what the driver or a framework allocates ---- */

static const char *const overwritten = "events were overwritten; record with a larger --size";

/* What each call site holds at the end of the work; the sum of each group. False: not exact. */
static bool take_sites(const struct account_process *from, uint64_t sums[GROUP_HOST])
{
	bool exact;
	const struct liveset *live =
		run_live(from->recorded, from->recorded->peaks.end_seq, &exact);
	size_t at = 0;

	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		enum gate_group group = (enum gate_group)live_group_of(block->kind, block->flags);
		struct account_site *site;
		if (group == GROUP_HOST || block->bytes > BYTES_SANE)
			continue;
		site = account_site_of(from, group, block->stack);
		sums[group] += block->bytes;
		site->end_bytes += block->bytes;
		site->end_count++;
	}
	return exact;
}

/* Pinned memory was also sampled: a lower bound where events are gone. */
static uint64_t sampled_peak(const struct account_process *from, enum gate_group group)
{
	const struct fact_process *process = &from->facts->processes[from->process];
	uint64_t most = 0;

	if (group != GROUP_PINNED)
		return 0;
	for (size_t i = 0; i < process->timeline_count; i++)
		most = most_of(most, known_or_zero(process->timeline[i].pinned_bytes));
	return most;
}

/* What the call sites of a group held at its peak: what they hold at the end, less what changed
 * since. Returns the sum. */
static uint64_t take_peak_of(const struct account_process *from, enum gate_group group)
{
	const struct level_changes *since = &from->recorded->peaks.since[group];
	struct account *account = from->account;
	uint64_t sum = 0;

	for (size_t i = 0; i < since->count; i++) {
		struct account_site *site = account_site_of(from, group, since->items[i].site);
		site->peak_bytes -= since->items[i].bytes;
		site->peak_count -= since->items[i].count;
	}
	for (size_t i = 0; i < account->site_count; i++) {
		struct account_site *site = &account->sites[i];
		if (site->group != group || site->stack.process != from->process)
			continue;
		site->peak_bytes += site->end_bytes;
		site->peak_count += site->end_count;
		settle_site(site);
		sum += site->peak_bytes;
	}
	return sum;
}

static void take_peaks(const struct account_process *from)
{
	const struct live_peaks *found = &from->recorded->peaks;

	for (int i = 0; i < GROUP_HOST; i++) {
		uint64_t bytes = found->highest_seq[i] ? take_peak_of(from, i) : 0;

		bytes = most_of(bytes, sampled_peak(from, i));
		if (!found->after_seq)
			account_add(&from->account->peak[i], bytes, bytes, bytes, "");
		else
			account_add(&from->account->peak[i], bytes, bytes, CUF_UNKNOWN,
				    overwritten);
	}
}

/* all groups but HOST and PYTHON */
static void take_device_ends(const struct account_process *from)
{
	uint64_t sums[GROUP_HOST] = { 0 };
	bool exact = take_sites(from, sums);

	for (int i = 0; i < GROUP_HOST; i++) {
		if (exact)
			account_add(&from->account->end[i], sums[i], sums[i], sums[i], "");
		else
			account_add(&from->account->end[i], sums[i], sums[i], CUF_UNKNOWN,
				    overwritten);
	}
}

/* ---- host memory: its events are followed once, for the peaks and for who held them ---- */

static const char *const sampled = "host memory was sampled; record with --host=full";
static const char *const not_recorded = "host memory was not recorded (--host=off)";

/* One group: the level since the first event, and its changes since it was highest. */
struct level {
	struct host_estimate now, highest;
	struct level_changes since;
};

struct host_walk {
	const struct account_process *from;
	struct host_means means;
	uint64_t end_ns;  /* CLOCK_MONOTONIC; CUF_UNKNOWN: the end of the recording */
	bool *is_python;  /* by stack id */
	size_t stack_count;
	struct level levels[2];         /* HOST, PYTHON */
	struct host_estimate end[2];
	struct sites sites;         /* at the end */
	struct heap_totals totals;
};
static const enum gate_group groups[2] = { GROUP_HOST, GROUP_PYTHON };

static bool is_of_walk(const struct host_walk *walk, int which, uint32_t stack)
{
	return !which || (stack < walk->stack_count && walk->is_python[stack]);
}

/* The next event that changes what is live, up to the end. Those after it are undone. */
static bool next_change(struct host_walk *walk, struct host_stream *stream,
			struct host_event *event)
{
	while (host_stream_next(stream, event)) {
		if (event->time_ns > walk->end_ns)
			heap_undo(walk->from->recorded->reader, event, &walk->sites, &walk->totals);
		else if (host_event_sign(event->op) && event->bytes)
			return true;
	}
	return false;
}

static void note_change(struct level *level, uint32_t site, const struct host_event *event)
{
	uint64_t mean = event->sample_mean_bytes,
		 sign = (uint64_t)(int64_t)host_event_sign(event->op);

	level_changes_add(&level->since, site, sign * host_weight_bytes(event->bytes, mean),
			  sign * host_weight_count(event->bytes, mean));
}

/* Where each level was highest, and what changed since; at last, what was live at the end. */
static void account_events(struct host_walk *walk)
{
	const struct reader *reader = walk->from->recorded->reader;
	struct host_stream *stream = host_stream_new(reader);
	struct host_event event;

	sites_init(&walk->sites);
	heap_read_end(reader, &walk->means, &walk->sites, &walk->totals);
	while (next_change(walk, stream, &event)) {
		double chance = host_weight_chance(event.bytes, event.sample_mean_bytes);
		uint32_t site = reader_call_site(reader, event.stack);
		for (int i = 0; i < 2; i++) {
			struct level *level = &walk->levels[i];
			if (!is_of_walk(walk, i, event.stack))
				continue;
			host_estimate_add(&level->now, (double)event.bytes / chance, chance,
					  host_event_sign(event.op));
			if (level->now.value > level->highest.value) {
				level->highest = level->now;
				level->since.count = 0;
			} else {
				note_change(level, site, &event);
			}
		}
	}
	host_stream_free(stream);
	if (walk->end_ns != CUF_UNKNOWN)
		heap_settle(&walk->sites, &walk->totals);
}

/* The sites at the end, less what changed after the peak. */
static void take_peak_sites(struct host_walk *walk)
{
	for (int i = 0; i < 2; i++) {
		struct level *level = &walk->levels[i];
		for (size_t k = 0; k < level->since.count; k++) {
			const struct level_change *change = &level->since.items[k];
			struct account_site *site =
				account_site_of(walk->from, groups[i], change->site);
			site->peak_bytes -= change->bytes;
			site->peak_count -= change->count;
		}
		level_changes_fini(&level->since);
	}
}

static void settle_sites(const struct host_walk *walk)
{
	struct account *account = walk->from->account;

	for (size_t i = 0; i < account->site_count; i++)
		if (account->sites[i].group >= GROUP_HOST)
			settle_site(&account->sites[i]);
}

/* What is live at the end, by call site. */
static void take_end(struct host_walk *walk)
{
	for (size_t i = 0; i < walk->sites.count; i++) {
		const struct site *held = &walk->sites.items[i];
		for (int which = 0; which < 2; which++) {
			struct account_site *site;
			if (!is_of_walk(walk, which, held->stack))
				continue;
			site = account_site_of(walk->from, groups[which], held->stack);
			site->peak_bytes = site->end_bytes = held->live_bytes;
			site->peak_count = site->end_count = held->live_count;
			walk->end[which].value += (double)held->live_bytes;
			walk->end[which].variance += held->live_variance;
			walk->end[which].third += held->live_third;
		}
	}
	sites_fini(&walk->sites);
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
static struct host_estimate at_peak(const struct host_walk *walk, int which)
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

static void add_host_values(const struct host_walk *walk)
{
	const struct heap_totals *totals = &walk->totals;
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

/* HOST and PYTHON */
static void account_host(const struct account_process *from)
{
	const struct reader *reader = from->recorded->reader;
	struct host_walk walk = { .from = from, .end_ns = CUF_UNKNOWN };

	for (int i = 0; i < 2; i++)
		level_changes_init(&walk.levels[i].since);
	walk.means = host_means_of(reader, &from->recorded->meta);
	if (reader->header.work_end_ns)
		walk.end_ns = reader->header.work_end_ns;
	walk.is_python = python_stacks(walk.from->recorded->reader, &walk.stack_count);
	account_events(&walk);
	take_end(&walk);
	take_peak_sites(&walk);
	settle_sites(&walk);
	add_host_values(&walk);
	free(walk.is_python);
}

/* ---- both ---- */

static void start_walk(struct account *account)
{
	for (int i = 0; i < GROUP_MAX; i++)
		account->peak[i] = account->end[i] = (struct gate_value){ .why = "" };
}

/* The recorder counts the peak of each device itself, whatever the rings lost. */
static void take_counted_peaks(struct account *account, const struct facts *facts)
{
	struct gate_value peak = { .why = "" };

	for (size_t i = 0; i < facts->device_count; i++) {
		const struct fact_device *device = &facts->devices[i];
		uint64_t bytes = device->peak_bytes;
		if (device->peak_basis == BASIS_OBSERVED || facts->process_count < 2)
			account_add(&peak, bytes, known_or_zero(bytes), bytes, "");
		else
			account_add(&peak, bytes, 0, bytes,
				    "older events of one of several processes are overwritten");
	}
	account->peak[GROUP_DEVICE] = peak;
}

void account_begin(struct account *out, const struct facts *facts, struct run *run,
		   struct arena *arena)
{
	*out = (struct account){ .arena = arena };
	hash_index_init(&out->index, 64);
	start_walk(out);
	for (uint32_t i = 0; i < run->count; i++)
		take_device_ends(&(struct account_process){ out, facts, &run->processes[i], i });
}

void account_end(struct account *account, const struct facts *facts, struct run *run)
{
	for (uint32_t i = 0; i < run->count; i++) {
		struct account_process from = { account, facts, &run->processes[i], i };
		take_peaks(&from);
		account_host(&from);
	}
	take_counted_peaks(account, facts);
}

void account_free(struct account *account)
{
	hash_index_fini(&account->index);
	free(account->sites);
	*account = (struct account){ 0 };
}
