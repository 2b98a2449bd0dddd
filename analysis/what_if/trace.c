/* SPDX-License-Identifier: Apache-2.0 */
/* See trace.h. One walk over both rings. Whether a range is a segment shows only when the framework
 * reports a block in it. So all requests are noted, and those of segments go at the end. */
#include "analysis/what_if/trace.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/key_values.h"
#include "analysis/base/numbers.h"
#include "analysis/base/sort.h"
#include "analysis/replay/run_groups.h"
#include "analysis/what_if/driver_pages.h"
#include "analysis/what_if/homes.h"

/* Kinds that occupy the device. */
#define DEVICE_KINDS \
	(1u << CUF_KIND_DEVICE | 1u << CUF_KIND_ASYNC | 1u << CUF_KIND_GRAPH | \
	 1u << CUF_KIND_VMM | 1u << CUF_KIND_ARRAY | 1u << CUF_KIND_CONTEXT | \
	 1u << CUF_KIND_FRAMEWORK)
/* Of these: ranges of addresses that a framework may split. */
#define RANGE_KINDS \
	(1u << CUF_KIND_DEVICE | 1u << CUF_KIND_ASYNC | 1u << CUF_KIND_MANAGED | \
	 1u << CUF_KIND_IMPORTED)
#define SEGMENT_BYTES_MIN (1ull << 20)

/* What a block needs until the end of the walk. */
struct block_note {
	uint32_t home;  /* of a framework's block, or the range that it is; HOME_NONE */
	uint64_t addr;  /* of a block of the driver in the mirror; 0: none */
	uint8_t role;   /* enum cuf_role, as recorded */
};

struct trace_walk {
	struct trace *trace;
	struct run_process *process;
	struct trace_options options;
	uint64_t since, last;        /* the events after the one, up to the other */
	struct homes *homes;
	struct liveset live;         /* by key; seq is the number of the block */
	struct block_note *notes;
	size_t note_room;
	struct driver_pages *mirror; /* what the driver gave, for the capacity */
	unsigned capturing;
	bool refused_by_driver;      /* since the framework's last block */
	bool emptied;                /* and a segment was freed since */
	uint64_t framework_bytes, framework_peak_bytes; /* in segments, as reported */
};

static bool is_one_of(unsigned kind, unsigned kinds)
{
	return kind < CUF_KIND_MAX && kinds >> kind & 1;
}

static struct trace_step *step_add(struct trace *trace, struct trace_step step)
{
	xalloc_grow(&trace->steps, trace->count, &trace->room, sizeof *trace->steps);
	trace->steps[trace->count] = step;
	return &trace->steps[trace->count++];
}

/* ---- the mirror ---- */

static bool is_address(unsigned kind)
{
	return kind == CUF_KIND_DEVICE || kind == CUF_KIND_ASYNC || kind == CUF_KIND_ARRAY;
}

static uint64_t mirror_take(struct trace_walk *walk, unsigned kind, uint64_t bytes)
{
	uint64_t addr = 1;
	if (kind == CUF_KIND_FRAMEWORK)
		return 0;
	if (is_address(kind) ? driver_take(walk->mirror, bytes, &addr) :
			       driver_create(walk->mirror, bytes))
		return addr;
	return 0;
}

static void mirror_give(struct trace_walk *walk, const struct block_note *note, uint64_t bytes)
{
	if (note->addr == 1)
		driver_release(walk->mirror, bytes);
	else if (note->addr)
		driver_give(walk->mirror, note->addr, bytes);
}

/* ---- blocks ---- */

static uint64_t step_key(unsigned kind, uint64_t addr)
{
	return cuf_key(cuf_kind_space(kind), addr);
}

