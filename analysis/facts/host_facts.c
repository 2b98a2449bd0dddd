/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct fact_host beyond malloc's live blocks: what the allocators' own books say, what resident memory is made of,
 * whether free memory inside the allocator is fragmented or only cached, who pins it, and what would give it back.
 */
#include "analysis/facts/build.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/host/host_books.h"
#include "analysis/host/host_pins.h"
#include "analysis/base/key_values.h"

enum { PINS_MAX = 8, ARENAS_MANY = 8 };
#define NOTABLE_BYTES (16ull << 20) /* below this nobody looks for where memory went */
#define NOTABLE_SHARE 0.3           /* of what the allocator holds */
#define ARENA_BYTES_OLD (256ull << 10) /* CPython's arenas to 3.9, */
#define ARENA_BYTES (1ull << 20)       /* and from 3.10 on */

const char *const host_part_names[PART_MAX] = { "malloc_live", "fragmented", "cached", "allocator", "python_arenas", "maps", "other",
	"stack", "files", "files_private", "shared", "recorder" };
const char *const host_verdict_names[HOST_VERDICT_MAX] = { "", "fine", "fragmented", "cached" };
const char *const host_fix_names[FIX_MAX] = { "malloc_trim", "MALLOC_ARENA_MAX", "separate", "jemalloc", "decay" };

static uint64_t or_zero(uint64_t n) { return n == CUF_UNKNOWN ? 0 : n; }

/* ---- maps ---- */

struct map_sums { struct build *b; uint32_t process; struct fact_maps maps; };

/* Of the right size, and made by the interpreter: its innermost frame is in python or libpython. */
static bool is_python_arena(const struct map_sums *s, const struct host_map *map)
{
	const struct fact_process *p = &s->b->facts->processes[s->process];
	const struct reader *r = s->b->run->processes[s->process].reader;
	const struct fact_module *m;
	const char *slash;
	uint32_t depth;
	uint8_t stop;
	const uint64_t *frames = reader_stack(r, map->stack, &depth, &stop);
	if (map->file || (map->bytes != ARENA_BYTES && map->bytes != ARENA_BYTES_OLD) || !depth)
		return false;
	m = fact_module_at(p, frames[0], CUF_UNKNOWN);
	slash = m ? strrchr(m->path, '/') : NULL;
	return slash && (!strncmp(slash + 1, "python", 6) || !strncmp(slash + 1, "libpython", 9));
}

static void add_map(void *context, const struct host_map *map, int sign)
{
	struct map_sums *s = context;
	uint64_t bytes = sign > 0 ? map->bytes : -map->bytes, one = sign > 0 ? 1 : UINT64_MAX;
	*(map->file ? &s->maps.file_bytes : &s->maps.anonymous_bytes) += bytes;
	*(map->file ? &s->maps.file_count : &s->maps.anonymous_count) += one;
	if (is_python_arena(s, map)) {
		s->maps.python_bytes += bytes;
		s->maps.python_count += one;
	}
}

static void take_off(uint64_t *figure, uint64_t bytes)
{
	if (*figure != CUF_UNKNOWN)
		*figure = *figure > bytes ? *figure - bytes : 0;
}

/* Maps are host blocks in the recording; in the report malloc is malloc. */
static void fill_maps(struct build *b, uint32_t process, const char *memory, struct fact_host *h)
{
	struct map_sums s = { b, process, { 0 } };
	uint64_t bytes, count;
	h->maps = (struct fact_maps){ CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN };
	host_maps_each(b->run->processes[process].reader, host_time_of(b, process), add_map, &s);
	bytes = s.maps.anonymous_bytes + s.maps.file_bytes;
	count = s.maps.anonymous_count + s.maps.file_count;
	if (!count && key_number(memory, "mapped_anonymous_bytes") == CUF_UNKNOWN)
		return;
	h->maps = s.maps;
	h->maps.given_back_bytes = key_number(memory, "given_back_bytes");
	take_off(&h->malloc_live_bytes, bytes);
	take_off(&h->malloc_low_bytes, bytes);
	take_off(&h->malloc_high_bytes, bytes);
	take_off(&h->malloc_live_count, count);
	take_off(&h->malloc_low_count, count);
	take_off(&h->malloc_high_count, count);
}

/* ---- what is resident ---- */

struct rows { struct fact_host_row *items; size_t count; };

static void add_row(struct rows *rows, enum fact_host_part part, uint64_t bytes, enum fact_basis basis)
{
	if (bytes && bytes != CUF_UNKNOWN)
		rows->items[rows->count++] = (struct fact_host_row){ part, bytes, basis };
}

/* At most what is left. */
static uint64_t take(uint64_t *left, uint64_t bytes)
{
	bytes = bytes < *left ? bytes : *left;
	*left -= bytes;
	return bytes;
}

