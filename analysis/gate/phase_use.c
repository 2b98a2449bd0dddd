/* SPDX-License-Identifier: Apache-2.0 */
/* What phases needed, and who caused it. */
#include "analysis/gate/phase_use.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/gate/changes.h"
#include "analysis/growth/phases.h"

/* ---- one phase: its changes are followed twice, for where each peak was and who caused it ---- */

/* Bytes of one call site and group; moment 0: at the peak, 1: at the end. */
struct held {
	uint32_t stack;
	enum gate_group group;
	int64_t bytes[2], blocks[2];
};

struct walk {
	const struct run_process *process;
	enum changes_of of;
	uint64_t begin, end;          /* changes after begin, up to end */
	uint64_t peak_at[GROUP_MAX];  /* number of the change that made the peak; 0: the begin */
	struct hash_index index;
	struct held *items;
	size_t count, room;
};

static bool next_in_phase(const struct walk *walk, struct changes *changes, struct change *change)
{
	while (changes_next(changes, change))
		if (change->at > walk->begin && change->at <= walk->end)
			return true;
	return false;
}

static void find_peaks(struct walk *walk)
{
	int64_t level[GROUP_MAX] = { 0 }, highest[GROUP_MAX] = { 0 };
	struct changes changes;
	struct change change;

	changes_begin(&changes, walk->process, walk->of);
	for (uint64_t number = 1; next_in_phase(walk, &changes, &change); number++)
		for (int group = 0; group < GROUP_MAX; group++) {
			if (!(change.groups >> group & 1))
				continue;
			level[group] += change.bytes;
			if (level[group] > highest[group]) {
				highest[group] = level[group];
				walk->peak_at[group] = number;
			}
		}
	changes_end(&changes);
}

static struct held *held_of(struct walk *walk, enum gate_group group, uint32_t stack)
{
	uint32_t site = reader_call_site(walk->process->reader, stack);
	uint32_t *place = hash_index_place(&walk->index, (uint64_t)group << 32 | site);

	if (!*place) {
		xalloc_grow(&walk->items, walk->count, &walk->room, sizeof *walk->items);
		walk->items[walk->count] = (struct held){ .stack = site, .group = group };
		*place = (uint32_t)++walk->count;
	}
	return &walk->items[*place - 1];
}

static void add_up(struct walk *walk)
{
	struct changes changes;
	struct change change;

	changes_begin(&changes, walk->process, walk->of);
	for (uint64_t number = 1; next_in_phase(walk, &changes, &change); number++)
		for (int group = 0; group < GROUP_MAX; group++) {
			struct held *held;
			if (!(change.groups >> group & 1))
				continue;
			held = held_of(walk, group, change.stack);
			for (int moment = number > walk->peak_at[group]; moment < 2; moment++) {
				held->bytes[moment] += change.bytes;
				held->blocks[moment] += change.blocks;
			}
		}
	changes_end(&changes);
}

static int by_size(const void *a, const void *b)
{
	const struct phase_site *left = a, *right = b;

	if (left->at_end != right->at_end)
		return left->at_end - right->at_end;
	if (left->group != right->group)
		return left->group < right->group ? -1 : 1;
	if (left->bytes != right->bytes)
		return left->bytes > right->bytes ? -1 : 1;
	return compare_numbers(left->stack.id, right->stack.id);
}

static struct fact_stack stack_in(const struct phase_use *use, const struct run_process *process,
				  uint32_t id)
{
	struct fact_stack stack = { .process = use->process, .time_ns = CUF_UNKNOWN };

	stack.addrs = reader_stack(process->reader, id, &stack.depth, &stack.stop);
	if (stack.depth)
		stack.id = id;
	return stack;
}

