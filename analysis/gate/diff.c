/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs the call sites of two sides and sorts what changed. */
#include "analysis/gate/diff.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/gate/compared.h"
#include "analysis/gate/finding.h"

const char *const diff_names[DIFF_MAX] = { "new", "grown", "shrunk", "gone" };

struct diffing {
	struct gate_diff *out;
	const struct diff_side *before, *now;
	struct arena *arena;
	uint64_t least_bytes;
};

static uint64_t diff_bytes_of(const struct diffing *diffing, const struct baseline_site *site)
{
	if (!site)
		return 0;
	return diffing->out->at_end ? site->end.median : site->peak.median;
}

static enum diff_change change_of(uint64_t before, uint64_t now)
{
	if (!before)
		return DIFF_NEW;
	if (!now)
		return DIFF_GONE;
	return now > before ? DIFF_GROWN : DIFF_SHRUNK;
}

/* The call site in the run that the figures were taken from; NULL: they are from a file. */
static const struct measured_site *find_measured(const struct diff_side *side,
						 const struct baseline_site *site)
{
	for (size_t i = 0; side->run && site && i < side->run->site_count; i++)
		if (side->run->sites[i].group == site->group &&
		    !strcmp(side->run->sites[i].identity, site->identity))
			return &side->run->sites[i];
	return NULL;
}

/* Named by the newer side where it can, else by the older one, else by the identity. */
static void name_row(const struct diffing *diffing, const struct baseline_site *before,
		     const struct baseline_site *now, struct gate_site *out)
{
	static const char *const gone = "?";
	const struct measured_site *found = find_measured(diffing->now, now);
	struct naming plain = { .arena = diffing->arena };

	if (found) {
		naming_fill(&diffing->now->run->naming, &found->stack, out);
		out->count_now = diffing->out->at_end ? found->end_count : found->peak_count;
		return;
	}
	found = find_measured(diffing->before, before);
	if (found)
		naming_fill(&diffing->before->run->naming, &found->stack, out);
	else if (now || before)
		naming_fill_gone(&plain, now ? now->identity : before->identity, out);
	else
		out->identity = gone;
}

static void add_diff_row(const struct diffing *diffing, const struct baseline_site *before,
			 const struct baseline_site *now)
{
	uint64_t old = diff_bytes_of(diffing, before), new = diff_bytes_of(diffing, now);
	struct gate_diff *out = diffing->out;
	struct diff_row *row = &out->rows[out->row_count];

	if (old == new)
		return;
	if (most_of(old, new) - least_of(old, new) < diffing->least_bytes) {
		out->left_out++;
		return;
	}
	*row = (struct diff_row){ .change = change_of(old, new) };
	name_row(diffing, before, now, &row->site);
	row->site.group = now ? now->group : before->group;
	row->site.bytes_now = new;
	row->site.bytes_before = old;
	out->row_count++;
}

static struct match_side *sides_of(const struct diffing *diffing,
				   const struct gate_baseline *figures)
{
	struct match_side *sides = xalloc_zeroed(figures->site_count, sizeof *sides);

	for (size_t i = 0; i < figures->site_count; i++)
		sides[i] = (struct match_side){ figures->sites[i].identity,
						figures->sites[i].group,
						diff_bytes_of(diffing, &figures->sites[i]) };
	return sides;
}

static uint64_t size_of_change(const struct diff_row *row)
{
	return most_of(row->site.bytes_now, row->site.bytes_before) -
	       least_of(row->site.bytes_now, row->site.bytes_before);
}

static int biggest_first(const void *a, const void *b)
{
	const struct diff_row *left = a, *right = b;

	if (size_of_change(left) != size_of_change(right))
		return compare_numbers(size_of_change(right), size_of_change(left));
	if (left->site.group != right->site.group)
		return left->site.group < right->site.group ? -1 : 1;
	return strcmp(left->site.identity, right->site.identity);
}

static void diff_sites(const struct diffing *diffing)
{
	const struct gate_baseline *old = diffing->before->figures, *new = diffing->now->figures;
	struct match_side *before = sides_of(diffing, old), *now = sides_of(diffing, new);
	size_t *found = match_sites(now, new->site_count, before, old->site_count);
	bool *taken = xalloc_zeroed(old->site_count, sizeof *taken);
	struct gate_diff *out = diffing->out;

	out->rows = arena_zeroed(diffing->arena, old->site_count + new->site_count,
				 sizeof *out->rows);
	for (size_t i = 0; i < new->site_count; i++) {
		const struct baseline_site *match = NULL;
		if (found[i] != MATCH_NONE) {
			match = &old->sites[found[i]];
			taken[found[i]] = true;
		}
		add_diff_row(diffing, match, &new->sites[i]);
	}
	for (size_t i = 0; i < old->site_count; i++)
		if (!taken[i])
			add_diff_row(diffing, &old->sites[i], NULL);
	if (out->row_count)
		qsort(out->rows, out->row_count, sizeof *out->rows, biggest_first);
	free(taken);
	free(found);
	free(before);
	free(now);
}

static uint64_t figure_of(const struct diff_side *side, size_t measure)
{
	if (!side->figures->measures[measure].runs)
		return CUF_UNKNOWN;
	return side->figures->measures[measure].median;
}

static void diff_measures(const struct diffing *diffing)
{
	struct gate_diff *out = diffing->out;

	for (size_t i = 0; i < MEASURE_MAX; i++) {
		uint64_t before = figure_of(diffing->before, i), now = figure_of(diffing->now, i);
		bool is_level = i <= MEASURE_PYTHON_END;
		if (before == now && !(is_level && is_known(now) && now))
			continue;
		out->measures[out->measure_count++] =
			(struct diff_measure){ &gate_measures[i], before, now };
	}
}

void diff_take(struct gate_diff *out, const struct diff_side *before, const struct diff_side *now,
	       bool at_end, uint64_t least_bytes, struct arena *arena)
{
	struct diffing diffing = { out, before, now, arena, least_bytes };

	*out = (struct gate_diff){ .before = before->name, .now = now->name, .at_end = at_end };
	out->difference = environment_difference(&before->figures->environment,
						 &now->figures->environment, arena);
	diff_measures(&diffing);
	diff_sites(&diffing);
}

bool diff_has_change(const struct gate_diff *diff)
{
	return diff->row_count > 0;
}
