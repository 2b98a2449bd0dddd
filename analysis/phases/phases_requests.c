/* SPDX-License-Identifier: Apache-2.0 */
/* What one unit of work needs and what remains after it. Units are marked requests or, without any,
 * cycles of memory. */
#include "analysis/phases/phases.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/trend.h"
#include "analysis/base/xalloc.h"

/* op: CUF_PHASE_REQUEST_BEGIN or CUF_PHASE_REQUEST_END. */
static bool is_request_event(const struct cuf_event *event, unsigned op)
{
	return event->op == CUF_OP_PHASE && cuf_phase_op(event->extra) == op;
}

/* Counts open requests. An end without a begin is of a request that began before the first
 * event. */
uint64_t phases_quiet_marks(const struct events *events, struct cycle_mark **marks, size_t *count)
{
	struct event_merge merge;
	struct cuf_event event;
	uint64_t open = 0, ended = 0;
	size_t room = 0;
	*marks = NULL;
	*count = 0;
	if (!events->phase_count && !events->framework->phase_count)
		return 0;
	event_merge_begin(&merge, events, 0);
	while (event_merge_next(&merge, &event)) {
		if (is_request_event(&event, CUF_PHASE_REQUEST_BEGIN)) {
			if (!open && !*count) { /* before the first request, too */
				xalloc_grow(marks, *count, &room, sizeof **marks);
				(*marks)[(*count)++] =
					(struct cycle_mark){ event.seq, event.time_ns };
			}
			open++;
		} else if (is_request_event(&event, CUF_PHASE_REQUEST_END) && open) {
			ended++;
			if (--open)
				continue;
			xalloc_grow(marks, *count, &room, sizeof **marks);
			(*marks)[(*count)++] = (struct cycle_mark){ event.seq, event.time_ns };
		}
	}
	return ended;
}

/* Sorts values. Halves are added instead of halving the sum, which could overflow. */
static uint64_t median(uint64_t *values, size_t count)
{
	if (!count)
		return CUF_UNKNOWN;
	qsort(values, count, sizeof *values, compare_uint64);
	if (count % 2)
		return values[count / 2];
	return values[count / 2 - 1] / 2 + values[count / 2] / 2;
}

/* One unit of work: its peak over its start, and what was live when it ended. */
struct unit {
	uint64_t rise_bytes;
	uint64_t begin_ns;
	uint64_t id;         /* of a marked request; CUF_UNKNOWN */
	int64_t after_bytes;
};

struct units {
	struct unit *items;
	size_t count, room;
};

/* The minimum after each of up to 64 windows of units, as a series over their number. */
static void judge_floor(struct fact_requests *out, const struct units *units)
{
	double x[TREND_MAX], y[TREND_MAX];
	size_t windows = least_of(units->count, TREND_MAX), have = 0;
	for (size_t i = 0; i < units->count; i++) {
		/* x is the unit that has the minimum, not the middle of the window */
		size_t w = i * windows / units->count;
		double after = (double)units->items[i].after_bytes;
		if (w == have) {
			x[have] = (double)i;
			y[have++] = after;
		} else if (after < y[w]) {
			x[w] = (double)i;
			y[w] = after;
		}
	}
	if (units->count < CYCLES_MIN)
		return;
	struct trend_slope slope = trend_slope(x, y, have);
	out->floor_slope_bytes = slope.slope;
	out->floor_low_bytes = slope.low;
	out->floor_high_bytes = slope.high;
}

/* The figures that marked requests and cycles have in common. */
static void judge_units(struct fact_requests *out, const struct requests_source *source,
			const struct units *units)
{
	uint64_t *rises = xalloc_zeroed(units->count, sizeof *rises);
	const struct unit *largest = NULL;
	for (size_t i = 0; i < units->count; i++) {
		rises[i] = units->items[i].rise_bytes;
		if (!largest || units->items[i].rise_bytes > largest->rise_bytes)
			largest = &units->items[i];
	}
	out->count = units->count;
	out->median_peak_bytes = median(rises, units->count);
	if (largest) {
		out->largest_peak_bytes = largest->rise_bytes;
		out->largest_id = largest->id;
		out->largest_ns = largest->begin_ns - source->start_ns + source->start_realtime_ns;
	}
	if (units->count > 1 && units->items[units->count - 1].begin_ns > units->items[0].begin_ns)
		out->per_s = (double)(units->count - 1) * 1e9 /
			     (double)(units->items[units->count - 1].begin_ns -
				      units->items[0].begin_ns);
	judge_floor(out, units);
	free(rises);
}

