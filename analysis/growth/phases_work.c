/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the level of live bytes along the events, and its extremes since any position. */
#include "analysis/growth/phases.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/replay/run.h"
#include "analysis/base/xalloc.h"

/* Larger sizes are damage. Two levels can be added below this without overflow. */
#define BYTES_MAX ((int64_t)1 << 57)

/* Whether a later value replaces an earlier one: no later query can return it. */
static bool is_hidden(const struct extremes *extremes, int64_t earlier, int64_t later)
{
	if (extremes->sign > 0)
		return earlier <= later;
	return earlier >= later;
}

void extremes_add(struct extremes *extremes, uint64_t place, int64_t value)
{
	while (extremes->count &&
	       is_hidden(extremes, extremes->items[extremes->count - 1].value, value))
		extremes->count--;
	xalloc_grow(&extremes->items, extremes->count, &extremes->room, sizeof *extremes->items);
	extremes->items[extremes->count++] = (struct extreme){ place, value };
}

/* The first level at or after the position hides all later ones, so it is the answer. */
int64_t extremes_since(const struct extremes *extremes, uint64_t place, int64_t none)
{
	size_t low = 0, high = extremes->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (extremes->items[middle].place < place)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == extremes->count)
		return none;
	return extremes->items[low].value;
}

/* Whether blocks of this kind are part of the layer. */
static bool is_in_layer(enum work_layer layer, const struct cuf_event *event)
{
	if (layer == WORK_FRAMEWORK)
		return event->kind == CUF_KIND_FRAMEWORK;
	return kind_is_device_memory(event->kind) && !(event->flags & CUF_EVENT_HOST_LOCATION);
}

int64_t work_delta(enum work_layer layer, const struct cuf_event *event)
{
	if (!is_in_layer(layer, event))
		return 0;
	if (event->op == CUF_OP_FREE)
		return -signed_up_to(event->bytes, BYTES_MAX);
	if (event->op == CUF_OP_ALLOC || event->op == CUF_OP_RESTORE)
		return signed_up_to(event->bytes, BYTES_MAX);
	return 0;
}

/* The level at the end of the events. */
static int64_t live_of(enum work_layer layer, const struct live_sums *live)
{
	uint64_t sum = 0;

	for (unsigned kind = 0; kind < CUF_KIND_MAX; kind++) {
		bool is_framework = kind == CUF_KIND_FRAMEWORK;

		if (layer == WORK_FRAMEWORK ? !is_framework : !kind_is_device_memory(kind))
			continue;
		for (unsigned device = 0; device <= CUF_DEVICES_MAX; device++)
			sum += live->bytes[device][kind];
		if (!is_framework)
			sum -= live->on_host[kind];
	}
	return signed_up_to(sum, BYTES_MAX);
}

/* Both layers at once: whether a framework reports blocks is known only at the end. */
static bool take_nets(void *state, const struct sweep_row *row)
{
	struct work_nets *nets = state;

	for (size_t i = 0; i < row->count; i++)
		for (unsigned layer = 0; layer < WORK_LAYERS; layer++) {
			int64_t delta = work_delta(layer, &row->events[i]);
			nets->bytes[layer] =
				(int64_t)((uint64_t)nets->bytes[layer] + (uint64_t)delta);
			nets->has_framework |= delta && layer == WORK_FRAMEWORK;
		}
	return true;
}

struct sweep_consumer work_nets_consumer(struct work_nets *nets)
{
	*nets = (struct work_nets){ 0 };
	return (struct sweep_consumer){ take_nets, nets };
}

struct work_base work_base(const struct work_nets *nets, const struct live_sums *live)
{
	struct work_base base = { nets->has_framework ? WORK_FRAMEWORK : WORK_DEVICE, 0 };

	/* what is live now minus what the events changed; not below 0 */
	base.level = (int64_t)((uint64_t)live_of(base.layer, live) -
			       (uint64_t)nets->bytes[base.layer]);
	if (base.level < 0 || base.level >= BYTES_MAX)
		base.level = 0;
	return base;
}