/* Sites that freed more than they allocated are not to blame. */
static void collect_held(const struct walk *walk, const struct phase_use *use,
			 struct phase_site **sites, size_t *count, size_t *room)
{
	for (size_t i = 0; i < walk->count; i++)
		for (int moment = 0; moment < 2; moment++) {
			const struct held *held = &walk->items[i];
			if (held->bytes[moment] <= 0)
				continue;
			xalloc_grow(sites, *count, room, sizeof **sites);
			(*sites)[(*count)++] = (struct phase_site){
				held->group, moment, stack_in(use, walk->process, held->stack),
				held->bytes[moment], held->blocks[moment],
			};
		}
}

/* The largest of each group and moment. */
static size_t keep_largest(struct phase_site *sites, size_t count)
{
	size_t kept = 0, of_this = 0;

	qsort(sites, count, sizeof *sites, by_size);
	for (size_t i = 0; i < count; i++) {
		if (i && (sites[i].group != sites[i - 1].group ||
			  sites[i].at_end != sites[i - 1].at_end))
			of_this = 0;
		if (of_this++ < PHASE_SITES_MAX)
			sites[kept++] = sites[i];
	}
	return kept;
}

/* Fills sites and site_count of a use whose amounts are known, in the arena. */
static void read_sites(struct phase_use *use, const struct run_process *process,
		       const struct phase_span *span, struct arena *arena)
{
	struct phase_site *sites = NULL;
	size_t count = 0, room = 0;

	for (enum changes_of of = CHANGES_DEVICE; of <= CHANGES_HOST; of++) {
		bool device = of == CHANGES_DEVICE;
		struct walk walk = { .process = process, .of = of,
				     .begin = device ? span->begin_seq : span->begin_ns,
				     .end = device ? span->end_seq : span->end_ns };
		hash_index_init(&walk.index, 64);
		find_peaks(&walk);
		add_up(&walk);
		collect_held(&walk, use, &sites, &count, &room);
		hash_index_fini(&walk.index);
		free(walk.items);
	}
	if (count)
		count = keep_largest(sites, count);
	use->sites = arena_copy(arena, sites, count, sizeof *sites);
	use->site_count = count;
	free(sites);
}

/* ---- levels of each group along the events, and where each phase begins and ends in them ---- */

static const char *const overwritten = "events were overwritten; record with a larger --size";

static const char *const stacks_dropped = "call stacks were dropped; record with a larger --size";

/* One process. The phases of it are items[0..span_count). */
struct use_reading {
	const struct run_process *process;
	struct phase_spans spans;
	struct phase_use *items;
	struct phase_bound *bounds; /* of one stream, sorted */
	size_t bound_count;
};

/* Live bytes of each group since the first event. */
struct held_now {
	int64_t now[GROUP_MAX];
	uint64_t place; /* changes so far */
	struct extremes most[GROUP_MAX];
};

/* A begin or an end among the events of a stream. */
struct phase_bound {
	uint64_t at;
	size_t span;
	bool is_end;
};

struct start { int64_t level[GROUP_MAX]; uint64_t place; };

static int by_place(const void *a, const void *b)
{
	const struct phase_bound *left = a, *right = b;

	if (left->at != right->at)
		return compare_numbers(left->at, right->at);
	return left->is_end - right->is_end;
}

/* Marks are moments and have no bounds. */
static void sort_bounds(struct use_reading *reading, enum changes_of of)
{
	const struct phase_spans *spans = &reading->spans;

	free(reading->bounds);
	reading->bounds = xalloc_zeroed(2 * spans->count, sizeof *reading->bounds);
	reading->bound_count = 0;
	for (size_t i = 0; i < spans->count; i++) {
		const struct phase_span *span = &spans->items[i];
		bool device = of == CHANGES_DEVICE;
		uint64_t begin = device ? span->begin_seq : span->begin_ns;
		uint64_t end = device ? span->end_seq : span->end_ns;
		if (span->op == CUF_PHASE_MARK)
			continue;
		reading->bounds[reading->bound_count++] = (struct phase_bound){ begin, i, false };
		reading->bounds[reading->bound_count++] = (struct phase_bound){ end, i, true };
	}
	if (reading->bound_count)
		qsort(reading->bounds, reading->bound_count, sizeof *reading->bounds, by_place);
}

