/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of META to struct fact_allocator: the terms of each allocator become the same few. */
#include "analysis/measure/allocator_stats.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/key_values.h"

#define PAGE 4096u

const char *const allocator_role_names[ALLOCATOR_ROLE_MAX] = { "process", "private", "in_front" };

/* Whether the statistics are of this moment or an earlier one. */
static bool in_time(const struct fact_meta_text *text, uint64_t time_ns)
{
	return time_ns == CUF_UNKNOWN || text->time_ns <= time_ns + STATS_LATE_NS;
}

static const char *copy_value(struct arena *arena, const char *text, const char *key)
{
	size_t bytes = 0;
	const char *value = key_value(text, key, &bytes);
	if (!value)
		value = "";
	return arena_text(arena, value, bytes);
}

static enum fact_allocator_role role_of(const char *text)
{
	for (unsigned role = 0; role < ALLOCATOR_ROLE_MAX; role++)
		if (key_is(text, "role", allocator_role_names[role]))
			return role;
	return ALLOCATOR_PROCESS;
}

/* Implausible figures of a damaged text are dropped, so sums cannot overflow. */
static uint64_t sane_number(const char *text, const char *key)
{
	uint64_t n = key_number(text, key);
	if (n >= (uint64_t)1 << 57)
		return CUF_UNKNOWN;
	return n;
}

/* ---- glibc: which of the free bytes are whole pages ---- */

/* A free chunk starts anywhere in a page. On average one page less a byte of it is in the two pages
 * at its ends. */
static uint64_t whole_pages_of(uint64_t count, uint64_t bytes)
{
	uint64_t edges;
	if (__builtin_mul_overflow(count, PAGE - 1, &edges))
		return 0;
	return subtract_to_zero(bytes, edges);
}

/*
 * glibc can return whole free pages to the kernel; the rest is fragmented. The top of the heap is
 * one chunk, so all of it counts as whole pages. Classes are more exact than sums, where the
 * recorder could read them.
 */
static void split_free(const char *text, struct fact_allocator *allocator, struct arena *arena)
{
	uint64_t free_bytes = sane_number(text, "free_bytes"),
		 count = known_or_zero(sane_number(text, "free_count")), whole = 0;
	struct fact_free_class *classes = arena_zeroed(arena, 64, sizeof *classes);
	struct key_class entry;
	if (free_bytes == CUF_UNKNOWN)
		return;
	allocator->top_bytes = known_or_zero(sane_number(text, "top_bytes"));
	allocator->top_bytes = least_of(allocator->top_bytes, free_bytes);
	for (const char *at = text;
	     allocator->free_count < 64 && key_next_class(&at, "free", &entry);) {
		classes[allocator->free_count++] =
			(struct fact_free_class){ entry.class, entry.first, entry.second };
		whole += whole_pages_of(entry.first, entry.second);
	}
	allocator->free = classes;
	if (!allocator->free_count) /* sums only */
		whole = whole_pages_of(subtract_to_zero(count, 1),
				       free_bytes - allocator->top_bytes);
	whole = least_of(whole + allocator->top_bytes, free_bytes);
	allocator->cached_bytes = whole;
	allocator->fragmented_bytes = free_bytes - whole;
	allocator->split_basis = BASIS_ESTIMATED;
}

static void read_glibc(const char *text, struct fact_allocator *allocator, struct arena *arena)
{
	uint64_t largest = sane_number(text, "largest_bytes");
	split_free(text, allocator, arena);
	if (largest != CUF_UNKNOWN && sane_number(text, "whole") == 0)
		allocator->largest_free =
			(struct fact_layer){ largest, "lower bound, part of the heap was read" };
	else if (largest != CUF_UNKNOWN)
		allocator->largest_free =
			(struct fact_layer){ largest, "exact, allocator's statistics" };
	else if (sane_number(text, "top_bytes") != CUF_UNKNOWN)
		allocator->largest_free = (struct fact_layer){ sane_number(text, "top_bytes"),
							       "lower bound, top of the heap" };
}

/* ---- jemalloc: slabs, and free extents by page class ---- */

