/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Knows glibc's arenas and chunks: struct malloc_state, heap_info and malloc_par as they have been
 * since 2.27 (safe-linking of fast bins since 2.32). Everything is checked before it is believed.
 *
 * A chunk is a head word (its size; bit 0: the chunk before is in use) behind one word of the chunk
 * before. So a heap is walked from chunk to chunk, and a chunk is free when its successor has that
 * bit clear. Chunks in fast bins look used; they are counted by following the bins. Those in the
 * caches of threads count as used, as in malloc_info.
 */
#include "interpose/hooks/malloc/glibc_heap.h"

#include <string.h>
#include <sys/uio.h>
#include "interpose/abi/format.h"
#include "interpose/platform/clock.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

enum {
	WORD = 8,
	CHUNK_MIN = 32,
	BINS = 127,                 /* bin 0 does not exist */
	FAST_BINS = 10,
	ARENAS_MAX = 1024,
	HEAPS_MAX = 1024,           /* of one arena */
	LOOK_AT_CLOCK = 256,        /* chunks */
	/* offsets in struct malloc_state */
	AT_FAST = 16, AT_TOP = 96, AT_BINS = 112, AT_NEXT = 2160, AT_SYSTEM = 2184,
	ARENA_BYTES = 2200,
	/* offsets in heap_info */
	AT_PREVIOUS = 8, AT_HEAP_BYTES = 16,
};
#define HEAP_BYTES_MAX ((uintptr_t)64 << 20) /* of a thread's arena: the heaps' alignment */
#define SIZE_MASK (~(uint64_t)7)

/* ---- reading ---- */

static struct {
	uintptr_t start;
	size_t bytes;
	_Alignas(16) uint8_t data[16384];
} window;
static uint64_t deadline_ns;

/* Fills the window from `at` on, as far as memory is mapped. */
static bool load_window(uintptr_t at)
{
	struct iovec to = { window.data, sizeof window.data }, from = { (void *)at, to.iov_len };
	long self = cuf_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
	long got = cuf_sys(SYS_process_vm_readv, self, (long)&to, 1, (long)&from, 1, 0);
	window.start = at;
	window.bytes = got > 0 ? (size_t)got : 0;
	return got > 0;
}

static bool read_word(uintptr_t at, uint64_t *out)
{
	if (at % WORD)
		return false;
	if (at - window.start >= window.bytes && !load_window(at))
		return false;
	memcpy(out, window.data + (at - window.start), WORD);
	return true;
}

static uint64_t word_at(uintptr_t at)
{
	uint64_t word = 0;
	if (!read_word(at, &word))
		return 0;
	return word;
}

static bool is_late(void) { return cuf_now_ns() > deadline_ns; }

/* ---- where the arenas are ---- */

/* The ring of arenas: the main one only, or one of a thread, behind the head of its heap. */
static bool is_next_arena(uintptr_t main, uintptr_t at)
{
	uintptr_t heap = at & ~(HEAP_BYTES_MAX - 1);
	return at == main || (heap && at - heap < ARENA_BYTES && word_at(heap) == at);
}

/* An empty bin points to itself, two words before its place in the table. Most are empty. */
static bool is_main_arena(uintptr_t at)
{
	unsigned own = 0;
	for (unsigned bin = 1; bin < BINS; bin++) {
		uintptr_t head = at + AT_BINS + 2 * WORD * (bin - 1) - 2 * WORD;
		if (word_at(head + 2 * WORD) == head)
			own++;
	}
	return own > BINS / 2 && word_at(at + AT_SYSTEM) &&
	       is_next_arena(at, word_at(at + AT_NEXT));
}

/* Any bin may be in use, but hardly all of these. */
static bool has_sign(uintptr_t at)
{
	static const uint8_t bins[] = { 2, 31, 59, 63, 90, 126 };
	for (unsigned i = 0; i < sizeof bins; i++) {
		uintptr_t head = at + AT_BINS + 2 * WORD * (bins[i] - 1u) - 2 * WORD;
		if (word_at(head + 2 * WORD) == head)
			return true;
	}
	return false;
}

static uintptr_t find_main_arena(uintptr_t start, uintptr_t end)
{
	for (uintptr_t at = start; at + ARENA_BYTES <= end; at += WORD)
		if (has_sign(at) && is_main_arena(at))
			return at;
	return 0;
}

/*
 * The end of malloc_par: ..., int mmap count, int its maximum (65536), ..., mapped bytes, their
 * maximum, start of the heap. Between the two are one or two more ints, by version.
 */
