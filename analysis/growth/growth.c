/* SPDX-License-Identifier: Apache-2.0 */
/* Two passes over the events: the first finds totals and cycles, the second the minima of the sites
 * that grew. */
#include "analysis/growth/growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

enum { FLOORS_MAX = 8192, LARGE_BYTES = 1 << 20 };
/* A call site that held so much, and then an eighth of it or less, has ended a round of work. */
#define ROUND_LEAST_BYTES ((int64_t)1 << 20)
enum { ROUND_REST = 8 };
/* Larger steps and levels are damage. */
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
	free(growth->survivals);
	free(growth->pools);
	free(growth->pool_of_floor);
	free(growth->marks);
	free(growth->positions);
	free(growth->window_of_mark);
}

/* A hostile file has any size. Steps are bounded so that a few can be added without overflow. */
static int64_t bounded(int64_t bytes)
{
	if (bytes > BYTES_MAX)
		return BYTES_MAX;
	if (bytes < -BYTES_MAX)
		return -BYTES_MAX;
	return bytes;
}

/* Wraps on overflow, which only a hostile file causes: signed overflow would be undefined. */
static int64_t sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

/* The sites of a row of steps. They are looked up together, which hides the cache misses. */
static void find_sites(struct growth *growth, struct growth_step *steps, size_t count,
		       uint32_t *sites)
{
	struct site_key keys[SITES_ROW];
	for (size_t i = 0; i < count; i++) {
		steps[i].delta_bytes = bounded(steps[i].delta_bytes);
		keys[i] = (struct site_key){ steps[i].stack, steps[i].kind, steps[i].device };
	}
	sites_get_row(&growth->sites, keys, count, sites);
}

/* Adds one event to the totals of its site. */
static void count_step(struct site *site, const struct growth_step *step)
{
	site->net_bytes = sum(site->net_bytes, step->delta_bytes);
	if (site->net_bytes > site->highest_bytes)
		site->highest_bytes = site->net_bytes;
	if (step->delta_bytes < 0) {
		site->free_count += step->count;
		site->freed_age_ms += step->age_ms * step->count;
		return;
	}
	if (step->count == 1 &&
	    (!site->least_bytes || (uint64_t)step->delta_bytes < site->least_bytes))
		site->least_bytes = (uint64_t)step->delta_bytes;
	if (step->count == 1 && step->delta_bytes >= LARGE_BYTES) {
		site->large_blocks++;
		site->doublings += (double)step->delta_bytes >= 1.5 * (double)site->most_bytes;
	}
	if ((uint64_t)step->delta_bytes > site->most_bytes)
		site->most_bytes = (uint64_t)step->delta_bytes;
	site->thread_bits |= (uint64_t)1 << (step->tid * 2654435761u >> 26);
	site->alloc_count += step->count;
	site->alloc_bytes += (uint64_t)step->delta_bytes;
	site->hook = step->hook;
	site->label = step->label;
}

/* Without cycles the marks are spaced evenly; the second pass finds their times. */
static void space_marks(struct growth *growth)
{
	uint64_t gaps;
	growth->mark_count = least_of(growth->events, TREND_MAX);
	growth->marks = xalloc_zeroed(growth->mark_count, sizeof *growth->marks);
	gaps = most_of(growth->mark_count - 1, 1);
	for (size_t i = 0; i < growth->mark_count; i++)
		growth->marks[i].position = i * growth->events / gaps;
}

/* Makes marks of the moments without an open request, at most one between two events. False: too
 * few. */
static bool place_quiet(struct growth *growth)
{
	const struct quiet_marks *quiet = growth->quiet;
	struct cycle_mark *marks;
	size_t count = 0;
	if (!quiet || quiet->requests < CYCLES_MIN)
		return false;
	marks = xalloc_zeroed(quiet->count, sizeof *marks);
	for (size_t i = 0; i < quiet->count; i++)
		if (!count || growth->positions[i] > marks[count - 1].position)
			marks[count++] = (struct cycle_mark){ growth->positions[i],
							      quiet->items[i].time_ns };
	if (count < CYCLES_MIN + 1) {
		free(marks);
		return false;
	}
	growth->marks = marks;
	growth->mark_count = count;
	growth->work_cycles = quiet->requests;
	growth->is_marked = !growth->is_lent;
	return true;
}