/* The smallest extent of this class: four classes per doubling. */
static uint64_t page_class_bytes(uint64_t class, uint64_t page_bytes)
{
	if (class < 4)
		return (class + 1) * page_bytes;
	if (class >= 4 * 50)
		return 0;
	return ((4 + class % 4 + 1) << (class / 4 - 1)) * page_bytes;
}

/* A class has only the sum of its extents. If all others are as small as the class allows, the rest
 * is the largest one: an upper bound, and exact for a single extent. */
static void read_extents(const char *text, const char *family, struct fact_allocator *allocator,
			 uint64_t page_bytes, struct fact_free_class *classes)
{
	struct key_class entry;
	for (const char *at = text;
	     allocator->free_count < 512 && key_next_class(&at, family, &entry);) {
		uint64_t least = page_class_bytes(entry.class, page_bytes), others = 0, largest;
		const char *basis = "upper bound, allocator's statistics";
		if (!entry.first || __builtin_mul_overflow(entry.first - 1, least, &others) ||
		    others > entry.second)
			continue;
		largest = entry.second - others;
		if (entry.first == 1)
			basis = "exact, allocator's statistics";
		classes[allocator->free_count++] =
			(struct fact_free_class){ least, entry.first, entry.second };
		if (allocator->largest_free.bytes == CUF_UNKNOWN ||
		    largest > allocator->largest_free.bytes)
			allocator->largest_free = (struct fact_layer){ largest, basis };
	}
}

static void read_jemalloc(const char *text, struct fact_allocator *allocator, struct arena *arena)
{
	uint64_t page_bytes = sane_number(text, "page_bytes");
	struct fact_free_class *classes = arena_zeroed(arena, 512, sizeof *classes);
	struct fact_slab *slabs = arena_zeroed(arena, 64, sizeof *slabs);
	struct key_class entry;
	if (page_bytes != CUF_UNKNOWN && page_bytes < 1u << 24) {
		allocator->largest_free =
			(struct fact_layer){ 0, "exact, allocator's statistics" };
		read_extents(text, "extent", allocator, page_bytes, classes);
		read_extents(text, "retained", allocator, page_bytes, classes);
	}
	allocator->free = classes;
	for (const char *at = text;
	     allocator->slab_count < 64 && key_next_class(&at, "slab", &entry);)
		slabs[allocator->slab_count++] =
			(struct fact_slab){ entry.class, entry.first, entry.second };
	allocator->slabs = slabs;
}

/* ---- all ---- */

