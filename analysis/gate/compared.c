/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs call sites of two builds, joins those of a run with a baseline's, names the guilty. */
#include "analysis/gate/compared.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/facts.h"
#include "analysis/gate/check.h"
#include "analysis/gate/site_name.h"

/* A site with its place in the caller's array. */
struct item { const struct match_side *side; size_t index; };

static int by_side_identity(const void *a, const void *b)
{
	const struct item *left = a, *right = b;

	if (left->side->group != right->side->group)
		return left->side->group < right->side->group ? -1 : 1;
	return strcmp(left->side->identity, right->side->identity);
}

static int by_side_bytes(const void *a, const void *b)
{
	const struct item *left = a, *right = b;

	if (left->side->bytes != right->side->bytes)
		return compare_numbers(right->side->bytes, left->side->bytes);
	return by_side_identity(a, b);
}

static struct item *items_of(const struct match_side *sides, size_t count)
{
	struct item *items = xalloc_zeroed(count, sizeof *items);

	for (size_t i = 0; i < count; i++)
		items[i] = (struct item){ &sides[i], i };
	return items;
}

static void sort(struct item *items, size_t count,
		 int (*order)(const void *, const void *))
{
	if (count)
		qsort(items, count, sizeof *items, order);
}

/* The rest, largest first; a taken site of `before` is not taken again. */
static void match_alike(size_t *found, const struct item *now, size_t now_count,
			const struct item *before, size_t before_count, bool *taken)
{
	for (size_t i = 0; i < now_count; i++) {
		const struct match_side *side = now[i].side;
		for (size_t j = 0; j < before_count && found[now[i].index] == MATCH_NONE; j++) {
			const struct match_side *other = before[j].side;
			if (taken[before[j].index] || other->group != side->group ||
			    !site_name_is_like(side->identity, other->identity))
				continue;
			found[now[i].index] = before[j].index;
			taken[before[j].index] = true;
		}
	}
}

size_t *match_sites(const struct match_side *now, size_t now_count,
		    const struct match_side *before, size_t before_count)
{
	size_t *found = xalloc_zeroed(now_count, sizeof *found);
	bool *taken = xalloc_zeroed(before_count, sizeof *taken);
	struct item *left = items_of(now, now_count), *right = items_of(before, before_count);
	size_t j = 0;

	for (size_t i = 0; i < now_count; i++)
		found[i] = MATCH_NONE;
	sort(left, now_count, by_side_identity);
	sort(right, before_count, by_side_identity);
	for (size_t i = 0; i < now_count; i++) {
		while (j < before_count && by_side_identity(&right[j], &left[i]) < 0)
			j++;
		if (j == before_count || by_side_identity(&right[j], &left[i]) != 0)
			continue;
		found[left[i].index] = right[j].index;
		taken[right[j++].index] = true;
	}
	sort(left, now_count, by_side_bytes);
	sort(right, before_count, by_side_bytes);
	match_alike(found, left, now_count, right, before_count, taken);
	free(left);
	free(right);
	free(taken);
	return found;
}

/* Joins the sites of a run with those of a baseline. */
static struct match_side *sides_now(const struct measured *run)
{
	struct match_side *sides = xalloc_zeroed(run->site_count, sizeof *sides);

	for (size_t i = 0; i < run->site_count; i++)
		sides[i] = (struct match_side){
			run->sites[i].identity, run->sites[i].group,
			most_of(run->sites[i].peak_bytes, run->sites[i].end_bytes)
		};
	return sides;
}

static struct match_side *sides_before(const struct gate_baseline *baseline)
{
	struct match_side *sides = xalloc_zeroed(baseline->site_count, sizeof *sides);

	for (size_t i = 0; i < baseline->site_count; i++)
		sides[i] = (struct match_side){
			baseline->sites[i].identity, baseline->sites[i].group,
			most_of(baseline->sites[i].peak.median, baseline->sites[i].end.median)
		};
	return sides;
}

static void pair_up(struct compared *out, const size_t *found)
{
	const struct gate_baseline *baseline = out->baseline;
	bool *taken = xalloc_zeroed(baseline->site_count, sizeof *taken);

	for (size_t i = 0; i < out->count; i++) {
		if (found[i] == MATCH_NONE)
			continue;
		out->sites[i].before = &baseline->sites[found[i]];
		taken[found[i]] = true;
	}
	for (size_t i = 0; i < baseline->site_count; i++)
		if (!taken[i])
			out->sites[out->count++] = (struct compared_site){
				NULL, &baseline->sites[i], baseline->sites[i].group
			};
	free(taken);
}

