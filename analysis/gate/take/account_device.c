/* SPDX-License-Identifier: Apache-2.0 */
/* Groups that the driver or a framework allocates: levels are followed through both rings. */
#include "analysis/gate/take/account.h"

#include "analysis/base/numbers.h"
#include "analysis/facts/facts.h"

static const char *const overwritten =
	"events were overwritten; record with a larger --size";

/* One process: levels relative to what is live at the end. */
struct walk {
	const struct account_process *from;
	uint64_t end_seq;
	bool complete;
	int64_t level[GROUP_HOST], highest[GROUP_HOST];
	uint64_t highest_seq[GROUP_HOST];
};

/* Before exit handlers, and before an interpreter that shut down freed everything. */
static uint64_t end_seq_of(const struct cuf_header *header)
{
	if (!header->end_kind || !header->end_seq)
		return CUF_UNKNOWN;
	if (!header->work_end_ns)
		return header->end_seq;
	return least_of(header->work_end_seq, header->end_seq);
}

/* GROUP_MAX: an address range, a pool, or another owner's memory. */
static enum gate_group group_of(unsigned kind, unsigned flags)
{
	if (kind == CUF_KIND_PINNED || kind == CUF_KIND_REGISTERED)
		return GROUP_PINNED;
	if (kind == CUF_KIND_MANAGED)
		return GROUP_MANAGED;
	if (kind == CUF_KIND_FRAMEWORK)
		return GROUP_FRAMEWORK;
	if (kind_is_device_memory(kind) && !(flags & CUF_EVENT_HOST_LOCATION))
		return GROUP_DEVICE;
	return GROUP_MAX;
}

static int64_t delta_of(const struct cuf_event *event)
{
	if (event->bytes > BYTES_SANE)
		return 0;
	if (event->op == CUF_OP_FREE)
		return -(int64_t)event->bytes;
	if (event->op == CUF_OP_ALLOC || event->op == CUF_OP_RESTORE)
		return (int64_t)event->bytes;
	return 0;
}

static void follow(struct walk *walk)
{
	const struct events *events = walk->from->recorded->events;
	uint64_t after = most_of(events->complete_since, events->framework->complete_since);
	struct event_merge merge;
	struct cuf_event event;

	walk->complete = !after;
	event_merge_begin(&merge, events, after);
	while (event_merge_next(&merge, &event) && event.seq <= walk->end_seq) {
		enum gate_group group = group_of(event.kind, event.flags);
		if (group >= GROUP_HOST)
			continue;
		walk->level[group] += delta_of(&event);
		if (walk->level[group] > walk->highest[group]) {
			walk->highest[group] = walk->level[group];
			walk->highest_seq[group] = event.seq;
		}
	}
}

/* What each call site holds at a moment, in one group or in all (GROUP_MAX); the sum of each. */
static bool take_sites(const struct walk *walk, uint64_t seq, enum gate_group only,
		       uint64_t sums[GROUP_HOST])
{
	bool exact;
	const struct liveset *live = run_live(walk->from->recorded, seq, &exact);
	size_t at = 0;

	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		enum gate_group group = group_of(block->kind, block->flags);
		struct account_site *site;
		if (group >= GROUP_HOST || block->bytes > BYTES_SANE)
			continue;
		if (only != GROUP_MAX && group != only)
			continue;
		site = account_site_of(walk->from, group, block->stack);
		sums[group] += block->bytes;
		if (only == GROUP_MAX) {
			site->end_bytes += block->bytes;
			site->end_count++;
		} else {
			site->peak_bytes += block->bytes;
			site->peak_count++;
		}
	}
	return exact;
}

/* Pinned memory was also sampled: a lower bound where events are gone. */
static uint64_t sampled_peak(const struct walk *walk, enum gate_group group)
{
	const struct fact_process *process = &walk->from->facts->processes[walk->from->process];
	uint64_t most = 0;

	if (group != GROUP_PINNED)
		return 0;
	for (size_t i = 0; i < process->timeline_count; i++)
		most = most_of(most, known_or_zero(process->timeline[i].pinned_bytes));
	return most;
}

/* The peaks, latest first, so that each event is undone once. */
static void take_peaks(struct walk *walk)
{
	bool done[GROUP_HOST] = { false };

	for (int turn = 0; turn < GROUP_HOST; turn++) {
		struct gate_value *peak;
		uint64_t sums[GROUP_HOST] = { 0 }, bytes;
		int latest = -1;
		for (int i = 0; i < GROUP_HOST; i++)
			if (!done[i] && (latest < 0 ||
					 walk->highest_seq[i] > walk->highest_seq[latest]))
				latest = i;
		done[latest] = true;
		peak = &walk->from->account->peak[latest];
		if (walk->highest_seq[latest])
			take_sites(walk, walk->highest_seq[latest], latest, sums);
		bytes = most_of(sums[latest], sampled_peak(walk, latest));
		if (walk->complete)
			account_add(peak, bytes, bytes, bytes, "");
		else
			account_add(peak, bytes, bytes, CUF_UNKNOWN, overwritten);
	}
}

void account_device(const struct account_process *from)
{
	struct walk walk = { .from = from,
			     .end_seq = end_seq_of(&from->recorded->reader->header) };
	uint64_t sums[GROUP_HOST] = { 0 };
	bool exact = take_sites(&walk, walk.end_seq, GROUP_MAX, sums);

	for (int i = 0; i < GROUP_HOST; i++) {
		if (exact)
			account_add(&from->account->end[i], sums[i], sums[i], sums[i], "");
		else
			account_add(&from->account->end[i], sums[i], sums[i], CUF_UNKNOWN,
				    overwritten);
	}
	follow(&walk);
	take_peaks(&walk);
}
