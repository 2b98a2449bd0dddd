/* SPDX-License-Identifier: Apache-2.0 */
/* Two passes over the events: totals and cycles first, then the floors of the sites that grew. */
#include "analysis/growth/growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"

enum { FLOORS_MAX = 8192 };
#define BYTES_MAX ((int64_t)1 << 57)

void growth_init(struct growth *growth)
{
	*growth = (struct growth){ .cycles = cycles_new() };
	sites_init(&growth->sites);
}

void growth_fini(struct growth *growth)
{
	sites_fini(&growth->sites);
	cycles_free(growth->cycles);
	free(growth->floors);
	free(growth->marks);
	free(growth->window_of_mark);
}

static int64_t bounded(int64_t bytes) { return bytes > BYTES_MAX ? BYTES_MAX : bytes < -BYTES_MAX ? -BYTES_MAX : bytes; }
static int64_t sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

struct row { struct growth_step steps[SITES_ROW]; uint32_t sites[SITES_ROW]; size_t count; };

static bool read_row(struct growth *g, const struct growth_source *source, struct row *row)
{
	struct site_key keys[SITES_ROW];
	row->count = source->read(source->state, row->steps, SITES_ROW);
	for (size_t i = 0; i < row->count; i++) {
		struct growth_step *step = &row->steps[i];
		step->delta_bytes = bounded(step->delta_bytes);
		keys[i] = (struct site_key){ step->stack, step->kind, step->device };
	}
	sites_get_row(&g->sites, keys, row->count, row->sites);
	return row->count;
}

static void count_step(struct site *s, const struct growth_step *step)
{
	s->net_bytes = sum(s->net_bytes, step->delta_bytes);
	if (s->net_bytes > s->highest_bytes)
		s->highest_bytes = s->net_bytes;
	if (step->delta_bytes < 0) {
		s->free_count += step->count;
		s->freed_age_ms += step->age_ms * step->count;
		return;
	}
	if (step->count == 1 && (!s->least_bytes || (uint64_t)step->delta_bytes < s->least_bytes))
		s->least_bytes = (uint64_t)step->delta_bytes;
	if ((uint64_t)step->delta_bytes > s->most_bytes)
		s->most_bytes = (uint64_t)step->delta_bytes;
	s->thread_bits |= (uint64_t)1 << (step->tid * 2654435761u >> 26);
	s->alloc_count += step->count;
	s->alloc_bytes += (uint64_t)step->delta_bytes;
	s->hook = step->hook;
	s->label = step->label;
}

/* Without cycles: marks evenly spaced over the events; their times are found in the second pass. */
static void space_marks(struct growth *g)
{
	g->mark_count = g->events < TREND_MAX ? g->events : TREND_MAX;
	g->marks = xalloc_zeroed(g->mark_count, sizeof *g->marks);
	for (size_t i = 0; i < g->mark_count; i++)
		g->marks[i].position = g->mark_count == 1 ? 0 : i * g->events / (g->mark_count - 1);
}

/* The quiet moments as marks: at most one between two events. False: too few of them. */
static bool place_quiet(struct growth *g, const uint64_t *positions)
{
	struct cycle_mark *marks = xalloc_zeroed(g->quiet_count, sizeof *marks);
	size_t count = 0;
	for (size_t i = 0; i < g->quiet_count; i++)
		if (!count || positions[i] > marks[count - 1].position)
			marks[count++] = (struct cycle_mark){ positions[i], g->quiet[i].time_ns };
	if (g->requests < CYCLES_MIN || count < CYCLES_MIN + 1) {
		free(marks);
		return false;
	}
	g->marks = marks;
	g->mark_count = count;
	g->work_cycles = g->requests;
	g->said = true;
	return true;
}

static void place_cycles(struct growth *g)
{
	const struct cycle_mark *found;
	g->work_cycles = cycles_finish(g->cycles, &found, &g->mark_count);
	if (g->work_cycles) {
		g->marks = xalloc_zeroed(g->mark_count, sizeof *g->marks);
		memcpy(g->marks, found, g->mark_count * sizeof *g->marks);
	} else {
		space_marks(g);
	}
}

static void place_marks(struct growth *g, const uint64_t *quiet_positions)
{
	if (!place_quiet(g, quiet_positions)) /* the program knows its work better than its memory tells it */
		place_cycles(g);
	g->windows = (uint32_t)(g->mark_count < TREND_MAX ? g->mark_count : TREND_MAX);
	g->window_of_mark = xalloc_zeroed(g->mark_count, 1);
	for (size_t mark = g->mark_count; mark--;) {
		g->window_of_mark[mark] = (uint8_t)(mark * g->windows / g->mark_count);
		g->first_mark[g->window_of_mark[mark]] = (uint32_t)mark;
	}
}

struct candidate { int64_t net_bytes; size_t site; };

static int by_net_bytes(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->net_bytes != y->net_bytes)
		return x->net_bytes > y->net_bytes ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

