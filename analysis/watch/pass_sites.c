/* SPDX-License-Identifier: Apache-2.0 */
/* Call sites of struct facts to rows with names. */
#include "analysis/watch/pass_sites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/base/xalloc.h"

/* Named and summed before the largest are kept: more call sites than that are the small end of a
 * long list. */
enum { CANDIDATES = 1000 };

static enum watch_memory memory_of(const struct fact_site *site)
{
	switch (site->kind) {
	case CUF_KIND_FRAMEWORK: return WATCH_FRAMEWORK;
	case CUF_KIND_PINNED: case CUF_KIND_REGISTERED: return WATCH_PINNED;
	case CUF_KIND_HOST: return WATCH_HOST;
	default: return WATCH_DEVICE;
	}
}

static bool is_same_site(const struct pass_site *a, const struct pass_site *b)
{
	return a->memory == b->memory && a->device == b->device && !strcmp(a->name, b->name);
}

static void add_pass_site(struct pass_site *to, const struct pass_site *from)
{
	to->bytes += from->bytes;
	to->count += from->count;
	to->leak_bytes += from->leak_bytes;
	to->is_leak |= from->is_leak;
	if (from->is_judged && (!to->is_judged || from->state > to->state))
		to->state = from->state;
	to->is_judged |= from->is_judged;
	if (!isnan(from->slope_bytes_per_s))
		to->slope_bytes_per_s = from->slope_bytes_per_s +
					(isnan(to->slope_bytes_per_s) ? 0 : to->slope_bytes_per_s);
	if (from->first_ns < to->first_ns)
		to->first_ns = from->first_ns;
}

static void name_site(struct pass_site *out, const struct fact_site *site, struct places *places)
{
	char text[PASS_SENTENCE];
	struct place place;

	if (site->owner) {
		clean_terminal(out->name, sizeof out->name, site->owner, false);
		return;
	}
	place_of(places, &site->stack, &place);
	place_text(&place, text, sizeof text);
	clean_terminal(out->name, sizeof out->name, text, false);
	place_line(places, &site->stack, sizeof text - 1, text, sizeof text);
	clean_terminal(out->path, sizeof out->path, text, false);
}

/* What a framework splits into blocks has rows of its own for the same bytes. */
static bool counts(const struct fact_site *site)
{
	return site->bytes && !site->holds_blocks && site->kind < CUF_KIND_MAPPING;
}

static const struct live_site *judged_of(const struct judgement *judgement,
					 const struct fact_site *site)
{
	for (size_t i = 0; judgement && i < judgement->site_count; i++)
		if (judgement->sites[i].site == site)
			return &judgement->sites[i];
	return NULL;
}

static void judge_site(struct pass_site *out, const struct judgement *judgement,
		       const struct fact_site *site)
{
	const struct live_site *live = judged_of(judgement, site);

	out->is_judged = live;
	out->state = live ? live->state : LIVE_STEADY;
	out->is_leak = judgement ? live && live->state == LIVE_LEAK : site->class == CLASS_LEAK;
	out->leak_bytes = out->is_leak ? site->bytes : 0;
}

static struct pass_site pass_site_of(const struct facts *facts, const struct fact_site *site,
				     struct places *places)
{
	struct pass_site out = {
		.memory = memory_of(site),
		.device = site->device == FACT_NONE ? CUF_DEVICE_NONE :
						      facts->devices[site->device].ordinal,
		.bytes = site->bytes, .count = site->count,
		.slope_bytes_per_s = site->slope_bytes_per_s,
		.first_ns = site->first_ns,
	};

	clean_terminal(out.role, sizeof out.role, site->role ? site->role : "", false);
	name_site(&out, site, places);
	return out;
}

static int by_worth(const void *a, const void *b)
{
	const struct pass_site *left = a, *right = b;

	if (left->is_leak != right->is_leak)
		return left->is_leak ? -1 : 1;
	if (left->bytes != right->bytes)
		return left->bytes > right->bytes ? -1 : 1;
	return strcmp(left->name, right->name);
}

/* What a leak adds with each request, of the largest one. */
static void note_request(struct pass *pass, const struct pass_site *row,
			 const struct fact_site *site)
{
	if (row->is_leak && isnan(pass->per_request_bytes) &&
	    site->per_request_bytes != CUF_UNKNOWN)
		pass->per_request_bytes = (double)site->per_request_bytes;
}

void pass_sites_fill(struct pass *pass, const struct facts *facts,
		     const struct judgement *judgement, struct places *places)
{
	struct pass_site *rows = xalloc_zeroed(CANDIDATES, sizeof *rows);
	size_t count = 0, at;

	for (size_t i = 0; i < facts->leak_count && count < CANDIDATES; i++) {
		const struct fact_site *site = &facts->leaks[i];

		if (!counts(site))
			continue;
		rows[count] = pass_site_of(facts, site, places);
		judge_site(&rows[count], judgement, site);
		note_request(pass, &rows[count], site);
		for (at = 0; at < count && !is_same_site(&rows[at], &rows[count]); at++)
			;
		if (at == count)
			count++;
		else
			add_pass_site(&rows[at], &rows[count]);
	}
	qsort(rows, count, sizeof *rows, by_worth);
	pass->site_count = count < PASS_SITES ? count : PASS_SITES;
	memcpy(pass->sites, rows, pass->site_count * sizeof *rows);
	free(rows);
}