/* False: the memory of this layer did not rise and fall. */
static bool place_cycles(struct growth *growth)
{
	const struct cycle_mark *found;
	growth->work_cycles = cycles_finish(growth->cycles, &found, &growth->mark_count);
	if (!growth->work_cycles)
		return false;
	growth->marks = xalloc_zeroed(growth->mark_count, sizeof *growth->marks);
	memcpy(growth->marks, found, growth->mark_count * sizeof *growth->marks);
	return true;
}

/* Chooses the marks and divides them among at most TREND_MAX windows, in which minima are kept. */
static void place_marks(struct growth *growth)
{
	/* marked requests are better than cycles inferred from memory, and those than the cycles
	 * of other memory */
	bool has_own = (!growth->is_lent && place_quiet(growth)) || place_cycles(growth);
	growth->is_lent = growth->is_lent && !has_own && place_quiet(growth);
	if (!has_own && !growth->is_lent)
		space_marks(growth);
	growth->windows = (uint32_t)(least_of(growth->mark_count, TREND_MAX));
	growth->window_of_mark = xalloc_zeroed(growth->mark_count, 1);
	for (size_t mark = growth->mark_count; mark--;) {
		growth->window_of_mark[mark] =
			(uint8_t)(mark * growth->windows / growth->mark_count);
		growth->first_mark[growth->window_of_mark[mark]] = (uint32_t)mark;
	}
}

struct suspect { int64_t net_bytes; size_t site; };

static int by_net_bytes(const void *a, const void *b)
{
	const struct suspect *left = a, *right = b;
	if (left->net_bytes != right->net_bytes)
		return compare_numbers(right->net_bytes, left->net_bytes);
	return compare_numbers(left->site, right->site);
}

/* Only sites that hold more at the end than at the start can have a rising minimum. */
static void choose_candidates(struct growth *growth)
{
	struct suspect *all = xalloc_zeroed(growth->sites.count, sizeof *all);
	size_t count = 0;
	for (size_t i = 0; i < growth->sites.count; i++)
		if (growth->sites.items[i].net_bytes > 0)
			all[count++] = (struct suspect){ growth->sites.items[i].net_bytes, i };
	if (count)
		qsort(all, count, sizeof *all, by_net_bytes);
	/* minima take 512 bytes a site, so only those that grew most have them */
	growth->floor_count = least_of(count, FLOORS_MAX);
	growth->floors = xalloc_zeroed(growth->floor_count, sizeof *growth->floors);
	if (growth->by_age)
		growth->survivals = xalloc_zeroed(growth->floor_count, sizeof *growth->survivals);
	for (size_t i = 0; i < growth->floor_count; i++) {
		struct site *site = &growth->sites.items[all[i].site];
		int64_t live = signed_up_to(site->live_bytes, BYTES_MAX);
		site->floor = (uint32_t)i;
		/* held before the first event */
		site->walk_bytes = subtract_to_zero(live, site->net_bytes);
		for (unsigned w = 0; w < TREND_MAX; w++)
			growth->floors[i].least[w] = INT64_MAX;
	}
	free(all);
}

/* Applies what the site holds to all marks since its last event. */
static void pass_marks(const struct growth *growth, struct site *site, uint32_t mark)
{
	int64_t *least = growth->floors[site->floor].least;
	if (site->passed >= mark)
		return;
	for (uint32_t w = growth->window_of_mark[site->passed];
	     w <= growth->window_of_mark[mark - 1]; w++)
		if (site->walk_bytes < least[w])
			least[w] = site->walk_bytes;
	site->passed = mark;
}