/* A block ends: in the trace, in its home and in the mirror. */
static void block_end(struct trace_walk *walk, const struct cuf_event *event)
{
	struct cuf_block known;
	struct block_note *note;
	if (!liveset_take(&walk->live, step_key(event->kind, event->addr), &known))
		return;
	note = &walk->notes[known.seq];
	if (event->kind == CUF_KIND_FRAMEWORK)
		homes_give(walk->homes, note->home, event->addr, known.bytes);
	else if (is_one_of(event->kind, RANGE_KINDS))
		homes_close(walk->homes, event->addr, false);
	mirror_give(walk, note, known.bytes);
	if (walk->options.refused_seq < event->seq)
		return; /* the state settles; no request any more */
	step_add(walk->trace, (struct trace_step){ .bytes = known.bytes,
						   .time_ns = event->time_ns,
						   .seq = event->seq,
						   .block = (uint32_t)known.seq,
						   .tid = event->tid,
						   .op = TRACE_FREE,
						   .kind = event->kind });
}

static uint32_t event_home(struct trace_walk *walk, const struct cuf_event *event, bool is_old)
{
	if (event->kind == CUF_KIND_FRAMEWORK)
		return homes_alloc(walk->homes, event->addr, event->bytes, is_old,
				   walk->capturing > 0);
	if (is_one_of(event->kind, RANGE_KINDS) && event->bytes >= SEGMENT_BYTES_MIN)
		return homes_open(walk->homes, event->addr, event->bytes, false);
	return HOME_NONE;
}

/* A block begins; an event of a block that is live already replaces it. */
static void block_begin(struct trace_walk *walk, const struct cuf_event *event, bool is_old)
{
	struct trace *trace = walk->trace;
	uint64_t number = trace->block_count;
	struct cuf_block known = { .key = step_key(event->kind, event->addr),
				   .bytes = event->bytes,
				   .seq = number };
	if (number == UINT32_MAX - 1)
		return;
	block_end(walk, event);
	trace->block_count++;
	xalloc_grow(&walk->notes, number, &walk->note_room, sizeof *walk->notes);
	walk->notes[number] = (struct block_note){
		.home = event_home(walk, event, is_old),
		.addr = mirror_take(walk, event->kind, event->bytes),
	};
	liveset_put(&walk->live, &known);
	if (walk->options.refused_seq < event->seq)
		return;
	step_add(trace, (struct trace_step){
				.bytes = event->bytes,
				.time_ns = event->time_ns,
				.seq = event->seq,
				.block = (uint32_t)number,
				.stack = event->stack,
				.tid = event->tid,
				.op = TRACE_ALLOC,
				.kind = event->kind,
				.flags = (uint8_t)(is_old ? TRACE_OLD : 0) });
}

/* A label of a block comes after the block. */
static void note_role(struct trace_walk *walk, const struct cuf_event *event)
{
	struct cuf_block *known = liveset_find(&walk->live, step_key(event->kind, event->addr));
	if (known && event->extra < CUF_ROLE_MAX)
		walk->notes[known->seq].role = (uint8_t)event->extra;
}

/* Memory mapped into reserved addresses is of whoever reserved them. */
static void mapping_begin(struct trace_walk *walk, const struct cuf_event *event)
{
	struct cuf_block *handle = liveset_find(&walk->live, step_key(CUF_KIND_VMM, event->aux));
	if (handle)
		walk->notes[handle->seq].home = homes_reservation(walk->homes, event->addr);
}

/* ---- events ---- */

/* Segments that go without a refusal were released by the program. */
static void note_empty(struct trace_walk *walk, const struct cuf_event *event)
{
	if (!walk->emptied || event->kind != CUF_KIND_FRAMEWORK)
		return;
	walk->emptied = false;
	step_add(walk->trace, (struct trace_step){ .time_ns = event->time_ns,
						   .seq = event->seq,
						   .tid = event->tid,
						   .op = TRACE_EMPTY });
}

/* Called before a block of the driver ends: is it a segment that the program had emptied? */
static void watch_emptying(struct trace_walk *walk, const struct cuf_event *event)
{
	struct cuf_block *known = liveset_find(&walk->live, step_key(event->kind, event->addr));
	if (known && !walk->refused_by_driver && event->kind != CUF_KIND_FRAMEWORK &&
	    homes_is_segment(walk->homes, walk->notes[known->seq].home))
		walk->emptied = true;
}