void work_begin(struct work *work, const struct work_base *base)
{
	*work = (struct work){
		.layer = base->layer, .level = base->level, .most.sign = 1, .least.sign = -1
	};
	extremes_add(&work->most, 0, work->level);
	extremes_add(&work->least, 0, work->level);
}

bool work_follow(struct work *work, const struct cuf_event *event, int64_t *delta)
{
	*delta = work_delta(work->layer, event);
	if (!*delta)
		return false;
	work->level = (int64_t)((uint64_t)work->level + (uint64_t)*delta);
	if (work->level < 0) /* the allocation has left the ring */
		work->level = 0;
	work->level = least_of(work->level, BYTES_MAX);
	work->place++;
	extremes_add(&work->most, work->place, work->level);
	extremes_add(&work->least, work->place, work->level);
	return true;
}

void work_end(struct work *work)
{
	free(work->most.items);
	free(work->least.items);
}

/*
 * Completes a stretch that begins after position `before`. Its extremes include start_bytes, the
 * level before its first change, so a stretch without any change has four equal figures.
 */
static void stretch_end(struct fact_stretch *stretch, uint64_t before, const struct work *work)
{
	stretch->end_bytes = (uint64_t)work->level;
	stretch->peak_bytes =
		(uint64_t)extremes_since(&work->most, before + 1, (int64_t)stretch->start_bytes);
	stretch->floor_bytes =
		(uint64_t)extremes_since(&work->least, before + 1, (int64_t)stretch->start_bytes);
	if (stretch->peak_bytes < stretch->start_bytes)
		stretch->peak_bytes = stretch->start_bytes;
	if (stretch->floor_bytes > stretch->start_bytes)
		stretch->floor_bytes = stretch->start_bytes;
}

/* ---- spans ---- */

/* Open spans that are searched for the one that ends. A hostile file opens millions. */
enum { OPEN_LOOK = 4096 };

/* A span without an end so far: its index, and the position of its work where it begins. */
struct open_span {
	size_t span;
	uint64_t place;
};

/* Consumes the events. Spans of several threads and requests overlap, so open ones are a list
 * that is searched from its end. The span that began last usually ends first. */
struct spans_reading {
	struct phase_spans *spans;
	struct work work;
	struct open_span *open;
	size_t open_count, open_room;
	uint64_t requests_open;
};

/* Adds a span. Only pushed ranges nest, each thread for itself. A mark ends where it begins. */
static void begin_span(struct spans_reading *reading, const struct cuf_event *event,
		       unsigned op)
{
	struct phase_spans *spans = reading->spans;
	struct phase_span span = { .begin_ns = event->time_ns,
				   .end_ns = CUF_UNKNOWN,
				   .begin_seq = event->seq,
				   .end_seq = CUF_UNKNOWN,
				   .id = event->aux,
				   .tid = event->tid,
				   .op = (uint8_t)op,
				   .source = (uint8_t)cuf_phase_source(event->extra),
				   .work = { (uint64_t)reading->work.level, 0, 0, 0 } };
	if (event->addr < UINT32_MAX)
		span.name = (uint32_t)event->addr;
	if (op == CUF_PHASE_START) /* any thread may end it */
		span.tid = 0;
	for (size_t i = reading->open_count, looked = 0;
	     i-- && looked < OPEN_LOOK && op == CUF_PHASE_PUSH; looked++) {
		const struct phase_span *outer = &spans->items[reading->open[i].span];
		if (outer->op == CUF_PHASE_PUSH && outer->tid == span.tid) {
			span.depth = outer->depth + 1;
			break;
		}
	}
	if (op == CUF_PHASE_MARK) {
		span.end_ns = span.begin_ns;
		span.end_seq = span.begin_seq;
		stretch_end(&span.work, reading->work.place, &reading->work);
	}
	xalloc_grow(&spans->items, spans->count, &spans->room, sizeof *spans->items);
	spans->items[spans->count] = span;
	if (op != CUF_PHASE_MARK) {
		xalloc_grow(&reading->open, reading->open_count, &reading->open_room,
			    sizeof *reading->open);
		reading->open[reading->open_count++] =
			(struct open_span){ spans->count, reading->work.place };
	}
	if (op == CUF_PHASE_REQUEST_BEGIN && ++reading->requests_open > spans->concurrency_max)
		spans->concurrency_max = reading->requests_open;
	spans->count++;
}