static void find_mapped(uintptr_t start, uintptr_t end, uintptr_t heap, struct cuf_glibc_heap *out)
{
	enum { COUNT_MAX = 65536 };
	for (uintptr_t at = start + 5 * WORD; at + WORD <= end; at += WORD) {
		uint64_t before = word_at(at - 4 * WORD), earlier = word_at(at - 5 * WORD);
		if (word_at(at) != heap)
			continue;
		if (before >> 32 == COUNT_MAX)
			out->mapped_count = (uint32_t)before;
		else if ((uint32_t)before == COUNT_MAX)
			out->mapped_count = earlier >> 32;
		else
			continue;
		out->mapped_bytes = word_at(at - 2 * WORD);
		return;
	}
}

/* ---- one heap ---- */

static void count_free(uint64_t bytes, struct cuf_glibc_heap *out)
{
	unsigned class = 63u - (unsigned)__builtin_clzll(bytes);
	if (class >= CUF_HEAP_CLASSES)
		class = CUF_HEAP_CLASSES - 1;
	out->class_count[class]++;
	out->class_bytes[class] += bytes;
	out->free_bytes += bytes;
	if (bytes > out->largest_bytes)
		out->largest_bytes = bytes;
}

/* From the first chunk to the top, or to the small chunks that close a full heap. Returns how far
 * it came; *closed: it came to the end. */
static uintptr_t walk_heap(uintptr_t at, uintptr_t end, uintptr_t top, bool *closed,
			   struct cuf_glibc_heap *out)
{
	uint64_t head, before = 0;
	*closed = false;
	for (unsigned chunks = 1; at + 2 * WORD <= end; chunks++) {
		uint64_t bytes;
		if (!read_word(at + WORD, &head))
			return at;
		bytes = head & SIZE_MASK;
		if (before && !(head & 1))
			count_free(before, out);
		if (at == top || bytes < CHUNK_MIN) {
			*closed = at == top || end - at <= 4 * WORD;
			return at;
		}
		if (bytes > end - at || (chunks % LOOK_AT_CLOCK == 0 && is_late()))
			return at;
		before = bytes;
		at += bytes;
	}
	*closed = at == end;
	return at;
}

/* Chunks that wait for their next use. Their links are disguised by their own addresses. */
static void count_fast_bins(uintptr_t arena, struct cuf_glibc_heap *out)
{
	for (unsigned bin = 0; bin < FAST_BINS; bin++) {
		uint64_t expected = CHUNK_MIN + bin * 2ull * WORD;
		uintptr_t at = word_at(arena + AT_FAST + bin * WORD);
		for (unsigned chunks = 1; at; chunks++) {
			if ((word_at(at + WORD) & SIZE_MASK) != expected ||
			    (chunks % LOOK_AT_CLOCK == 0 && is_late())) {
				out->whole = false;
				return;
			}
			count_free(expected, out);
			at = word_at(at + 2 * WORD) ^ (at + 2 * WORD) >> 12;
		}
	}
}

/* ---- one arena ---- */

struct arena {
	uintptr_t at, top, first_chunk;
	uint64_t top_bytes, system_bytes;
	uint64_t walked_bytes;
};

static void walk_part(struct arena *arena, uintptr_t from, uintptr_t to, struct cuf_glibc_heap *out)
{
	bool closed;
	uintptr_t reached = walk_heap(from, to, arena->top, &closed, out);
	arena->walked_bytes += reached - from;
	out->whole &= closed;
}

/* Heaps of a thread's arena: the newest holds the top, and each has the address of the one before.
 * The arena itself is in the first, behind the head of the heap. */
static void walk_thread_heaps(struct arena *arena, struct cuf_glibc_heap *out)
{
	uintptr_t first = arena->at & ~(HEAP_BYTES_MAX - 1);
	uintptr_t heap = arena->top & ~(HEAP_BYTES_MAX - 1);
	uintptr_t head_bytes = arena->at - first;
	for (unsigned i = 0; heap && i < HEAPS_MAX; i++) {
		uint64_t bytes = word_at(heap + AT_HEAP_BYTES);
		uintptr_t chunk = heap + head_bytes;
		if (word_at(heap) != arena->at || bytes > HEAP_BYTES_MAX || (i && is_late())) {
			out->whole = false;
			return;
		}
		if (heap == first) /* a chunk's block is aligned to two words */
			chunk = (arena->at + ARENA_BYTES + 2 * WORD - 1) & ~(uintptr_t)15;
		walk_part(arena, chunk, heap + bytes, out);
		heap = word_at(heap + AT_PREVIOUS);
	}
}

/* What was not walked is taken to be like what was. */
static void scale_up(struct cuf_glibc_heap *found, const struct arena *arena)
{
	double ratio;

	if (found->whole || !arena->walked_bytes)
		return;
	ratio = (double)(arena->system_bytes - arena->top_bytes) / (double)arena->walked_bytes;
	if (ratio < 1)
		return;
	found->free_bytes = (uint64_t)((double)found->free_bytes * ratio);
	for (unsigned i = 0; i < CUF_HEAP_CLASSES; i++) {
		found->class_count[i] = (uint64_t)((double)found->class_count[i] * ratio);
		found->class_bytes[i] = (uint64_t)((double)found->class_bytes[i] * ratio);
	}
}