static void take_block_event(struct trace_walk *walk, const struct cuf_event *event)
{
	if (event->op == CUF_OP_FREE)
		watch_emptying(walk, event);
	else
		note_empty(walk, event);
	if (event->kind == CUF_KIND_FRAMEWORK && event->op == CUF_OP_ALLOC) {
		walk->refused_by_driver = false;
		walk->framework_bytes = (uint64_t)event->extra << 9;
		walk->framework_peak_bytes =
			most_of(walk->framework_peak_bytes, walk->framework_bytes);
	}
	if (event->op == CUF_OP_FREE)
		block_end(walk, event);
	else
		block_begin(walk, event, false);
}

static void take_event(struct trace_walk *walk, const struct cuf_event *event)
{
	bool begins = event->op == CUF_OP_ALLOC || event->op == CUF_OP_RESTORE;
	if (event->op == CUF_OP_CAPTURE) {
		if (event->extra)
			walk->capturing++;
		else if (walk->capturing)
			walk->capturing--;
		return;
	}
	if (event->device != walk->options.device && event->kind != CUF_KIND_RESERVATION)
		return;
	if (event->flags & CUF_EVENT_HOST_LOCATION)
		return;
	if (event->op == CUF_OP_ROLE)
		note_role(walk, event);
	if (event->op == CUF_OP_FAIL)
		walk->refused_by_driver = true;
	if (!begins && event->op != CUF_OP_FREE)
		return;
	if (event->kind == CUF_KIND_RESERVATION) {
		if (begins)
			homes_open(walk->homes, event->addr, event->bytes, true);
		else
			homes_close(walk->homes, event->addr, true);
	} else if (event->kind == CUF_KIND_MAPPING) {
		if (begins)
			mapping_begin(walk, event);
	} else if (is_one_of(event->kind, DEVICE_KINDS | RANGE_KINDS)) {
		take_block_event(walk, event);
	}
}

/* ---- what was live at the beginning ---- */

/* 0: reserved addresses, 1: ranges and memory, 2: mappings, 3: blocks in them. */
static uint64_t step_rank_of(const struct cuf_block *block)
{
	switch (block->kind) {
	case CUF_KIND_RESERVATION: return 0;
	case CUF_KIND_MAPPING: return 2;
	case CUF_KIND_FRAMEWORK: return 3;
	default: return 1;
	}
}

struct old_block { uint64_t rank, seq; struct cuf_block block; };

static void old_begin(struct trace_walk *walk, const struct cuf_event *event, uint8_t role)
{
	uint32_t number = walk->trace->block_count;
	block_begin(walk, event, true);
	if (walk->trace->block_count != number && role < CUF_ROLE_MAX)
		walk->notes[number].role = role;
}

static void take_old(struct trace_walk *walk, const struct cuf_block *block)
{
	struct cuf_event event = { .op = CUF_OP_ALLOC,
				   .kind = block->kind,
				   .device = block->device,
				   .flags = block->flags,
				   .addr = cuf_key_addr(block->key),
				   .bytes = block->bytes,
				   .aux = block->aux,
				   .stack = block->stack,
				   .tid = block->tid,
				   .seq = block->seq,
				   .time_ns = block->time_ns };
	bool is_block = is_one_of(block->kind, DEVICE_KINDS | RANGE_KINDS);
	if (is_block && block->device == walk->options.device &&
	    !(block->flags & CUF_EVENT_HOST_LOCATION))
		old_begin(walk, &event, block->role);
	else if (!is_block)
		take_event(walk, &event);
}

static void begin_with(struct trace_walk *walk, struct liveset *live)
{
	struct old_block *old = xalloc_zeroed(live->count + 1, sizeof *old);
	const struct cuf_block *block;
	size_t at = 0, count = 0;
	while ((block = liveset_next(live, &at)))
		old[count++] = (struct old_block){
			step_rank_of(block), block->seq ? block->seq : block->time_ns, *block
		};
	sort_by_number(old, count, sizeof *old, offsetof(struct old_block, seq));
	sort_by_number(old, count, sizeof *old, offsetof(struct old_block, rank));
	for (size_t i = 0; i < count; i++)
		take_old(walk, &old[i].block);
	walk->trace->old_count = walk->trace->count;
	free(old);
}

/* ---- the whole ---- */

