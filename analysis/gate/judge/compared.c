/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs call sites of two builds, and joins those of a run with those of a baseline. */
#include "analysis/gate/judge/compared.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/gate/site_name.h"

/* A site with its place in the caller's array. */
struct item { const struct match_side *side; size_t index; };

static int by_identity(const void *a, const void *b)
{
	const struct item *left = a, *right = b;

	if (left->side->group != right->side->group)
		return left->side->group < right->side->group ? -1 : 1;
	return strcmp(left->side->identity, right->side->identity);
}

static int by_bytes(const void *a, const void *b)
{
	const struct item *left = a, *right = b;

	if (left->side->bytes != right->side->bytes)
		return compare_numbers(right->side->bytes, left->side->bytes);
	return by_identity(a, b);
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
	sort(left, now_count, by_identity);
	sort(right, before_count, by_identity);
	for (size_t i = 0; i < now_count; i++) {
		while (j < before_count && by_identity(&right[j], &left[i]) < 0)
			j++;
		if (j == before_count || by_identity(&right[j], &left[i]) != 0)
			continue;
		found[left[i].index] = right[j].index;
		taken[right[j++].index] = true;
	}
	sort(left, now_count, by_bytes);
	sort(right, before_count, by_bytes);
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

uint64_t compared_now(const struct compared_site *site, bool at_end)
{
	if (!site->now)
		return 0;
	return at_end ? site->now->end_bytes : site->now->peak_bytes;
}

uint64_t compared_before(const struct compared *compared, const struct compared_site *site,
			 bool at_end)
{
	if (!compared->baseline)
		return CUF_UNKNOWN;
	if (!site->before)
		return 0;
	return at_end ? site->before->end.median : site->before->peak.median;
}

void compared_fill(const struct compared *compared, const struct compared_site *site, bool at_end,
		   struct gate_site *out)
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