/*
 * Anonymous memory: the allocator's figures are of addresses, of which some were never touched. So where they are more than is
 * resident, blocks with a map of their own give way first, then what is free, then the rest.
 */
static void add_anonymous(struct rows *rows, uint64_t resident, const struct fact_allocator *a, const struct fact_host *h)
{
	bool counts = a && a->live_bytes != CUF_UNKNOWN; /* itself; else what we recorded of it is live */
	uint64_t live = counts ? a->live_bytes : or_zero(h->malloc_live_bytes), cached = a ? or_zero(a->cached_bytes) : 0, own = a ? or_zero(a->own_bytes) : 0;
	uint64_t fragmented = a ? or_zero(a->fragmented_bytes) : 0, mapped = a ? or_zero(a->mapped_bytes) : 0, left = resident, excess, cut;
	enum fact_basis basis = counts ? BASIS_OBSERVED : h->malloc_basis, split;
	const struct fact_maps *maps = &h->maps;
	if (live + cached + own + fragmented > resident) {
		excess = live + cached + own + fragmented - resident;
		cut = mapped < excess ? mapped : excess;
		live -= cut < live ? cut : live;
		excess -= cut;
		cached -= excess < cached ? excess : cached;
		basis = BASIS_ESTIMATED;
	}
	split = a && a->split_basis == BASIS_ESTIMATED ? BASIS_ESTIMATED : basis;
	add_row(rows, PART_LIVE, take(&left, live), basis);
	add_row(rows, PART_FRAGMENTED, take(&left, fragmented), split);
	add_row(rows, PART_CACHED, take(&left, cached), split);
	add_row(rows, PART_ALLOCATOR, take(&left, own), basis);
	if (maps->anonymous_bytes != CUF_UNKNOWN) {
		uint64_t python = take(&left, maps->python_bytes);
		add_row(rows, PART_PYTHON, python, BASIS_INFERRED);
		add_row(rows, PART_MAPS, take(&left, maps->anonymous_bytes - maps->python_bytes), BASIS_ESTIMATED);
	}
	add_row(rows, PART_OTHER, left, BASIS_OBSERVED);
}

static void fill_rows(struct build *b, const char *memory, const struct fact_allocator *a, struct fact_host *h)
{
	struct rows rows = { arena_zeroed(b->arena, PART_MAX, sizeof *rows.items), 0 };
	h->swap_bytes = key_number(memory, "swap_bytes");
	if (key_number(memory, "whole") != 1)
		return;
	h->mapped_file_bytes = key_number(memory, "file_bytes");
	add_anonymous(&rows, or_zero(key_number(memory, "heap_bytes")) + or_zero(key_number(memory, "anonymous_bytes")), a, h);
	add_row(&rows, PART_STACK, key_number(memory, "stack_bytes"), BASIS_OBSERVED);
	add_row(&rows, PART_FILES, h->mapped_file_bytes, BASIS_OBSERVED);
	add_row(&rows, PART_FILES_PRIVATE, key_number(memory, "file_private_bytes"), BASIS_OBSERVED);
	add_row(&rows, PART_SHARED, key_number(memory, "shared_bytes"), BASIS_OBSERVED);
	add_row(&rows, PART_RECORDER, key_number(memory, "recorder_bytes"), BASIS_OBSERVED);
	h->rows = rows.items;
	h->row_count = rows.count;
	h->rss_bytes = 0; /* of that moment, to the byte, so that the rows sum to it */
	for (size_t i = 0; i < rows.count; i++)
		h->rss_bytes += rows.items[i].bytes;
	if (h->rss_peak_bytes == CUF_UNKNOWN || h->rss_peak_bytes < h->rss_bytes)
		h->rss_peak_bytes = h->rss_bytes;
}

/* ---- the verdict ---- */

static enum fact_host_verdict judge(const struct fact_allocator *a)
{
	uint64_t held, cached, fragmented;
	if (!a || a->live_bytes == CUF_UNKNOWN || a->fragmented_bytes == CUF_UNKNOWN)
		return HOST_UNKNOWN;
	cached = or_zero(a->cached_bytes);
	fragmented = a->fragmented_bytes;
	held = a->live_bytes + cached + fragmented;
	if (fragmented >= cached && fragmented >= NOTABLE_BYTES && (double)fragmented >= NOTABLE_SHARE * (double)held)
		return HOST_FRAGMENTED;
	return cached >= NOTABLE_BYTES && (double)cached >= NOTABLE_SHARE * (double)held ? HOST_CACHED : HOST_FINE;
}