/* False: the step is of a segment, or of memory that takes none of the device's room. */
static bool is_request(const struct trace_walk *walk, const struct trace_step *step)
{
	if (step->op != TRACE_ALLOC && step->op != TRACE_FREE)
		return true;
	return is_one_of(step->kind, DEVICE_KINDS) &&
	       (step->kind == CUF_KIND_FRAMEWORK ||
		!homes_is_segment(walk->homes, walk->notes[step->block].home));
}

/* The request that failed is in no segment: it is of the group that its neighbours are of. */
static void learn_group(const struct trace_walk *walk, struct trace_step *step,
			struct trace_step *last)
{
	uint32_t home = walk->notes[step->block].home;
	if (step->kind != CUF_KIND_FRAMEWORK || step->op == TRACE_EMPTY)
		return;
	if (step->op == TRACE_REFUSED) {
		step->group = last->group;
		step->flags |= last->flags & TRACE_PRIVATE;
		return;
	}
	step->group = (uint16_t)homes_group(walk->homes, home);
	if (homes_is_private(walk->homes, home))
		step->flags |= TRACE_PRIVATE;
	if (step->op == TRACE_ALLOC)
		*last = *step;
}

/* The events of segments go, and each block of the framework learns its group. */
static void settle_steps(struct trace_walk *walk)
{
	struct trace *trace = walk->trace;
	struct trace_step last = { 0 };
	size_t kept = 0, old = 0;
	trace->group_count = homes_settle(walk->homes);
	for (size_t i = 0; i < trace->count; i++) {
		struct trace_step *step = &trace->steps[i];
		if (!is_request(walk, step))
			continue;
		learn_group(walk, step, &last);
		if (step->op == TRACE_ALLOC)
			step->role = walk->notes[step->block].role;
		if (step->op == TRACE_ALLOC)
			trace->kind_count[step->kind]++;
		old += i < trace->old_count;
		trace->steps[kept++] = *step;
	}
	trace->old_count = old;
	trace->count = kept;
}

static void refuse(struct trace_walk *walk, const struct cuf_event *event)
{
	struct trace *trace = walk->trace;
	trace->refused_seq = event->seq;
	step_add(trace, (struct trace_step){ .bytes = event->bytes,
					     .time_ns = event->time_ns,
					     .seq = event->seq,
					     .block = trace->block_count++,
					     .stack = event->stack,
					     .tid = event->tid,
					     .op = TRACE_REFUSED,
					     .kind = event->kind });
	/* its block has no note: a refused request is in no home */
	xalloc_grow(&walk->notes, trace->block_count - 1, &walk->note_room, sizeof *walk->notes);
	walk->notes[trace->block_count - 1] = (struct block_note){ .home = HOME_NONE };
}

/* The first event that counts: nothing after it is missing, and not more than steps_max follow. */
uint64_t trace_since(const struct events *events, size_t steps_max)
{
	const struct events *own = events->framework;
	uint64_t since = most_of(events->complete_since, own->complete_since);
	if (steps_max && own->count > steps_max)
		since = most_of(since, events_seq(own, own->count - steps_max));
	if (steps_max && events->count > steps_max)
		since = most_of(since, events_seq(events, events->count - steps_max));
	return since;
}

static uint64_t last_told(const struct reader *reader, const struct trace_options *options)
{
	const struct cuf_header *header = &reader->header;
	if (is_known(options->refused_seq))
		return most_of(options->refused_seq,
			       is_known(options->settled_seq) ? options->settled_seq : 0);
	if (header->work_end_seq)
		return header->work_end_seq;
	return header->end_kind && header->end_seq ? header->end_seq : CUF_UNKNOWN;
}

static bool trace_take_row(void *state, const struct sweep_row *row)
{
	struct trace_walk *walk = state;

	for (size_t i = 0; i < row->count; i++) {
		const struct cuf_event *event = &row->events[i];

		if (event->seq > walk->last)
			return false;
		if (event->seq <= walk->since)
			continue;
		if (event->seq == walk->options.refused_seq && event->op == CUF_OP_FAIL)
			refuse(walk, event);
		else
			take_event(walk, event);
	}
	return true;
}

