/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jemalloc's statistics through its mallctl: sums, slabs by size, and free extents by page class.
 * Class j of extents holds those of at least its size and less than the next. Sums over all arenas
 * have the arena number 4096 (jemalloc 5.0 and later).
 */
#include <string.h>
#include "interpose/hooks/malloc/allocator_stats.h"

#define ALL_ARENAS "stats.arenas.4096."
enum { BINS_MAX = 64, EXTENTS_MAX = 256 };

typedef int (*mallctl_fn)(const char *name, void *old, size_t *old_bytes, void *new,
			  size_t new_bytes);

/* ---- queries ---- */

/* A value of 4 or 8 bytes. Returns false when this build lacks the name, or statistics. The width
 * of a value depends on the release: size_t, unsigned or uint32_t. mallctl refuses a buffer of
 * another width, so the narrow one is the second attempt. */
static bool query(mallctl_fn mallctl, const char *name, uint64_t *value)
{
	union { uint64_t u64; uint32_t u32; } answer = { 0 };
	uint32_t narrow = 0;
	size_t bytes = sizeof answer;
	if (!mallctl(name, &answer, &bytes, NULL, 0)) {
		*value = answer.u64;
		if (bytes == sizeof answer.u32)
			*value = answer.u32;
		return true;
	}
	bytes = sizeof narrow;
	if (mallctl(name, &narrow, &bytes, NULL, 0))
		return false;
	*value = narrow;
	return true;
}

/* One name of a numbered family: HEAD, number, TAIL. */
static bool query_numbered(mallctl_fn mallctl, const char *head, unsigned number, const char *tail,
			   uint64_t *value)
{
	CUF_TEXT(name, 128);
	cuf_text_add(&name, head);
	cuf_text_number(&name, number);
	cuf_text_add(&name, tail);
	return query(mallctl, name.at, value);
}

/* ---- sums ---- */

static const struct { const char *name, *key; } sums[] = {
	{ "stats.allocated", "live_bytes" },
	{ "stats.active", "active_bytes" },
	{ "stats.metadata", "own_bytes" },
	{ "stats.resident", "resident_bytes" },
	{ "stats.mapped", "system_bytes" },
	{ "stats.retained", "retained_bytes" },
	{ ALL_ARENAS "tcache_bytes", "thread_cached_bytes" },
	{ "arenas.narenas", "arena_count" },
};

/* Cached: dirty and muzzy pages. Scattered: free inside slabs that are in use. */
static void add_sums(mallctl_fn mallctl, struct cuf_text *text)
{
	uint64_t value, page = 0, dirty = 0, muzzy = 0, active = 0, live = 0;
	for (unsigned i = 0; i < sizeof sums / sizeof *sums; i++)
		if (query(mallctl, sums[i].name, &value))
			cuf_stats_add(text, sums[i].key, value);
	if (query(mallctl, "arenas.page", &page) && query(mallctl, ALL_ARENAS "pdirty", &dirty) &&
	    query(mallctl, ALL_ARENAS "pmuzzy", &muzzy))
		cuf_stats_add(text, "cached_bytes", (dirty + muzzy) * page);
	if (query(mallctl, "stats.active", &active) && query(mallctl, "stats.allocated", &live) &&
	    active >= live)
		cuf_stats_add(text, "scattered_bytes", active - live);
	if (page)
		cuf_stats_add(text, "page_bytes", page);
}

/* ---- classes ---- */

/* "slab.SIZE=BLOCKS IN USE,BLOCKS IN ALL" Slabs of all arenas are summed. */
static void add_slabs(mallctl_fn mallctl, struct cuf_text *text)
{
	uint64_t bins = 0, size, each, slabs, used;
	query(mallctl, "arenas.nbins", &bins);
	for (unsigned i = 0; i < bins && i < BINS_MAX; i++)
		if (query_numbered(mallctl, "arenas.bin.", i, ".size", &size) &&
		    query_numbered(mallctl, "arenas.bin.", i, ".nregs", &each) &&
		    query_numbered(mallctl, ALL_ARENAS "bins.", i, ".curslabs", &slabs) &&
		    query_numbered(mallctl, ALL_ARENAS "bins.", i, ".curregs", &used) && slabs)
			cuf_stats_add_class(text, "slab", size, used, slabs * each);
}

/* Extents in memory (dirty and muzzy) are summed. Retained ones are only addresses. */
static const struct extent_state {
	const char *count, *bytes;
	bool in_memory;
} extent_states[] = {
	{ ".ndirty", ".dirty_bytes", true },
	{ ".nmuzzy", ".muzzy_bytes", true },
	{ ".nretained", ".retained_bytes", false },
};

/* Returns false when this build has no such class. */
static bool add_extent_class(mallctl_fn mallctl, struct cuf_text *text, unsigned class)
{
	static const char head[] = ALL_ARENAS "extents.";
	uint64_t held_count = 0, held_bytes = 0, count = 0, bytes = 0;
	for (unsigned s = 0; s < sizeof extent_states / sizeof *extent_states; s++) {
		const struct extent_state *state = &extent_states[s];
		if (!query_numbered(mallctl, head, class, state->count, &count))
			return false;
		if (!count || !query_numbered(mallctl, head, class, state->bytes, &bytes))
			continue;
		if (state->in_memory) {
			held_count += count;
			held_bytes += bytes;
		} else {
			cuf_stats_add_class(text, "retained", class, count, bytes);
		}
	}
	if (held_count)
		cuf_stats_add_class(text, "extent", class, held_count, held_bytes);
	return true;
}

/* Statistics are compiled in by default. A build without them lacks their names. Writing "epoch"
 * refreshes the figures. All later queries belong to that moment. */
bool cuf_stats_jemalloc(const struct cuf_allocator *allocator, struct cuf_text *text)
{
	mallctl_fn mallctl = cuf_allocator_function(allocator, "mallctl");
	uint64_t epoch = 1;
	unsigned class = 0;
	/* figures are those of the last refresh */
	if (!mallctl || mallctl("epoch", NULL, NULL, &epoch, sizeof epoch))
		return false;
	add_sums(mallctl, text);
	while (class < EXTENTS_MAX && add_extent_class(mallctl, text, class))
		class++;
	add_slabs(mallctl, text);
	return true;
}

/* The number only: the commit after the hyphen is the distribution's matter. */
void cuf_version_jemalloc(const struct cuf_allocator *allocator, struct cuf_text *text)
{
	mallctl_fn mallctl = cuf_allocator_function(allocator, "mallctl");
	const char *version = NULL;
	size_t bytes = sizeof version;
	if (mallctl && !mallctl("version", &version, &bytes, NULL, 0) && version)
		cuf_text_bytes(text, version, strcspn(version, "-")); /* "5.3.0-0-g54eaed1d" */
}