/* Only sites that hold more at the end than at the start can have a rising floor. */
static void choose_candidates(struct growth *g)
{
	struct candidate *all = xalloc_zeroed(g->sites.count, sizeof *all);
	size_t count = 0;
	for (size_t i = 0; i < g->sites.count; i++)
		if (g->sites.items[i].net_bytes > 0)
			all[count++] = (struct candidate){ g->sites.items[i].net_bytes, i };
	if (count)
		qsort(all, count, sizeof *all, by_net_bytes);
	g->floor_count = count < FLOORS_MAX ? count : FLOORS_MAX;
	g->floors = xalloc_zeroed(g->floor_count, sizeof *g->floors);
	for (size_t i = 0; i < g->floor_count; i++) {
		struct site *s = &g->sites.items[all[i].site];
		int64_t live = s->live_bytes < (uint64_t)BYTES_MAX ? (int64_t)s->live_bytes : BYTES_MAX;
		s->floor = (uint32_t)i;
		s->walk_bytes = live > s->net_bytes ? live - s->net_bytes : 0; /* what it held before the first event */
		for (unsigned w = 0; w < TREND_MAX; w++)
			g->floors[i].least[w] = INT64_MAX;
	}
	free(all);
}

/* The site held what it holds at all marks since it was last looked at. */
static void pass_marks(const struct growth *g, struct site *s, uint32_t mark)
{
	int64_t *least = g->floors[s->floor].least;
	if (s->passed >= mark)
		return;
	for (uint32_t w = g->window_of_mark[s->passed]; w <= g->window_of_mark[mark - 1]; w++)
		if (s->walk_bytes < least[w])
			least[w] = s->walk_bytes;
	s->passed = mark;
}

static void follow_step(const struct growth *g, struct site *s, const struct growth_step *step, uint32_t mark)
{
	if (step->delta_bytes > 0) {
		s->late_allocs += mark > g->mark_count / 2;
		if (s->last_cycle != mark) {
			s->last_cycle = mark;
			s->cycles++;
		}
	}
	if (s->floor == SITE_NONE)
		return;
	pass_marks(g, s, mark);
	s->walk_bytes = sum(s->walk_bytes, step->delta_bytes);
}

static double nearly_whole(double value) { return fabs(value - round(value)) < 0.1 ? round(value) : value; }

/* One request may be several ups and downs: no more requests than the busiest site has cycles with an allocation. */
static void count_requests(struct growth *g)
{
	uint64_t most = 0, between = g->mark_count - 1;
	double ups_per_mark = nearly_whole((double)g->work_cycles / (double)between), marks_per_request;
	if (!g->work_cycles)
		return;
	if (g->said) {
		g->cycles_per_mark = ups_per_mark;
		return;
	}
	for (size_t i = 0; i < g->sites.count; i++)
		if (g->sites.items[i].cycles > most)
			most = g->sites.items[i].cycles;
	marks_per_request = most && most < between ? nearly_whole((double)between / (double)most) : 1;
	g->cycles_per_mark = ups_per_mark / marks_per_request;
	g->work_cycles = (uint64_t)llround((double)g->work_cycles / marks_per_request);
}

/* The first pass: totals, cycles, and where the quiet moments lie among the events. */
static void follow_first(struct growth *g, const struct growth_source *source)
{
	uint64_t *positions = xalloc_zeroed(g->quiet_count, sizeof *positions);
	struct row row;
	size_t quiet = 0;
	source->rewind(source->state);
	while (read_row(g, source, &row))
		for (size_t i = 0; i < row.count; i++) {
			const struct growth_step *step = &row.steps[i];
			for (; quiet < g->quiet_count && g->quiet[quiet].time_ns < step->time_ns; quiet++)
				positions[quiet] = g->events;
			count_step(&g->sites.items[row.sites[i]], step);
			cycles_feed(g->cycles, step->delta_bytes, ++g->events, step->time_ns);
		}
	for (; quiet < g->quiet_count; quiet++)
		positions[quiet] = g->events;
	if (g->events)
		place_marks(g, positions);
	free(positions);
}

/* The second one: what each site holds at the marks, and when those were. */
static void follow_again(struct growth *g, const struct growth_source *source)
{
	struct row row;
	uint64_t position = 0;
	uint32_t mark = 0;
	source->rewind(source->state);
	while (read_row(g, source, &row))
		for (size_t i = 0; i < row.count; i++, position++) {
			for (; mark < g->mark_count && g->marks[mark].position <= position; mark++)
				;
			follow_step(g, &g->sites.items[row.sites[i]], &row.steps[i], mark);
			for (uint32_t m = position ? mark : 0; m < g->mark_count && g->marks[m].position <= position + 1; m++)
				g->marks[m].time_ns = row.steps[i].time_ns;
		}
}

void growth_follow(struct growth *growth, const struct growth_source *source)
{
	follow_first(growth, source);
	if (!growth->events)
		return;
	choose_candidates(growth);
	follow_again(growth, source);
	for (size_t i = 0; i < growth->sites.count; i++)
		if (growth->sites.items[i].floor != SITE_NONE)
			pass_marks(growth, &growth->sites.items[i], (uint32_t)growth->mark_count);
	count_requests(growth);
}

void growth_birth(const struct growth *growth, struct site *site, uint64_t bytes, uint64_t birth_ns)
{
	if (!growth->mark_count || birth_ns < growth->marks[growth->mark_count * 3 / 4].time_ns)
		site->old_bytes += bytes;
}