static void fill_advice(struct build *b, const struct fact_allocator *a, struct fact_host *h)
{
	struct fact_host_advice *advice = arena_zeroed(b->arena, FIX_MAX, sizeof *advice);
	bool glibc = a && !strcmp(a->name, "glibc");
	h->advice = advice;
	if (h->verdict != HOST_FRAGMENTED && h->verdict != HOST_CACHED)
		return;
	if (h->verdict == HOST_FRAGMENTED)
		advice[h->advice_count++] = (struct fact_host_advice){ FIX_SEPARATE, a->fragmented_bytes };
	if (glibc && a->cached_bytes >= NOTABLE_BYTES)
		advice[h->advice_count++] = (struct fact_host_advice){ FIX_TRIM, a->cached_bytes };
	if (glibc && a->arena_count != CUF_UNKNOWN && a->arena_count >= ARENAS_MANY)
		advice[h->advice_count++] = (struct fact_host_advice){ FIX_ARENAS, CUF_UNKNOWN };
	if (glibc && h->verdict == HOST_FRAGMENTED)
		advice[h->advice_count++] = (struct fact_host_advice){ FIX_JEMALLOC, CUF_UNKNOWN };
	if (!strcmp(a->name, "jemalloc") && h->verdict == HOST_CACHED)
		advice[h->advice_count++] = (struct fact_host_advice){ FIX_DECAY, a->cached_bytes };
}

static void fill_pins(struct build *b, uint32_t process, uint64_t fragmented_bytes, struct fact_host *h)
{
	const struct reader *r = b->run->processes[process].reader;
	struct host_means means = host_means_of(r, &b->run->processes[process].meta);
	struct fact_host_pin *kept;
	struct host_pin *pins;
	size_t count = host_pins_find(r, &means, fragmented_bytes, PINS_MAX, &pins);
	h->pins = kept = arena_zeroed(b->arena, count, sizeof *kept);
	h->pin_count = count;
	for (size_t i = 0; i < count; i++) {
		kept[i] = (struct fact_host_pin){ .stack = { .process = process, .id = pins[i].stack }, .open_bytes = pins[i].open_bytes,
			.bytes = pins[i].bytes, .count = pins[i].count,
			.basis = r->header.options_host_mode == CUF_HOST_SAMPLED ? BASIS_ESTIMATED : BASIS_OBSERVED };
		stack_fill(b, &kept[i].stack, r->header.start_ns);
	}
	free(pins);
}

/* ---- all ---- */

static uint64_t books_time(const struct build *b, uint32_t process)
{
	uint64_t monotonic_ns = host_time_of(b, process);
	return monotonic_ns == CUF_UNKNOWN ? CUF_UNKNOWN : reader_realtime(b->run->processes[process].reader, monotonic_ns);
}

static void fill_host(struct build *b, uint32_t process)
{
	struct fact_host *h = &b->facts->processes[process].host;
	const struct meta *meta = &b->run->processes[process].meta;
	uint64_t time_ns = books_time(b, process);
	const char *memory = host_books_memory(meta, time_ns);
	const struct fact_allocator *own;
	h->allocators = host_books_allocators(meta, time_ns, b->arena, &h->allocator_count);
	own = h->allocator_count && h->allocators[0].role == ALLOCATOR_PROCESS ? h->allocators : NULL;
	h->swap_bytes = CUF_UNKNOWN;
	if (own)
		h->allocator = arena_format(b->arena, "%s%s%s", own->name, *own->version ? " " : "", own->version);
	fill_maps(b, process, memory, h);
	if (memory)
		fill_rows(b, memory, own && own->time_ns != CUF_UNKNOWN ? own : NULL, h);
	h->verdict = judge(own);
	fill_advice(b, own, h);
	if (h->verdict == HOST_FRAGMENTED)
		fill_pins(b, process, own->fragmented_bytes, h);
}

static struct fact_layer host_layer(const struct build *b, uint32_t process, uint64_t time_ns)
{
	size_t count;
	const struct fact_allocator *a = host_books_allocators(&b->run->processes[process].meta, time_ns, b->arena, &count);
	return count && a->role == ALLOCATOR_PROCESS ? a->largest_free : (struct fact_layer){ CUF_UNKNOWN, "" };
}

void build_host(struct build *build)
{
	struct facts *facts = build->facts;
	for (uint32_t p = 0; p < build->run->count; p++)
		fill_host(build, p);
	for (size_t i = 0; i < facts->device_count; i++)
		facts->devices[i].largest_free[LAYER_HOST] = host_layer(build, facts->devices[i].focus, books_time(build, facts->devices[i].focus));
	for (size_t i = 0; i < facts->incident_count; i++)
		facts->incidents[i].largest_free[LAYER_HOST] = host_layer(build, facts->incidents[i].process, facts->incidents[i].time_ns);
}