static bool is_of_changes(enum changes_of of, enum gate_group group)
{
	return (of == CHANGES_HOST) == (group >= GROUP_HOST);
}

static void finish_use(struct phase_use *use, const struct start *start,
		       const struct held_now *levels, enum changes_of of)
{
	for (int group = 0; group < GROUP_MAX; group++) {
		struct phase_amount *amount = &use->amounts[group];
		int64_t most;
		if (!is_of_changes(of, group))
			continue;
		most = extremes_since(&levels->most[group], start->place + 1,
				      start->level[group]);
		amount->stay_bytes = levels->now[group] - start->level[group];
		amount->need_bytes = 0;
		if (most > start->level[group])
			amount->need_bytes = (uint64_t)(most - start->level[group]);
		amount->basis = BASIS_OBSERVED;
	}
}

static void add_change(struct held_now *levels, const struct change *change)
{
	levels->place++;
	for (int group = 0; group < GROUP_MAX; group++) {
		if (!(change->groups >> group & 1))
			continue;
		levels->now[group] += change->bytes;
		extremes_add(&levels->most[group], levels->place, levels->now[group]);
	}
}

/* Each bound lies between two changes: after those with its own number. */
static void follow_changes(struct use_reading *reading, enum changes_of of)
{
	struct start *starts = xalloc_zeroed(reading->spans.count, sizeof *starts);
	struct held_now levels = { .place = 0 };
	struct changes changes;
	struct change change;
	size_t next = 0;
	bool more = true;

	for (int group = 0; group < GROUP_MAX; group++)
		levels.most[group].sign = 1;
	sort_bounds(reading, of);
	changes_begin(&changes, reading->process, of);
	while (more) {
		more = changes_next(&changes, &change);
		for (; next < reading->bound_count &&
		       (!more || reading->bounds[next].at < change.at); next++) {
			size_t span = reading->bounds[next].span;
			if (reading->bounds[next].is_end) {
				finish_use(&reading->items[span], &starts[span], &levels, of);
				continue;
			}
			memcpy(starts[span].level, levels.now, sizeof levels.now);
			starts[span].place = levels.place;
		}
		if (more)
			add_change(&levels, &change);
	}
	changes_end(&changes);
	for (int group = 0; group < GROUP_MAX; group++)
		free(levels.most[group].items);
	free(starts);
}

/* ---- what the rings do not have ---- */

static void forget_use(struct phase_use *use, enum changes_of of, const char *why)
{
	for (int group = 0; group < GROUP_MAX; group++)
		if (is_of_changes(of, group))
			use->amounts[group] =
				(struct phase_amount){ CUF_UNKNOWN, 0, BASIS_NONE, why };
}

/* The first host event that was kept; phases before it have lost events. */
static uint64_t first_host_ns(const struct reader *reader)
{
	struct host_stream *stream = host_stream_new(reader);
	struct host_event event = { .time_ns = CUF_UNKNOWN };

	host_stream_next(stream, &event);
	host_stream_free(stream);
	return event.time_ns;
}

static void judge_host(const struct use_reading *reading, const struct phase_span *span,
		       struct phase_use *use, uint64_t since_ns)
{
	const struct cuf_header *header = &reading->process->reader->header;
	enum fact_basis basis = BASIS_ESTIMATED;

	if (header->options_host_mode == CUF_HOST_FULL)
		basis = BASIS_OBSERVED;
	use->amounts[GROUP_HOST].basis = use->amounts[GROUP_PYTHON].basis = basis;
	if (header->options_host_mode == CUF_HOST_OFF)
		forget_use(use, CHANGES_HOST, "host memory was not recorded (--host=off)");
	else if (span->begin_ns < since_ns)
		forget_use(use, CHANGES_HOST, overwritten);
	else if (header->lost[CUF_LOST_STACKS]) /* whose blocks they are is not known */
		use->amounts[GROUP_PYTHON] = (struct phase_amount){
			CUF_UNKNOWN, 0, BASIS_NONE, stacks_dropped };
}