static void add_found(struct cuf_glibc_heap *out, const struct cuf_glibc_heap *found)
{
	out->whole &= found->whole;
	out->free_bytes += found->free_bytes;
	if (found->largest_bytes > out->largest_bytes)
		out->largest_bytes = found->largest_bytes;
	for (unsigned i = 0; i < CUF_HEAP_CLASSES; i++) {
		out->class_count[i] += found->class_count[i];
		out->class_bytes[i] += found->class_bytes[i];
	}
}

static void walk_arena(struct arena *arena, struct cuf_glibc_heap *out)
{
	static struct cuf_glibc_heap found; /* 1 KiB, too much for a stack */

	found = (struct cuf_glibc_heap){ .whole = true };
	if (arena->first_chunk)
		walk_part(arena, arena->first_chunk, arena->top + arena->top_bytes, &found);
	else
		walk_thread_heaps(arena, &found);
	scale_up(&found, arena);
	add_found(out, &found);
	out->arena_count++;
	out->system_bytes += arena->system_bytes;
	out->top_bytes += arena->top_bytes;
}

/* ---- all ---- */

static uintptr_t main_arena; /* of the process; found once */

static bool next_arena(struct arena *arena, struct cuf_glibc_heap *out)
{
	uintptr_t at = main_arena;
	if (out->arena_count)
		at = word_at(arena->at + AT_NEXT);
	if (!at || (out->arena_count && at == main_arena) || out->arena_count == ARENAS_MAX)
		return false;
	*arena = (struct arena){ .at = at, .top = word_at(at + AT_TOP),
				 .system_bytes = word_at(at + AT_SYSTEM) };
	if (!arena->system_bytes || !arena->top)
		return false;
	arena->top_bytes = word_at(arena->top + WORD) & SIZE_MASK;
	/* the heap began there, if nobody else moved the break */
	if (at == main_arena)
		arena->first_chunk = arena->top + arena->top_bytes - arena->system_bytes;
	return arena->top_bytes <= arena->system_bytes;
}

static unsigned count_arenas(void)
{
	unsigned count = 1;

	for (uintptr_t at = word_at(main_arena + AT_NEXT); at && at != main_arena;
	     at = word_at(at + AT_NEXT))
		if (++count == ARENAS_MAX)
			break;
	return count;
}

/*
 * Each arena has its share of the time that is left. Arenas differ: one may hold what lives, and
 * another what a thread has freed, so one cannot stand for the others.
 */
static uint64_t share_until_ns(uint64_t until_ns, uint64_t arenas_left)
{
	uint64_t now_ns = cuf_now_ns();

	if (now_ns >= until_ns)
		return until_ns;
	return now_ns + (until_ns - now_ns) / (arenas_left ? arenas_left : 1);
}

/* Each arena has one chunk that is in no bin. */
static void add_tops(struct cuf_glibc_heap *out, uint64_t top_bytes_max)
{
	out->free_bytes += out->top_bytes;
	if (top_bytes_max > out->largest_bytes)
		out->largest_bytes = top_bytes_max;
	out->free_count = out->arena_count;
	for (unsigned i = 0; i < CUF_HEAP_CLASSES; i++)
		out->free_count += out->class_count[i];
}

bool cuf_glibc_heap_read(uintptr_t start, uintptr_t end, uint64_t until_ns,
			 struct cuf_glibc_heap *out)
{
	struct arena arena = { .at = 0 };
	uint64_t top_bytes_max = 0, arenas;
	*out = (struct cuf_glibc_heap){ .whole = true, .mapped_bytes = CUF_UNKNOWN,
					.mapped_count = CUF_UNKNOWN };
	window.bytes = 0;
	start = (start + WORD - 1) & ~(uintptr_t)(WORD - 1);
	if (!main_arena)
		main_arena = find_main_arena(start, end);
	arenas = main_arena ? count_arenas() : 0;
	while (next_arena(&arena, out)) {
		if (arena.first_chunk)
			find_mapped(start, end, arena.first_chunk, out);
		deadline_ns = share_until_ns(until_ns, arenas - out->arena_count);
		walk_arena(&arena, out);
		if (arena.top_bytes > top_bytes_max)
			top_bytes_max = arena.top_bytes;
	}
	deadline_ns = until_ns;
	arena.at = main_arena;
	for (uint64_t i = 0; i < out->arena_count; i++, arena.at = word_at(arena.at + AT_NEXT))
		count_fast_bins(arena.at, out);
	add_tops(out, top_bytes_max);
	return out->arena_count != 0;
}
