/* SPDX-License-Identifier: Apache-2.0 */
/* What one unit of work needs and what remains after it. Units are marked requests or, without any,
 * cycles of memory. */
#include "analysis/growth/phases.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/trend.h"
#include "analysis/base/xalloc.h"

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

struct units_reading {
	struct quiet_marks *quiet;
	uint64_t open;            /* requests */
	bool is_marked;
	bool ended;               /* exit handlers are no work */
	/* without marks: the cycles of each layer, and of the one that counts what they need */
	struct cycles *cycles[WORK_LAYERS];
	const struct cycle_mark *marks;
	size_t mark, mark_count;
	uint64_t cycle_count;
	struct work work;
	int64_t base, peak;
	struct units units;
};

static void add_quiet(struct quiet_marks *quiet, const struct cuf_event *event)
{
	xalloc_grow(&quiet->items, quiet->count, &quiet->room, sizeof *quiet->items);
	quiet->items[quiet->count++] = (struct cycle_mark){ event->seq, event->time_ns };
}

/* Counts open requests. An end without a begin is of a request that began before the first
 * event. */
static void take_request(struct units_reading *reading, const struct cuf_event *event)
{
	unsigned op = cuf_phase_op(event->extra);

	if (cuf_phase_source(event->extra) > CUF_PHASE_NVTX)
		return;
	if (op == CUF_PHASE_REQUEST_BEGIN) {
		reading->is_marked = true;
		if (!reading->open++ && !reading->quiet->count) /* before the first one, too */
			add_quiet(reading->quiet, event);
	} else if (op == CUF_PHASE_REQUEST_END && reading->open) {
		reading->quiet->requests++;
		if (!--reading->open)
			add_quiet(reading->quiet, event);
	}
}

static bool take_first(void *state, const struct sweep_row *row)
{
	struct units_reading *reading = state;

	for (size_t i = 0; i < row->count; i++) {
		const struct cuf_event *event = &row->events[i];

		if (event->op == CUF_OP_PHASE)
			take_request(reading, event);
		reading->ended |= event->op == CUF_OP_EXIT;
		for (unsigned layer = 0; layer < WORK_LAYERS; layer++) {
			int64_t delta = work_delta(layer, event);

			if (delta && !reading->ended && !reading->is_marked)
				cycles_feed(reading->cycles[layer], delta, event->seq,
					    event->time_ns);
		}
	}
	return true;
}

struct units_reading *units_begin(struct quiet_marks *quiet, struct sweep_consumer *consumer)
{
	struct units_reading *reading = xalloc_zeroed(1, sizeof *reading);

	reading->quiet = quiet;
	for (unsigned layer = 0; layer < WORK_LAYERS; layer++)
		reading->cycles[layer] = cycles_new();
	*consumer = (struct sweep_consumer){ take_first, reading };
	return reading;
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

/* One unit between two low points. What comes before the first one is the start of the program. */
static bool take_again(void *state, const struct sweep_row *row)
{
	struct units_reading *reading = state;
	int64_t delta;

	for (size_t i = 0; i < row->count; i++) {
		const struct cuf_event *event = &row->events[i];
		bool changed = work_follow(&reading->work, event, &delta);
		int64_t level = reading->work.level;

		if (changed && level > reading->peak)
			reading->peak = level;
		if (event->seq < reading->marks[reading->mark].position)
			continue;
		/* a low point: the unit that began at the previous one ends here */
		if (reading->mark > 1)
			add_unit(&reading->units,
				 (struct unit){ (uint64_t)subtract_to_zero(reading->peak,
									   reading->base),
						reading->marks[reading->mark - 1].time_ns,
						CUF_UNKNOWN, level });
		reading->base = reading->peak = level;
		while (reading->mark < reading->mark_count &&
		       reading->marks[reading->mark].position <= event->seq)
			reading->mark++;
		if (reading->mark == reading->mark_count)
			return false;
	}
	return true;
}

void units_measure(struct units_reading *reading, const struct work_base *base,
		   struct sweep_consumer *consumer)
{
	*consumer = (struct sweep_consumer){ NULL, reading };
	work_begin(&reading->work, base);
	if (reading->is_marked)
		return;
	reading->cycle_count = cycles_finish(reading->cycles[base->layer], &reading->marks,
					     &reading->mark_count);
	if (reading->cycle_count && reading->mark_count)
		consumer->take = take_again;
}

void units_end(struct units_reading *reading)
{
	for (unsigned layer = 0; layer < WORK_LAYERS; layer++)
		cycles_free(reading->cycles[layer]);
	work_end(&reading->work);
	free(reading->units.items);
	free(reading);
}

static void judge_cycles(struct fact_requests *out, const struct requests_source *source)
{
	if (!source->units->cycle_count)
		return;
	judge_units(out, source, &source->units->units);
	out->count = source->units->cycle_count;
	out->basis = BASIS_INFERRED;
	out->why = "not marked by the program; estimated from repeating rises and "
		   "falls of allocated memory";
}

void requests_judge(struct fact_requests *out, const struct requests_source *source,
		    struct arena *arena)
{
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
	if (source->units->is_marked)
		judge_marked(out, source, arena);
	else
		judge_cycles(out, source);
}