/* All families store these keys. What a family has beyond them needs its terms. */
static void read_figures(const char *text, struct fact_allocator *allocator, struct arena *arena)
{
	const struct {
		const char *key;
		uint64_t *to;
	} rows[] = {
		{ "system_bytes", &allocator->system_bytes },
		{ "live_bytes", &allocator->live_bytes },
		{ "cached_bytes", &allocator->cached_bytes },
		{ "scattered_bytes", &allocator->fragmented_bytes },
		{ "own_bytes", &allocator->own_bytes },
		{ "retained_bytes", &allocator->retained_bytes },
		{ "thread_cached_bytes", &allocator->thread_cached_bytes },
		{ "mapped_bytes", &allocator->mapped_bytes },
		{ "arena_count", &allocator->arena_count },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		*rows[i].to = sane_number(text, rows[i].key);
	if (allocator->cached_bytes != CUF_UNKNOWN)
		allocator->split_basis = BASIS_OBSERVED;
	if (!strcmp(allocator->name, "glibc"))
		read_glibc(text, allocator, arena);
	else if (!strcmp(allocator->name, "jemalloc"))
		read_jemalloc(text, allocator, arena);
}

const struct fact_allocator allocator_unknown = {
	.role = ALLOCATOR_PROCESS,
	.time_ns = CUF_UNKNOWN,
	.system_bytes = CUF_UNKNOWN,
	.live_bytes = CUF_UNKNOWN,
	.cached_bytes = CUF_UNKNOWN,
	.fragmented_bytes = CUF_UNKNOWN,
	.own_bytes = CUF_UNKNOWN,
	.retained_bytes = CUF_UNKNOWN,
	.thread_cached_bytes = CUF_UNKNOWN,
	.mapped_bytes = CUF_UNKNOWN,
	.top_bytes = CUF_UNKNOWN,
	.arena_count = CUF_UNKNOWN,
	.largest_free = { CUF_UNKNOWN, "" },
};

/* A text of the start names the allocator only, so all its figures stay unknown. */
static struct fact_allocator allocator_of(const struct fact_meta_text *text, struct arena *arena)
{
	struct fact_allocator allocator = allocator_unknown;

	allocator.name = copy_value(arena, text->text, "name");
	allocator.version = copy_value(arena, text->text, "version");
	allocator.object = copy_value(arena, text->text, "object");
	allocator.role = role_of(text->text);
	if (text->number == CUF_MOMENT_START ||
	    (key_number(text->text, "live_bytes") == CUF_UNKNOWN &&
	     key_number(text->text, "system_bytes") == CUF_UNKNOWN))
		return allocator;
	allocator.time_ns = text->time_ns;
	allocator.at_incident = text->number == CUF_MOMENT_INCIDENT;
	read_figures(text->text, &allocator, arena);
	return allocator;
}

static int by_role(const void *x, const void *y)
{
	const struct fact_allocator *left = x, *right = y;
	if (left->role != right->role)
		return compare_numbers(left->role, right->role);
	return strcmp(left->object, right->object);
}

/* No process has that many allocators, but a hostile recording may have a text of another one in
 * every record. */
enum { ALLOCATORS_MAX = 64 };

/* Read because a request failed then, and it has figures. */
static bool is_of_failure(const struct fact_meta_text *text, uint64_t failed_ns)
{
	return text->number == CUF_MOMENT_INCIDENT && failed_ns != CUF_UNKNOWN &&
	       text->time_ns >= failed_ns &&
	       (key_number(text->text, "live_bytes") != CUF_UNKNOWN ||
		key_number(text->text, "whole") == 1);
}

/*
 * Records that are written again are out of order, so their times decide. What was read because of
 * the failure is better than what was read after it: the program may have ended in between, and an
 * interpreter then freed everything.
 */
static bool is_better_text(const struct fact_meta_text *text, const struct fact_meta_text *than,
			   uint64_t failed_ns)
{
	if (!than)
		return true;
	if (is_of_failure(than, failed_ns))
		return is_of_failure(text, failed_ns) && text->time_ns < than->time_ns;
	return is_of_failure(text, failed_ns) || text->time_ns >= than->time_ns;
}

/* Later texts of an allocator replace earlier ones. */
struct fact_allocator *allocator_stats_of(const struct meta *meta, uint64_t time_ns,
					  uint64_t failed_ns, struct arena *arena, size_t *count)
{
	const struct fact_meta_text **texts = NULL;
	struct fact_allocator *kept;
	size_t room = 0;
	*count = 0;
	for (size_t i = 0; i < meta->text_count; i++) {
		const struct fact_meta_text *text = &meta->texts[i];
		size_t at = 0;
		if (text->type != CUF_META_ALLOCATOR || !in_time(text, time_ns))
			continue;
		while (at < *count && texts[at]->allocator != text->allocator)
			at++;
		if (at == ALLOCATORS_MAX)
			continue;
		if (at == *count) {
			xalloc_grow(&texts, *count, &room, sizeof *texts);
			texts[(*count)++] = NULL;
		}
		if (is_better_text(text, texts[at], failed_ns))
			texts[at] = text;
	}
	kept = arena_zeroed(arena, *count, sizeof *kept);
	for (size_t i = 0; i < *count; i++)
		kept[i] = allocator_of(texts[i], arena);
	if (*count)
		qsort(kept, *count, sizeof *kept, by_role);
	free(texts);
	return kept;
}

const struct fact_meta_text *allocator_stats_memory(const struct meta *meta, uint64_t time_ns,
						    uint64_t failed_ns)
{
	const struct fact_meta_text *found = NULL;
	for (size_t i = 0; i < meta->text_count; i++)
		if (meta->texts[i].type == CUF_META_MEMORY && in_time(&meta->texts[i], time_ns) &&
		    is_better_text(&meta->texts[i], found, failed_ns))
			found = &meta->texts[i];
	return found;
}

void allocator_stats_forget(struct fact_allocator *allocator)
{
	struct fact_allocator named = allocator_unknown;

	named.name = allocator->name;
	named.version = allocator->version;
	named.object = allocator->object;
	named.role = allocator->role;
	*allocator = named;
}
