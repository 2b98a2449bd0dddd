/* SPDX-License-Identifier: Apache-2.0 */
/* tcmalloc's books, by the C functions that both families of it export: gperftools' and the newer one's. */
#include "interpose/hooks/malloc/allocator_books.h"

typedef int (*property_fn)(const char *name, size_t *value);
typedef bool (*property_of_new_fn)(const char *name, size_t name_bytes, size_t *value);

static bool ask(const struct cuf_allocator *allocator, const char *name, uint64_t *value)
{
	property_fn property = cuf_allocator_function(allocator, "MallocExtension_GetNumericProperty");
	property_of_new_fn of_new = cuf_allocator_function(allocator, "MallocExtension_Internal_GetNumericProperty");
	size_t answer = 0;
	bool known = property ? property(name, &answer) != 0 : of_new ? of_new(name, __builtin_strlen(name), &answer) : false;
	*value = answer;
	return known;
}

/* The names are both families'; a sum that has no part is left out. */
static bool add_sum(const struct cuf_allocator *allocator, struct cuf_text *text, const char *key, const char *const *names, unsigned count)
{
	uint64_t sum = 0, part;
	bool any = false;
	for (unsigned i = 0; i < count; i++)
		if (ask(allocator, names[i], &part)) {
			sum += part;
			any = true;
		}
	if (any)
		cuf_books_add(text, key, sum);
	return any;
}

#define SUM(key, ...) add_sum(allocator, text, key, (const char *const[]){ __VA_ARGS__ }, sizeof(const char *[]){ __VA_ARGS__ } / sizeof(char *))

bool cuf_books_tcmalloc(const struct cuf_allocator *allocator, enum cuf_moment moment, struct cuf_text *text)
{
	bool any = SUM("live_bytes", "generic.current_allocated_bytes");
	any |= SUM("system_bytes", "generic.heap_size");
	any |= SUM("cached_bytes", "tcmalloc.pageheap_free_bytes", "tcmalloc.page_heap_free");
	any |= SUM("retained_bytes", "tcmalloc.pageheap_unmapped_bytes", "tcmalloc.page_heap_unmapped");
	any |= SUM("scattered_bytes", "tcmalloc.central_cache_free_bytes", "tcmalloc.central_cache_free");
	any |= SUM("thread_cached_bytes", "tcmalloc.thread_cache_free_bytes", "tcmalloc.transfer_cache_free_bytes", "tcmalloc.cpu_free");
	return any;
}
