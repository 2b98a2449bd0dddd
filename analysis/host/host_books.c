/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of META to struct fact_allocator: each family's words brought to the same few. */
#include "analysis/host/host_books.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/key_values.h"

#define PAGE 4096u

const char *const allocator_role_names[ALLOCATOR_ROLE_MAX] = { "process", "private", "in_front" };

static bool in_time(const struct fact_meta_text *t, uint64_t time_ns)
{
	return time_ns == CUF_UNKNOWN || t->time_ns <= time_ns + BOOKS_LATE_NS;
}

static const char *copy_value(struct arena *arena, const char *text, const char *key)
{
	size_t bytes = 0;
	const char *value = key_value(text, key, &bytes);
	return arena_text(arena, value ? value : "", bytes);
}

static enum fact_allocator_role role_of(const char *text)
{
	for (unsigned role = 0; role < ALLOCATOR_ROLE_MAX; role++)
		if (key_is(text, "role", allocator_role_names[role]))
			return role;
	return ALLOCATOR_PROCESS;
}

/* Figures of a damaged text are left out: no allocator has them, and sums of sane ones cannot overflow. */
static uint64_t sane_number(const char *text, const char *key)
{
	uint64_t n = key_number(text, key);
	return n < (uint64_t)1 << 57 ? n : CUF_UNKNOWN;
}

static uint64_t or_zero(uint64_t n) { return n == CUF_UNKNOWN ? 0 : n; }

/* ---- glibc: which of the free bytes are whole pages ---- */

/* A free chunk lies anywhere in its pages: on average one page less a byte is in the two at its ends. */
static uint64_t whole_pages_of(uint64_t count, uint64_t bytes)
{
	uint64_t edges;
	return __builtin_mul_overflow(count, PAGE - 1, &edges) || edges >= bytes ? 0 : bytes - edges;
}

static void split_free(const char *text, struct fact_allocator *a, struct arena *arena)
{
	uint64_t free_bytes = sane_number(text, "free_bytes"), count = or_zero(sane_number(text, "free_count")), whole = 0;
	struct fact_free_class *classes = arena_zeroed(arena, 64, sizeof *classes);
	struct key_class c;
	if (free_bytes == CUF_UNKNOWN)
		return;
	a->top_bytes = or_zero(sane_number(text, "top_bytes"));
	a->top_bytes = a->top_bytes < free_bytes ? a->top_bytes : free_bytes;
	for (const char *at = text; a->free_count < 64 && key_next_class(&at, "free", &c);) {
		classes[a->free_count++] = (struct fact_free_class){ c.class, c.first, c.second };
		whole += whole_pages_of(c.first, c.second);
	}
	a->free = classes;
	if (!a->free_count) /* sums alone */
		whole = whole_pages_of(count ? count - 1 : 0, free_bytes - a->top_bytes);
	whole = whole + a->top_bytes < free_bytes ? whole + a->top_bytes : free_bytes;
	a->cached_bytes = whole;
	a->fragmented_bytes = free_bytes - whole;
	a->split_basis = BASIS_ESTIMATED;
}

static void take_glibc(const char *text, struct fact_allocator *a, struct arena *arena)
{
	uint64_t largest = sane_number(text, "largest_bytes");
	split_free(text, a, arena);
	if (largest != CUF_UNKNOWN)
		a->largest_free = (struct fact_layer){ largest, "exact, allocator's books" };
	else if (sane_number(text, "top_bytes") != CUF_UNKNOWN)
		a->largest_free = (struct fact_layer){ sane_number(text, "top_bytes"), "lower bound, top of the heap" };
}

/* ---- jemalloc: slabs, and free extents by page class ---- */

/* The least bytes of an extent of this class: four classes to a doubling. */
static uint64_t page_class_bytes(uint64_t class, uint64_t page_bytes)
{
	if (class < 4)
		return (class + 1) * page_bytes;
	if (class >= 4 * 50)
		return 0;
	return ((4 + class % 4 + 1) << (class / 4 - 1)) * page_bytes;
}

static void take_extents(const char *text, const char *family, struct fact_allocator *a, uint64_t page_bytes, struct fact_free_class *classes)
{
	struct key_class c;
	for (const char *at = text; a->free_count < 512 && key_next_class(&at, family, &c);) {
		uint64_t least = page_class_bytes(c.class, page_bytes), others = 0, largest;
		if (!c.first || __builtin_mul_overflow(c.first - 1, least, &others) || others > c.second)
			continue;
		largest = c.second - others;
		classes[a->free_count++] = (struct fact_free_class){ least, c.first, c.second };
		if (a->largest_free.bytes == CUF_UNKNOWN || largest > a->largest_free.bytes)
			a->largest_free = (struct fact_layer){ largest, c.first == 1 ? "exact, allocator's books" : "upper bound, allocator's books" };
	}
}