/* Figures of phases that began before the oldest event of a ring are unknown. */
static void judge_use(struct use_reading *reading)
{
	const struct events *events = reading->process->events;
	const struct cuf_header *header = &reading->process->reader->header;
	uint64_t since_seq = most_of(events->complete_since, events->framework->complete_since);
	uint64_t since_ns = 0;

	if (header->host_overwritten || header->lost[CUF_LOST_HOST_RING])
		since_ns = first_host_ns(reading->process->reader);
	for (size_t i = 0; i < reading->spans.count; i++) {
		const struct phase_span *span = &reading->spans.items[i];
		judge_host(reading, span, &reading->items[i], since_ns);
		if (span->begin_seq < since_seq)
			forget_use(&reading->items[i], CHANGES_DEVICE, overwritten);
	}
}

/* ---- the phases themselves ---- */

static const char *phase_name_of(const struct meta *meta, uint32_t number)
{
	for (size_t i = 0; i < meta->text_count; i++)
		if (meta->texts[i].type == CUF_META_PHASE && meta->texts[i].number == number)
			return meta->texts[i].text;
	return "(name lost)";
}

static struct phase_use use_of(const struct run_process *process, uint32_t index,
			       const struct phase_span *span)
{
	struct phase_use use = {
		.name = phase_name_of(&process->meta, span->name),
		.process = index,
		.pid = process->reader->header.pid,
		.depth = span->depth,
		.id = span->id,
		.is_request = span->op == CUF_PHASE_REQUEST_BEGIN,
		.begin_ns = reader_realtime(process->reader, span->begin_ns),
		.end_ns = CUF_UNKNOWN,
	};

	if (span->end_ns != CUF_UNKNOWN)
		use.end_ns = reader_realtime(process->reader, span->end_ns);
	for (int group = 0; group < GROUP_MAX; group++)
		use.amounts[group].why = "";
	return use;
}

static bool is_asked_for(const struct phase_span *span, uint64_t id)
{
	if (span->op == CUF_PHASE_MARK)
		return false;
	return !id || (span->id == id && span->op != CUF_PHASE_PUSH &&
		       span->source == CUF_PHASE_PROGRAM);
}

static void add_one(struct phase_uses *out, const struct run *run, uint32_t index, uint64_t id,
		    bool sites)
{
	struct run_process *process = &run->processes[index];
	struct use_reading reading = { .process = process };
	struct work_base base = { WORK_DEVICE, 0 };

	spans_read(&reading.spans, process->events, &base);
	reading.items = xalloc_zeroed(reading.spans.count, sizeof *reading.items);
	for (size_t i = 0; i < reading.spans.count; i++)
		reading.items[i] = use_of(process, index, &reading.spans.items[i]);
	follow_changes(&reading, CHANGES_DEVICE);
	follow_changes(&reading, CHANGES_HOST);
	judge_use(&reading);
	out->items = xalloc_resize(out->items, out->count + reading.spans.count,
				   sizeof *out->items);
	for (size_t i = 0; i < reading.spans.count; i++) {
		const struct phase_span *span = &reading.spans.items[i];
		if (!is_asked_for(span, id))
			continue;
		if (sites)
			read_sites(&reading.items[i], process, span, out->arena);
		out->items[out->count++] = reading.items[i];
	}
	free(reading.bounds);
	free(reading.items);
	free(reading.spans.items);
}

void phase_uses_read(struct phase_uses *out, const struct run *run, uint64_t id, bool sites)
{
	*out = (struct phase_uses){ .arena = arena_new() };
	for (uint32_t i = 0; i < run->count; i++)
		add_one(out, run, i, id, sites);
}

void phase_uses_free(struct phase_uses *uses)
{
	free(uses->items);
	arena_free(uses->arena);
	*uses = (struct phase_uses){ 0 };
}