void compare_sites(struct compared *out, struct measured *run,
		   const struct gate_baseline *baseline)
{
	size_t room = run->site_count + (baseline ? baseline->site_count : 0);

	*out = (struct compared){ .run = run, .baseline = baseline };
	out->sites = arena_zeroed(run->arena, room, sizeof *out->sites);
	for (size_t i = 0; i < run->site_count; i++)
		out->sites[out->count++] =
			(struct compared_site){ &run->sites[i], NULL, run->sites[i].group };
	if (baseline) {
		struct match_side *now = sides_now(run), *before = sides_before(baseline);
		size_t *found = match_sites(now, run->site_count, before, baseline->site_count);
		pair_up(out, found);
		free(found);
		free(now);
		free(before);
	}
}

static uint64_t compared_now(const struct compared_site *site, bool at_end)
{
	if (!site->now)
		return 0;
	return at_end ? site->now->end_bytes : site->now->peak_bytes;
}

/* CUF_UNKNOWN: there is no baseline. */
static uint64_t compared_before(const struct compared *compared,
				const struct compared_site *site, bool at_end)
{
	if (!compared->baseline)
		return CUF_UNKNOWN;
	if (!site->before)
		return 0;
	return at_end ? site->before->end.median : site->before->peak.median;
}

/* Names and figures of a row. */
static void compared_fill(const struct compared *compared, const struct compared_site *site,
			  bool at_end, struct gate_site *out)
{
	*out = (struct gate_site){ .group = site->group,
				   .bytes_now = compared_now(site, at_end),
				   .bytes_before = compared_before(compared, site, at_end) };
	if (site->now) {
		out->count_now = at_end ? site->now->end_count : site->now->peak_count;
		naming_fill(&compared->run->naming, &site->now->stack, out);
	} else {
		naming_fill_gone(&compared->run->naming, site->before->identity, out);
	}
}

/* ---- the call sites that a measure is about ---- */

/* A call site before it is named. */
struct blamed {
	const struct compared_site *row; /* NULL: named by its stack */
	const struct fact_stack *stack;
	enum gate_group group;
	uint64_t bytes, count, weight;
	bool is_kill; /* it held memory when the kernel killed: no rule makes that undone */
};

struct candidates { struct blamed *items; size_t count, room; };

static void add_candidate(struct candidates *list, const struct blamed *one)
{
	if (!one->weight)
		return;
	xalloc_grow(&list->items, list->count, &list->room, sizeof *one);
	list->items[list->count++] = *one;
}

static int by_weight(const void *a, const void *b)
{
	const struct blamed *left = a, *right = b;

	if (left->weight != right->weight)
		return compare_numbers(right->weight, left->weight);
	return compare_numbers(left->bytes, right->bytes);
}

static bool is_end(const struct gate_measure *measure)
{
	size_t id = (size_t)(measure - gate_measures);

	return id >= MEASURE_DEVICE_END && id <= MEASURE_PYTHON_END;
}

static void add_group(struct candidates *list, const struct compared *compared,
		      const struct gate_measure *measure)
{
	for (size_t i = 0; i < compared->count; i++) {
		const struct compared_site *row = &compared->sites[i];
		uint64_t now = compared_now(row, is_end(measure));
		uint64_t before = known_or_zero(compared_before(compared, row, is_end(measure)));
		if (row->group == measure->group)
			add_candidate(list,
				      &(struct blamed){ .row = row,
							.group = row->group,
							.bytes = now,
							.weight = subtract_to_zero(now, before) });
	}
}

static void add_leaks(struct candidates *list, const struct facts *facts,
		      const struct gate_measure *measure)
{
	bool of_device = measure->group == GROUP_DEVICE;

	for (size_t i = 0; i < facts->leak_count; i++) {
		const struct fact_site *site = &facts->leaks[i];
		if (site->class != CLASS_LEAK || site->holds_blocks ||
		    site->low_bytes != site->high_bytes ||
		    measure_is_of_device(site) != of_device)
			continue;
		add_candidate(list, &(struct blamed){ .stack = &site->stack,
						      .group = measure_group_of(site),
						      .bytes = site->bytes,
						      .count = site->count,
						      .weight = site->bytes });
	}
}

static void add_growing(struct candidates *list, const struct facts *facts)
{
	for (size_t i = 0; i < facts->leak_count; i++) {
		const struct fact_site *site = &facts->leaks[i];
		if (!measure_is_of_device(site) || site->cycles_basis != BASIS_OBSERVED ||
		    site->per_request_bytes == CUF_UNKNOWN || site->holds_blocks)
			continue;
		add_candidate(list, &(struct blamed){ .stack = &site->stack,
						      .group = measure_group_of(site),
						      .bytes = site->per_request_bytes,
						      .count = site->count,
						      .weight = site->per_request_bytes });
	}
}

static void add_pins(struct candidates *list, const struct fact_pin *pins, size_t count)
{
	for (size_t i = 0; i < count; i++)
		add_candidate(list, &(struct blamed){ .stack = &pins[i].stack,
						      .group = GROUP_DEVICE,
						      .bytes = pins[i].open_bytes,
						      .count = pins[i].count,
						      .weight = pins[i].open_bytes });
}