/* A pop ends the range of its thread and name. All others have an id. */
static bool ends(const struct phase_span *span, const struct cuf_event *event, unsigned began_by)
{
	if (span->op != began_by || span->source != cuf_phase_source(event->extra))
		return false;
	if (began_by == CUF_PHASE_PUSH)
		return span->tid == event->tid && span->name == event->addr;
	return span->id == event->aux;
}

/* An end without a begin is dropped: the begin has left the ring. */
static void end_span(struct spans_reading *reading, const struct cuf_event *event,
		     unsigned began_by)
{
	for (size_t i = reading->open_count, looked = 0; i-- && looked < OPEN_LOOK; looked++) {
		struct phase_span *span = &reading->spans->items[reading->open[i].span];
		if (!ends(span, event, began_by))
			continue;
		span->end_ns = event->time_ns;
		span->end_seq = event->seq;
		stretch_end(&span->work, reading->open[i].place, &reading->work);
		for (size_t k = i + 1; k < reading->open_count; k++)
			reading->open[k - 1] = reading->open[k];
		reading->open_count--;
		if (began_by == CUF_PHASE_REQUEST_BEGIN)
			reading->requests_open--;
		return;
	}
}

/* Ignores operations and sources that this version does not have. */
static void read_phase(struct spans_reading *reading, const struct cuf_event *event)
{
	static const uint8_t begun_by[] = { [CUF_PHASE_POP] = CUF_PHASE_PUSH,
					    [CUF_PHASE_END] = CUF_PHASE_START,
					    [CUF_PHASE_REQUEST_END] = CUF_PHASE_REQUEST_BEGIN };
	unsigned op = cuf_phase_op(event->extra);
	if (op > CUF_PHASE_REQUEST_END || cuf_phase_source(event->extra) > CUF_PHASE_NVTX)
		return;
	if (begun_by[op])
		end_span(reading, event, begun_by[op]);
	else
		begin_span(reading, event, op);
}

static bool take_spans(void *state, const struct sweep_row *row)
{
	struct spans_reading *reading = state;
	int64_t delta;

	for (size_t i = 0; i < row->count; i++)
		if (row->events[i].op == CUF_OP_PHASE)
			read_phase(reading, &row->events[i]);
		else
			work_follow(&reading->work, &row->events[i], &delta);
	return true;
}

struct spans_reading *spans_begin(struct phase_spans *spans, const struct events *events,
				  const struct work_base *base, struct sweep_consumer *consumer)
{
	struct spans_reading *reading = xalloc_zeroed(1, sizeof *reading);

	*spans = (struct phase_spans){ 0 };
	*consumer = (struct sweep_consumer){ NULL, reading };
	reading->spans = spans;
	work_begin(&reading->work, base);
	if (events->phase_count || events->framework->phase_count)
		consumer->take = take_spans;
	return reading;
}

void spans_end(struct spans_reading *reading)
{
	/* spans without an end have the bytes up to the last event */
	for (size_t i = 0; i < reading->open_count; i++)
		stretch_end(&reading->spans->items[reading->open[i].span].work,
			    reading->open[i].place, &reading->work);
	free(reading->open);
	work_end(&reading->work);
	free(reading);
}

void spans_read(struct phase_spans *spans, const struct events *events,
		const struct work_base *base)
{
	struct sweep_consumer consumer;
	struct spans_reading *reading = spans_begin(spans, events, base, &consumer);

	sweep_events(events, &consumer, 1);
	spans_end(reading);
}

/* ---- the outline ---- */

/* About; in a small recording a block is an event. */
enum { OUTLINE_BLOCKS = 1 << 16 };

struct outline_block {
	uint64_t first_seq;
	int64_t before, most, least; /* levels */
};

