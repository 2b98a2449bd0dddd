/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jemalloc's books, through its mallctl: sums, slabs by size, and free extents by page class (class j of them holds those
 * of at least its own size and less than the next). Sums over all arenas have the arena number 4096 (5.0 and later).
 */
#include <string.h>
#include "interpose/hooks/malloc/allocator_books.h"

#define ALL_ARENAS "stats.arenas.4096."
enum { BINS_MAX = 64, EXTENTS_MAX = 256 };

typedef int (*mallctl_fn)(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes);

/* false: this build does not know the name, or without its statistics. */
static bool ask(mallctl_fn mallctl, const char *name, uint64_t *value)
{
	union { uint64_t u64; uint32_t u32; } answer = { 0 };
	size_t bytes = sizeof answer;
	if (mallctl(name, &answer, &bytes, NULL, 0)) {
		uint32_t narrow = 0;
		bytes = sizeof narrow;
		if (mallctl(name, &narrow, &bytes, NULL, 0))
			return false;
		*value = narrow;
		return true;
	}
	*value = bytes == sizeof answer.u32 ? answer.u32 : answer.u64;
	return true;
}

/* HEAD, number, TAIL: one name of a numbered family. */
static bool ask_of(mallctl_fn mallctl, const char *head, unsigned number, const char *tail, uint64_t *value)
{
	CUF_TEXT(name, 128);
	cuf_text_add(&name, head);
	cuf_text_number(&name, number);
	cuf_text_add(&name, tail);
	return ask(mallctl, name.at, value);
}

static void add_sums(mallctl_fn mallctl, struct cuf_text *text)
{
	static const struct { const char *name, *key; } rows[] = {
		{ "stats.allocated", "live_bytes" }, { "stats.active", "active_bytes" }, { "stats.metadata", "own_bytes" },
		{ "stats.resident", "resident_bytes" }, { "stats.mapped", "system_bytes" }, { "stats.retained", "retained_bytes" },
		{ ALL_ARENAS "tcache_bytes", "thread_cached_bytes" }, { "arenas.narenas", "arena_count" },
	};
	uint64_t value, page = 0, dirty = 0, muzzy = 0, active = 0, live = 0;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		if (ask(mallctl, rows[i].name, &value))
			cuf_books_add(text, rows[i].key, value);
	if (ask(mallctl, "arenas.page", &page) && ask(mallctl, ALL_ARENAS "pdirty", &dirty) && ask(mallctl, ALL_ARENAS "pmuzzy", &muzzy))
		cuf_books_add(text, "cached_bytes", (dirty + muzzy) * page);
	if (ask(mallctl, "stats.active", &active) && ask(mallctl, "stats.allocated", &live) && active >= live)
		cuf_books_add(text, "scattered_bytes", active - live);
	if (page)
		cuf_books_add(text, "page_bytes", page);
}

/* "slab.SIZE=BLOCKS IN USE,BLOCKS IN ALL" */
static void add_slabs(mallctl_fn mallctl, struct cuf_text *text)
{
	uint64_t bins = 0, size, each, slabs, used;
	ask(mallctl, "arenas.nbins", &bins);
	for (unsigned i = 0; i < bins && i < BINS_MAX; i++)
		if (ask_of(mallctl, "arenas.bin.", i, ".size", &size) && ask_of(mallctl, "arenas.bin.", i, ".nregs", &each) &&
		    ask_of(mallctl, ALL_ARENAS "bins.", i, ".curslabs", &slabs) && ask_of(mallctl, ALL_ARENAS "bins.", i, ".curregs", &used) && slabs)
			cuf_books_class(text, "slab", size, used, slabs * each);
}

static void add_extents(mallctl_fn mallctl, struct cuf_text *text)
{
	static const struct { const char *count, *bytes; } states[] = {
		{ ".ndirty", ".dirty_bytes" }, { ".nmuzzy", ".muzzy_bytes" }, { ".nretained", ".retained_bytes" },
	};
	for (unsigned class = 0; class < EXTENTS_MAX; class++) {
		uint64_t held_count = 0, held_bytes = 0, count = 0, bytes = 0;
		for (unsigned s = 0; s < 3; s++) {
			if (!ask_of(mallctl, ALL_ARENAS "extents.", class, states[s].count, &count))
				return;
			if (!count || !ask_of(mallctl, ALL_ARENAS "extents.", class, states[s].bytes, &bytes))
				continue;
			if (s == 2)
				cuf_books_class(text, "retained", class, count, bytes);
			else
				held_count += count, held_bytes += bytes;
		}
		if (held_count)
			cuf_books_class(text, "extent", class, held_count, held_bytes);
	}
}

bool cuf_books_jemalloc(const struct cuf_allocator *allocator, enum cuf_moment moment, struct cuf_text *text)
{
	mallctl_fn mallctl = cuf_allocator_function(allocator, "mallctl");
	uint64_t epoch = 1;
	if (!mallctl || mallctl("epoch", NULL, NULL, &epoch, sizeof epoch)) /* figures are those of the last refresh */
		return false;
	add_sums(mallctl, text);
	add_extents(mallctl, text);
	add_slabs(mallctl, text);
	return true;
}

void cuf_version_jemalloc(const struct cuf_allocator *allocator, struct cuf_text *text)
{
	mallctl_fn mallctl = cuf_allocator_function(allocator, "mallctl");
	const char *version = NULL;
	size_t bytes = sizeof version;
	if (mallctl && !mallctl("version", &version, &bytes, NULL, 0) && version) /* "5.3.0-0-g54eaed1d" */
		cuf_text_bytes(text, version, strcspn(version, "-"));
}
