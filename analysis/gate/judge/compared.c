/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the sites of a run with those of a baseline. */
#include "analysis/gate/judge/compared.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/gate/judge/match.h"

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