static void add_unit(struct units *units, struct unit unit)
{
	xalloc_grow(&units->items, units->count, &units->room, sizeof *units->items);
	units->items[units->count++] = unit;
}

/* Requests that the program marked. When several are open at once, the rise of one contains what
 * the others allocate, so the figures are estimates. */
static void judge_marked(struct fact_requests *out, const struct requests_source *source,
			 struct arena *arena)
{
	struct units units = { 0 };
	uint64_t overlapping = source->spans->concurrency_max > 1;
	for (size_t i = 0; i < source->spans->count; i++) {
		const struct phase_span *span = &source->spans->items[i];
		if (span->op != CUF_PHASE_REQUEST_BEGIN)
			continue;
		if (span->end_seq == CUF_UNKNOWN)
			out->open++;
		else
			add_unit(&units,
				 (struct unit){ span->work.peak_bytes - span->work.start_bytes,
						span->begin_ns, span->id,
						(int64_t)span->work.end_bytes });
	}
	out->concurrency_max = source->spans->concurrency_max;
	out->basis = BASIS_OBSERVED;
	out->why = "marked by the program";
	if (overlapping) {
		out->basis = BASIS_ESTIMATED;
		out->why = arena_format(arena,
					"marked by the program; up to %" PRIu64
					" were open at once, "
					"so live bytes are those of all of them",
					out->concurrency_max);
	}
	judge_units(out, source, &units);
	free(units.items);
}

/* Second pass: one unit between two low points. What comes before the first one is the start of the
 * program. */
static void measure_cycles(struct units *units, const struct requests_source *source,
			   const struct cycle_mark *marks, size_t count)
{
	struct event_merge merge;
	struct cuf_event event;
	struct work work;
	int64_t delta, base = 0, peak = 0;
	size_t mark = 0;
	work_begin(&work, source->base);
	event_merge_begin(&merge, source->events, 0);
	while (mark < count && event_merge_next(&merge, &event)) {
		bool changed = work_follow(&work, &event, &delta);
		if (changed && work.level > peak)
			peak = work.level;
		if (event.seq < marks[mark].position)
			continue;
		/* a low point: the unit that began at the previous one ends here */
		if (mark > 1)
			add_unit(units,
				 (struct unit){ (uint64_t)(subtract_to_zero(peak, base)),
						marks[mark - 1].time_ns, CUF_UNKNOWN, work.level });
		base = peak = work.level;
		while (mark < count && marks[mark].position <= event.seq)
			mark++;
	}
	work_end(&work);
}

/* Without marks: the first pass finds the cycles, the second one measures them. */
static void judge_cycles(struct fact_requests *out, const struct requests_source *source,
			 struct arena *arena)
{
	struct cycles *cycles = cycles_new();
	struct event_merge merge;
	struct cuf_event event;
	struct work work;
	struct units units = { 0 };
	const struct cycle_mark *marks;
	size_t count;
	uint64_t found;
	int64_t delta;
	work_begin(&work, source->base);
	event_merge_begin(&merge, source->events, 0);
	while (event_merge_next(&merge, &event) && event.op != CUF_OP_EXIT)
		if (work_follow(&work, &event, &delta))
			cycles_feed(cycles, delta, event.seq, event.time_ns);
	found = cycles_finish(cycles, &marks, &count);
	if (found) {
		measure_cycles(&units, source, marks, count);
		judge_units(out, source, &units);
		out->count = found;
		out->basis = BASIS_INFERRED;
		out->why = "not marked by the program; estimated from repeating rises and "
			   "falls of allocated memory";
	}
	free(units.items);
	work_end(&work);
	cycles_free(cycles);
}

void requests_judge(struct fact_requests *out, const struct requests_source *source,
		    struct arena *arena)
{
	bool marked = false;
	*out = (struct fact_requests){ .name = "",
				       .why = "",
				       .concurrency_max = CUF_UNKNOWN,
				       .median_peak_bytes = CUF_UNKNOWN,
				       .largest_peak_bytes = CUF_UNKNOWN,
				       .largest_id = CUF_UNKNOWN,
				       .largest_ns = CUF_UNKNOWN,
				       .floor_slope_bytes = NAN,
				       .floor_low_bytes = NAN,
				       .floor_high_bytes = NAN,
				       .per_s = NAN };
	for (size_t i = 0; i < source->spans->count && !marked; i++)
		marked = source->spans->items[i].op == CUF_PHASE_REQUEST_BEGIN;
	if (marked)
		judge_marked(out, source, arena);
	else
		judge_cycles(out, source, arena);
}