/* Steps come in the order of time, so that most need no division. */
static unsigned part_of_step(struct growth *growth, uint64_t time_ns)
{
	if (growth->by_age && time_ns >= growth->part_end_ns)
		growth->part = survival_part(&growth->time, time_ns, &growth->part_end_ns);
	return growth->part;
}

/* What a site holds only while it works goes when that work is done: rounds. */
static void follow_round(struct site *site)
{
	if (site->walk_bytes > site->round_bytes)
		site->round_bytes = site->walk_bytes;
	if (site->round_bytes < ROUND_LEAST_BYTES ||
	    site->walk_bytes > site->round_bytes / ROUND_REST)
		return;
	site->rounds++;
	if (site->round_bytes > site->before_bytes)
		site->before_bytes = site->round_bytes;
	site->round_bytes = site->walk_bytes;
}

/* Second pass, one event. mark: the number of marks before it. */
static void follow_step(struct growth *growth, struct site *site, const struct growth_step *step,
			uint32_t mark)
{
	unsigned part = part_of_step(growth, step->time_ns);
	if (step->delta_bytes > 0) {
		site->late_allocs += mark > growth->mark_count / 2;
		if (site->last_cycle != mark) {
			site->last_cycle = mark;
			site->cycles++;
		}
	}
	if (growth->by_age)
		growth->all.parts[part].net_bytes += (double)step->delta_bytes;
	if (growth->by_age && step->delta_bytes < 0 && !step->is_resize)
		growth->all.parts[part].freed_bytes -= (double)step->delta_bytes;
	if (site->floor == SITE_NONE)
		return;
	if (growth->by_age)
		growth->survivals[site->floor].parts[part].net_bytes += (double)step->delta_bytes;
	pass_marks(growth, site, mark);
	site->walk_bytes = sum(site->walk_bytes, step->delta_bytes);
	follow_round(site);
}

/* Cycles are found with a few missing, so counts near a whole number are that number. */
static double nearly_whole(double value)
{
	if (fabs(value - round(value)) < 0.1)
		return round(value);
	return value;
}

/* One request may be several rises and falls. There are no more requests than the busiest site has
 * cycles in which it allocates. */
static void count_requests(struct growth *growth)
{
	uint64_t most = 0, between = growth->mark_count - 1;
	double ups_per_mark = nearly_whole((double)growth->work_cycles / (double)between);
	double marks_per_request = 1;
	if (!growth->work_cycles)
		return;
	if (growth->is_marked || growth->is_lent) {
		growth->cycles_per_mark = ups_per_mark;
		return;
	}
	for (size_t i = 0; i < growth->sites.count; i++)
		if (growth->sites.items[i].cycles > most)
			most = growth->sites.items[i].cycles;
	if (most && most < between)
		marks_per_request = nearly_whole((double)between / (double)most);
	growth->cycles_per_mark = ups_per_mark / marks_per_request;
	growth->work_cycles = (uint64_t)llround((double)growth->work_cycles / marks_per_request);
}

/* Follows the sum of all call sites. */
static void follow_total(struct growth *growth, const struct growth_step *step)
{
	growth->total_bytes = sum(growth->total_bytes, step->delta_bytes);
	if (growth->total_bytes <= growth->highest_bytes)
		return;
	growth->highest_bytes = growth->total_bytes;
	growth->highest_ns = step->time_ns;
}

/* How many steps came before each quiet moment. */
static void place_moments(struct growth *growth, const struct growth_step *step)
{
	const struct quiet_marks *quiet = growth->quiet;

	while (quiet && growth->placed < quiet->count &&
	       quiet->items[growth->placed].time_ns < step->time_ns) {
		xalloc_grow(&growth->positions, growth->placed, &growth->position_room,
			    sizeof *growth->positions);
		growth->positions[growth->placed++] = growth->events;
	}
}

void growth_first(struct growth *growth, struct growth_step *steps, size_t count)
{
	uint32_t sites[SITES_ROW];

	find_sites(growth, steps, count, sites);
	for (size_t i = 0; i < count; i++) {
		const struct growth_step *step = &steps[i];
		if (!growth->events)
			growth->time.events_ns = step->time_ns;
		place_moments(growth, step);
		count_step(&growth->sites.items[sites[i]], step);
		growth->events++;
		follow_total(growth, step);
		if (!step->is_resize)
			cycles_feed(growth->cycles, step->delta_bytes, growth->events,
				    step->time_ns);
	}
}

