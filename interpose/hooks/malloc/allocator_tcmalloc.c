/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcmalloc's statistics, through the C functions that both of its lines export: gperftools' and the
 * newer one's. The two name some properties differently.
 */
#include "interpose/hooks/malloc/allocator_stats.h"

typedef int (*property_fn)(const char *name, size_t *value);
typedef bool (*new_property_fn)(const char *name, size_t name_bytes, size_t *value);

/* Whichever of the two functions the allocator exports. */
static bool query(const struct cuf_allocator *allocator, const char *name, uint64_t *value)
{
	property_fn property =
		cuf_allocator_function(allocator, "MallocExtension_GetNumericProperty");
	new_property_fn new_property =
		cuf_allocator_function(allocator, "MallocExtension_Internal_GetNumericProperty");
	size_t answer = 0;
	bool known = false;
	if (property)
		known = property(name, &answer) != 0;
	else if (new_property)
		known = new_property(name, __builtin_strlen(name), &answer);
	*value = answer;
	return known;
}

enum { PARTS_MAX = 3 };
static const struct sum {
	const char *key;
	const char *parts[PARTS_MAX]; /* properties of either line; those that exist are added up */
} sums[] = {
	{ "live_bytes", { "generic.current_allocated_bytes" } },
	{ "system_bytes", { "generic.heap_size" } },
	{ "cached_bytes", { "tcmalloc.pageheap_free_bytes", "tcmalloc.page_heap_free" } },
	{ "retained_bytes", { "tcmalloc.pageheap_unmapped_bytes", "tcmalloc.page_heap_unmapped" } },
	{ "scattered_bytes", { "tcmalloc.central_cache_free_bytes",
			       "tcmalloc.central_cache_free" } },
	{ "thread_cached_bytes", { "tcmalloc.thread_cache_free_bytes",
				   "tcmalloc.transfer_cache_free_bytes", "tcmalloc.cpu_free" } },
};

/* A sum none of whose parts exist is left out. */
static bool add_sum(const struct cuf_allocator *allocator, struct cuf_text *text,
		    const struct sum *sum)
{
	uint64_t bytes = 0, part;
	bool any = false;
	for (unsigned i = 0; i < PARTS_MAX && sum->parts[i]; i++)
		if (query(allocator, sum->parts[i], &part)) {
			bytes += part;
			any = true;
		}
	if (any)
		cuf_stats_add(text, sum->key, bytes);
	return any;
}

/* Returns false for an allocator that exports neither function. */
bool cuf_stats_tcmalloc(const struct cuf_allocator *allocator, struct cuf_text *text)
{
	bool any = false;
	for (unsigned i = 0; i < sizeof sums / sizeof *sums; i++)
		any |= add_sum(allocator, text, &sums[i]);
	return any;
}