static const char *told(const struct run_process *process, const char *key, struct arena *arena)
{
	for (size_t i = process->meta.text_count; i--;) {
		const char *value;
		size_t bytes;
		if (process->meta.texts[i].type != CUF_META_FRAMEWORK)
			continue;
		value = key_value(process->meta.texts[i].text, key, &bytes);
		if (value && bytes)
			return arena_text(arena, value, bytes);
	}
	return "";
}

/* The newer name wins, as in PyTorch. */
static const char *recorded_settings(const struct run_process *process)
{
	static const char *const names[] = { "PYTORCH_ALLOC_CONF=", "PYTORCH_CUDA_ALLOC_CONF=" };
	const char *value = variable_of_texts(process->meta.texts, process->meta.text_count,
					      names, sizeof names / sizeof *names);

	return value ? value : "";
}

/* The framework was refused what the device had: then it had a limit of its own. */
static uint64_t limit_of(const struct trace_walk *walk)
{
	const struct trace_step *refused = trace_refused(walk->trace);
	uint64_t free_bytes = walk->options.free_bytes;
	if (!refused || refused->kind != CUF_KIND_FRAMEWORK || walk->refused_by_driver ||
	    !is_known(free_bytes) || free_bytes < refused->bytes + (20u << 20))
		return CUF_UNKNOWN;
	return walk->framework_peak_bytes;
}

struct trace_walk *trace_begin(struct run_process *process, const struct trace_options *options,
			       struct sweep_consumer *consumer)
{
	struct trace_walk *walk = xalloc_zeroed(1, sizeof *walk);
	struct trace *trace = xalloc_zeroed(1, sizeof *trace);
	const struct cuf_device *device =
		reader_at(process->reader, CUF_SEC_DEVICES, options->device);
	struct liveset live;

	*walk = (struct trace_walk){ .trace = trace,
				     .process = process,
				     .options = *options,
				     .since = trace_since(process->events, options->steps_max),
				     .last = last_told(process->reader, options),
				     .homes = homes_new() };
	trace->device = options->device;
	trace->refused_seq = trace->capacity_bytes = trace->others_bytes = CUF_UNKNOWN;
	trace->granularity_bytes = CUF_PAGE_BYTES;
	if (device && device->present && is_known(device->granularity_bytes))
		trace->granularity_bytes = device->granularity_bytes;
	walk->mirror = driver_pages_new(UINT64_MAX / 4, trace->granularity_bytes);
	liveset_init(&walk->live, 0);
	if (walk->since) {
		run_live_apart(process, walk->since, &live);
		begin_with(walk, &live);
		liveset_fini(&live);
	}
	*consumer = (struct sweep_consumer){ trace_take_row, walk };
	return walk;
}

struct trace *trace_end(struct trace_walk *walk, const struct trace_options *options,
			struct arena *arena)
{
	const struct run_process *process = walk->process;
	struct trace *trace = walk->trace;

	walk->options = *options;
	trace->total_bytes = options->total_bytes;
	trace->limit_bytes = limit_of(walk);
	settle_steps(walk);
	if (is_known(options->free_bytes))
		trace->capacity_bytes =
			options->free_bytes + driver_look(walk->mirror).used_bytes;
	trace->framework = told(process, "framework", arena);
	trace->version = told(process, "version", arena);
	trace->backend = told(process, "backend", arena);
	trace->settings = recorded_settings(process);
	liveset_fini(&walk->live);
	driver_pages_free(walk->mirror);
	homes_free(walk->homes);
	free(walk->notes);
	free(walk);
	return trace;
}

struct trace *trace_copy(const struct trace *trace)
{
	struct trace *copy = xalloc_zeroed(1, sizeof *copy);
	*copy = *trace;
	copy->room = trace->count;
	copy->steps = xalloc_bytes((trace->count + 1) * sizeof *copy->steps);
	memcpy(copy->steps, trace->steps, trace->count * sizeof *copy->steps);
	return copy;
}

void trace_free(struct trace *trace)
{
	if (!trace)
		return;
	free(trace->steps);
	free(trace);
}