static void take_jemalloc(const char *text, struct fact_allocator *a, struct arena *arena)
{
	uint64_t page_bytes = sane_number(text, "page_bytes");
	struct fact_free_class *classes = arena_zeroed(arena, 512, sizeof *classes);
	struct fact_slab *slabs = arena_zeroed(arena, 64, sizeof *slabs);
	struct key_class c;
	if (page_bytes != CUF_UNKNOWN && page_bytes < 1u << 24) {
		a->largest_free = (struct fact_layer){ 0, "exact, allocator's books" };
		take_extents(text, "extent", a, page_bytes, classes);
		take_extents(text, "retained", a, page_bytes, classes);
	}
	a->free = classes;
	for (const char *at = text; a->slab_count < 64 && key_next_class(&at, "slab", &c);)
		slabs[a->slab_count++] = (struct fact_slab){ c.class, c.first, c.second };
	a->slabs = slabs;
}

/* ---- all ---- */

static void take_figures(const char *text, struct fact_allocator *a, struct arena *arena)
{
	const struct { const char *key; uint64_t *to; } rows[] = {
		{ "system_bytes", &a->system_bytes }, { "live_bytes", &a->live_bytes }, { "cached_bytes", &a->cached_bytes },
		{ "scattered_bytes", &a->fragmented_bytes }, { "own_bytes", &a->own_bytes }, { "retained_bytes", &a->retained_bytes },
		{ "thread_cached_bytes", &a->thread_cached_bytes }, { "mapped_bytes", &a->mapped_bytes }, { "arena_count", &a->arena_count },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		*rows[i].to = sane_number(text, rows[i].key);
	if (a->cached_bytes != CUF_UNKNOWN)
		a->split_basis = BASIS_OBSERVED;
	if (!strcmp(a->name, "glibc"))
		take_glibc(text, a, arena);
	else if (!strcmp(a->name, "jemalloc"))
		take_jemalloc(text, a, arena);
}

static struct fact_allocator allocator_of(const struct fact_meta_text *t, struct arena *arena)
{
	struct fact_allocator a = { .name = copy_value(arena, t->text, "name"), .version = copy_value(arena, t->text, "version"),
		.object = copy_value(arena, t->text, "object"), .role = role_of(t->text), .time_ns = CUF_UNKNOWN,
		.system_bytes = CUF_UNKNOWN, .live_bytes = CUF_UNKNOWN, .cached_bytes = CUF_UNKNOWN, .fragmented_bytes = CUF_UNKNOWN,
		.own_bytes = CUF_UNKNOWN, .retained_bytes = CUF_UNKNOWN, .thread_cached_bytes = CUF_UNKNOWN, .mapped_bytes = CUF_UNKNOWN,
		.top_bytes = CUF_UNKNOWN, .arena_count = CUF_UNKNOWN, .largest_free = { CUF_UNKNOWN, "" } };
	if (t->number == CUF_MOMENT_START || (key_number(t->text, "live_bytes") == CUF_UNKNOWN && key_number(t->text, "system_bytes") == CUF_UNKNOWN))
		return a;
	a.time_ns = t->time_ns;
	take_figures(t->text, &a, arena);
	return a;
}

static int by_role(const void *x, const void *y)
{
	const struct fact_allocator *a = x, *b = y;
	return a->role != b->role ? (a->role < b->role ? -1 : 1) : strcmp(a->object, b->object);
}

static bool same_value(const char *a, const char *b, const char *key)
{
	size_t a_bytes = 0, b_bytes = 0;
	const char *x = key_value(a, key, &a_bytes), *y = key_value(b, key, &b_bytes);
	return a_bytes == b_bytes && (!x || !y || !memcmp(x, y, a_bytes));
}

static bool same_allocator(const struct fact_meta_text *a, const struct fact_meta_text *b)
{
	return same_value(a->text, b->text, "name") && same_value(a->text, b->text, "role") && same_value(a->text, b->text, "object");
}

/* Later texts of the same allocator take the place of earlier ones. */
struct fact_allocator *host_books_allocators(const struct meta *meta, uint64_t time_ns, struct arena *arena, size_t *count)
{
	const struct fact_meta_text **texts = NULL;
	struct fact_allocator *kept;
	size_t room = 0;
	*count = 0;
	for (size_t i = 0; i < meta->text_count; i++) {
		const struct fact_meta_text *t = &meta->texts[i];
		size_t at = 0;
		if (t->type != CUF_META_ALLOCATOR || !in_time(t, time_ns))
			continue;
		while (at < *count && !same_allocator(texts[at], t))
			at++;
		if (at == *count) {
			xalloc_grow(&texts, *count, &room, sizeof *texts);
			++*count;
		}
		texts[at] = t;
	}
	kept = arena_zeroed(arena, *count, sizeof *kept);
	for (size_t i = 0; i < *count; i++)
		kept[i] = allocator_of(texts[i], arena);
	if (*count)
		qsort(kept, *count, sizeof *kept, by_role);
	free(texts);
	return kept;
}

const char *host_books_memory(const struct meta *meta, uint64_t time_ns)
{
	const char *found = NULL;
	for (size_t i = 0; i < meta->text_count; i++)
		if (meta->texts[i].type == CUF_META_MEMORY && in_time(&meta->texts[i], time_ns))
			found = meta->texts[i].text;
	return found;
}