struct outline {
	enum work_layer layer;
	int64_t level;
	struct outline_block *blocks;
	size_t count, room;
	size_t each, taken; /* events of a block, and of the last one so far */
};

static int64_t level_after(const struct outline *outline, int64_t level,
			   const struct cuf_event *event)
{
	uint64_t sum = (uint64_t)level + (uint64_t)work_delta(outline->layer, event);

	if ((int64_t)sum < 0) /* the allocation has left the ring */
		return 0;
	return least_of((int64_t)sum, BYTES_MAX);
}

static bool take_outline(void *state, const struct sweep_row *row)
{
	struct outline *outline = state;

	for (size_t i = 0; i < row->count; i++) {
		struct outline_block *block;

		if (!outline->count || outline->taken == outline->each) {
			xalloc_grow(&outline->blocks, outline->count, &outline->room,
				    sizeof *outline->blocks);
			outline->blocks[outline->count++] = (struct outline_block){
				row->events[i].seq, outline->level, 0, INT64_MAX
			};
			outline->taken = 0;
		}
		outline->taken++;
		block = &outline->blocks[outline->count - 1];
		outline->level = level_after(outline, outline->level, &row->events[i]);
		block->most = most_of(outline->level, block->most);
		block->least = least_of(outline->level, block->least);
	}
	return true;
}

struct outline *outline_begin(const struct work_base *base, const struct events *events,
			      struct sweep_consumer *consumer)
{
	struct outline *outline = xalloc_zeroed(1, sizeof *outline);
	size_t count = events->count + events->framework->count;

	outline->layer = base->layer;
	outline->level = base->level;
	outline->each = most_of(count / OUTLINE_BLOCKS, 1);
	*consumer = (struct sweep_consumer){ take_outline, outline };
	return outline;
}

/* The last block that begins at or before it, or the first. */
static size_t block_at(const struct outline *outline, uint64_t seq)
{
	size_t low = 0, high = outline->count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (outline->blocks[middle].first_seq <= seq)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* A stretch while its blocks are read. */
struct outline_look {
	uint64_t begin_seq, end_seq;
	bool has_begun, has_ended;
	int64_t level, start, most, least;
};

static void read_block(const struct outline *outline, size_t at, const struct events *events,
		       struct outline_look *look)
{
	const struct outline_block *block = &outline->blocks[at];
	struct event_merge merge;
	struct cuf_event event;

	look->level = block->before;
	event_merge_begin(&merge, events, block->first_seq - 1);
	for (size_t i = 0; i < outline->each && event_merge_next(&merge, &event); i++) {
		look->has_ended = look->has_begun && event.seq > look->end_seq;
		if (look->has_ended)
			return;
		if (!look->has_begun && event.seq >= look->begin_seq) {
			look->has_begun = true;
			look->start = look->most = look->least = look->level;
		}
		look->level = level_after(outline, look->level, &event);
		if (!look->has_begun)
			continue;
		look->most = most_of(look->level, look->most);
		look->least = least_of(look->level, look->least);
	}
}

struct fact_stretch outline_stretch(const struct outline *outline, const struct events *events,
				    uint64_t begin_seq, uint64_t end_seq)
{
	struct outline_look look = { .begin_seq = begin_seq, .end_seq = end_seq };

	for (size_t at = block_at(outline, begin_seq); at < outline->count && !look.has_ended;
	     at++) {
		read_block(outline, at, events, &look);
		/* those that lie in it as a whole */
		while (look.has_begun && !look.has_ended && at + 2 < outline->count &&
		       outline->blocks[at + 2].first_seq <= end_seq) {
			at++;
			look.most = most_of(outline->blocks[at].most, look.most);
			look.least = least_of(outline->blocks[at].least, look.least);
		}
	}
	if (!look.has_begun)
		return (struct fact_stretch){ 0 };
	return (struct fact_stretch){ .start_bytes = (uint64_t)look.start,
				      .floor_bytes = (uint64_t)look.least,
				      .peak_bytes = (uint64_t)look.most,
				      .end_bytes = (uint64_t)look.level };
}

void outline_end(struct outline *outline)
{
	free(outline->blocks);
	free(outline);
}