static void add_pinning(struct candidates *list, const struct facts *facts)
{
	for (size_t i = 0; facts && i < facts->device_count; i++) {
		const struct fact_fragmentation *from = &facts->devices[i].fragmentation;
		add_pins(list, from->pins, from->pin_count);
		for (size_t f = 0; f < from->framework_count; f++)
			add_pins(list, from->frameworks[f].pins, from->frameworks[f].pin_count);
	}
}

static void add_incidents(struct candidates *list, const struct facts *facts, bool fatal)
{
	for (size_t i = 0; i < facts->incident_count; i++) {
		const struct fact_incident *incident = &facts->incidents[i];
		if ((incident->outcome == OUTCOME_FATAL) != fatal)
			continue;
		add_candidate(list, &(struct blamed){
					    .stack = &incident->stack,
					    .group = incident->device == FACT_NONE ? GROUP_HOST :
										     GROUP_DEVICE,
					    .bytes = known_or_zero(incident->requested_bytes),
					    .count = 1,
					    .weight = 1 });
	}
}

static void add_held(struct candidates *list, const struct fact_site *site)
{
	add_candidate(list, &(struct blamed){ .stack = &site->stack,
					      .group = measure_group_of(site),
					      .bytes = site->bytes,
					      .count = site->count,
					      .weight = site->bytes,
					      .is_kill = true });
}

/* What a killed process held of the host: what grew, else the largest. */
static void add_killed(struct candidates *list, const struct facts *facts, uint32_t process)
{
	const struct fact_site *largest = NULL;
	size_t before = list->count;

	for (size_t i = 0; i < facts->leak_count; i++) {
		const struct fact_site *site = &facts->leaks[i];
		if (site->process != process || site->kind != CUF_KIND_HOST)
			continue;
		if (!largest || site->bytes > largest->bytes)
			largest = site;
		if (site->class <= CLASS_GROWING)
			add_held(list, site);
	}
	if (largest && list->count == before)
		add_held(list, largest);
}

static void gather(struct candidates *list, const struct compared *compared,
		   const struct gate_measure *measure)
{
	const struct facts *facts = compared->run->facts;

	switch ((enum gate_measure_id)(measure - gate_measures)) {
	case MEASURE_DEVICE_LEAK:
	case MEASURE_HOST_LEAK: add_leaks(list, facts, measure); break;
	case MEASURE_REQUEST_GROWTH: add_growing(list, facts); break;
	case MEASURE_DEVICE_UNUSED:
	case MEASURE_DEVICE_HOLE:
		add_pinning(list, facts);
		if (!list->count)
			add_pinning(list, compared->run->peak);
		break;
	case MEASURE_INCIDENTS_FATAL:
		add_incidents(list, facts, true);
		for (uint32_t i = 0; i < facts->process_count; i++)
			if (facts->processes[i].end == END_OOM_KILLED)
				add_killed(list, facts, i);
		break;
	case MEASURE_INCIDENTS_RECOVERED: add_incidents(list, facts, false); break;
	case MEASURE_DEVICE_ALLOCATIONS:
	case MEASURE_HOST_ALLOCATIONS: break;
	default: add_group(list, compared, measure); break;
	}
}

/* A stack that no row stands for has no figure of before. */
static void fill(const struct compared *compared, const struct gate_measure *measure,
		 const struct blamed *from, struct gate_site *out)
{
	if (from->row) {
		compared_fill(compared, from->row, is_end(measure), out);
		return;
	}
	*out = (struct gate_site){ .group = from->group,
				   .bytes_now = from->bytes,
				   .count_now = from->count,
				   .bytes_before = CUF_UNKNOWN };
	naming_fill(&compared->run->naming, from->stack, out);
}

struct gate_site *guilty_sites(const struct compared *compared,
			       const struct gate_question *question,
			       const struct gate_measure *measure, size_t *count)
{
	struct candidates list = { 0 };
	struct gate_site *sites;

	gather(&list, compared, measure);
	if (list.count)
		qsort(list.items, list.count, sizeof *list.items, by_weight);
	*count = least_of(list.count, GUILTY_MAX);
	sites = arena_zeroed(compared->run->arena, *count, sizeof *sites);
	for (size_t i = 0; i < *count; i++) {
		fill(compared, measure, &list.items[i], &sites[i]);
		if (question->suppress && !list.items[i].is_kill)
			sites[i].rule = question->suppress(question->suppress_context, measure,
							   &sites[i]);
	}
	free(list.items);
	return sites;
}

uint64_t guilty_weight(const struct gate_site *site)
{
	return subtract_to_zero(site->bytes_now, known_or_zero(site->bytes_before));
}