/* What was live at the first event that was kept was made by events before it. */
static void explain_lost(struct growth *growth)
{
	for (size_t i = 0; i < growth->sites.count; i++) {
		const struct site *site = &growth->sites.items[i];
		growth->lost_events = subtract_to_zero(
			growth->lost_events, subtract_to_zero(site->live_count + site->free_count,
							      site->alloc_count));
	}
}

void growth_turn(struct growth *growth)
{
	if (!growth->events)
		return;
	explain_lost(growth);
	place_moments(growth, &(struct growth_step){ .time_ns = UINT64_MAX });
	place_marks(growth);
	choose_candidates(growth);
}

void growth_again(struct growth *growth, struct growth_step *steps, size_t count)
{
	uint32_t sites[SITES_ROW];

	find_sites(growth, steps, count, sites);
	for (size_t i = 0; i < count; i++, growth->again++) {
		uint64_t position = growth->again;
		for (; growth->mark < growth->mark_count &&
		       growth->marks[growth->mark].position <= position;
		     growth->mark++)
			;
		follow_step(growth, &growth->sites.items[sites[i]], &steps[i], growth->mark);
		for (uint32_t m = position ? growth->mark : 0;
		     m < growth->mark_count && growth->marks[m].position <= position + 1; m++)
			growth->marks[m].time_ns = steps[i].time_ns;
	}
}

void growth_end(struct growth *growth)
{
	if (!growth->events)
		return;
	for (size_t i = 0; i < growth->sites.count; i++)
		if (growth->sites.items[i].floor != SITE_NONE)
			pass_marks(growth, &growth->sites.items[i], (uint32_t)growth->mark_count);
	count_requests(growth);
}

void growth_follow(struct growth *growth, const struct growth_source *source)
{
	struct growth_step steps[SITES_ROW];

	source->rewind(source->state);
	for (size_t count; (count = source->read(source->state, steps, SITES_ROW));)
		growth_first(growth, steps, count);
	source->drain(source->state);
	growth_turn(growth);
	if (growth->events)
		source->rewind(source->state);
	for (size_t count; growth->events &&
			   (count = source->read(source->state, steps, SITES_ROW));)
		growth_again(growth, steps, count);
	growth_end(growth);
}

void growth_birth(const struct growth *growth, struct site *site,
		  const struct growth_block *block)
{
	struct survival_part *part;
	/* was it there before the last quarter? */
	if (!growth->mark_count ||
	    block->birth_ns < growth->marks[growth->mark_count * 3 / 4].time_ns)
		site->old_bytes += block->bytes;
	if (!growth->survivals || site->floor == SITE_NONE)
		return;
	part = &growth->survivals[site->floor]
			.parts[survival_part(&growth->time, block->birth_ns, NULL)];
	part->bytes += (double)block->bytes;
	part->variance += block->variance;
	part->count++;
}

void growth_pool(struct growth *growth, const struct reader *reader)
{
	struct hash_index places;
	uint32_t count = 0;
	hash_index_init(&places, growth->floor_count);
	growth->pools = xalloc_zeroed(growth->floor_count, sizeof *growth->pools);
	growth->pool_of_floor = xalloc_zeroed(growth->floor_count, sizeof *growth->pool_of_floor);
	for (size_t i = 0; i < growth->sites.count; i++) {
		const struct site *site = &growth->sites.items[i];
		uint32_t *place;
		if (site->floor == SITE_NONE)
			continue;
		place = hash_index_place(&places, reader_place(reader, site->stack));
		if (!*place)
			*place = ++count;
		growth->pool_of_floor[site->floor] = *place - 1;
		survival_add(&growth->pools[*place - 1], &growth->survivals[site->floor]);
	}
	hash_index_fini(&places);
}
