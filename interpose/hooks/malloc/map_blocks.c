/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table decides which thread ends which map, since each change of it is made by one thread. The
 * ledger follows a moment later.
 */
#include "interpose/hooks/malloc/map_blocks.h"

#include "interpose/platform/options.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/malloc/allocator_stats.h"
#include "interpose/platform/laws.h"

#define PAGE 4096ull
#define LARGE_BYTES (256ull << 10)

/* In sampled mode, a smaller map would be counted as a sample that stands for many. */
uint64_t cuf_maps_bytes_min(void)
{
	if (!cuf_options.mmap)
		return LARGE_BYTES;
	return cuf_options.host == CUF_HOST_SAMPLED ? CUF_SAMPLE_EXACT_BYTES : PAGE;
}

/* ---- blocks ---- */

static uint64_t address_of(struct cuf_map map)
{
	static const uint8_t offsets[CUF_MAP_KINDS] = {
		[CUF_MAP_ANONYMOUS] = CUF_MAP_ANONYMOUS_OFFSET,
		[CUF_MAP_FILE] = CUF_MAP_FILE_OFFSET,
		[CUF_MAP_SHARED] = CUF_MAP_SHARED_OFFSET,
	};

	return map.start + offsets[cuf_map_kind(map)];
}

/* The words of its block in the ledger. */
static struct cuf_host_undo words_of(struct cuf_map map)
{
	return (struct cuf_host_undo){
		.word0 = cuf_host_block_word0(address_of(map), map.block & (CUF_MAP_HAS_BLOCK - 1)),
		.word1 = cuf_host_word1(map.stack, cuf_map_bytes(map)),
	};
}

static bool is_same(struct cuf_host_undo a, struct cuf_host_undo b)
{
	return a.word0 == b.word0 && a.word1 == b.word1;
}

static void record_free(struct cuf_map map, struct cuf_host_undo *undo)
{
	undo->word0 = 0;
	cuf_host_record_free((void *)(uintptr_t)address_of(map), CUF_HOST_MUNMAP, undo);
}

/* The map left the table. */
static void end_block(struct cuf_map map)
{
	struct cuf_host_undo undo;
	if (cuf_map_kind(map) == CUF_MAP_ARENA)
		cuf_python_arena(-(int64_t)cuf_map_bytes(map));
	else if (map.block & CUF_MAP_HAS_BLOCK)
		record_free(map, &undo);
}

/* True while the table has this very map. */
static bool is_in_table(struct cuf_map map)
{
	struct cuf_map now;
	return cuf_map_find(map.start, &now) && now.start == map.start && now.end == map.end &&
	       now.stack == map.stack && now.block == map.block;
}

/*
 * The table has a map that was there before, or a piece of one: the block gets the stack and time
 * of the whole. Another thread that has ended the map meanwhile found no block to free.
 */
static void restore_block(struct cuf_map map)
{
	const struct cuf_host_undo words = words_of(map);
	struct cuf_host_undo undo;
	if (cuf_map_kind(map) == CUF_MAP_ARENA)
		cuf_python_arena((int64_t)cuf_map_bytes(map));
	if (!(map.block & CUF_MAP_HAS_BLOCK))
		return;
	cuf_host_restore(&words);
	if (is_in_table(map))
		return;
	record_free(map, &undo);
	if (undo.word0 && !is_same(undo, words)) /* of who has the addresses now */
		cuf_host_restore(&undo);
}

/* Takes the small part of a reservation that holds this address. */
static bool take_small(uint64_t addr, struct cuf_map *small)
{
	return cuf_map_find(addr, small) && small->start <= addr &&
	       cuf_map_kind(*small) == CUF_MAP_SMALL &&
	       cuf_map_cut(small->start, small->end, 0, small);
}

/* Unites it with its small neighbours. */
static struct cuf_map with_neighbours(struct cuf_map map)
{
	uint64_t bytes_min = cuf_maps_bytes_min();
	struct cuf_map small;
	if (take_small(map.start - PAGE, &small))
		map.start = small.start;
	if (cuf_map_bytes(map) < bytes_min && take_small(map.end, &small))
		map.end = small.end;
	if (cuf_map_bytes(map) >= bytes_min)
		map = cuf_map_make(map.start, map.end, CUF_MAP_ANONYMOUS);
	return map;
}

void cuf_maps_add(uint64_t start, uint64_t end, enum cuf_map_kind kind, const void *frame)
{
	struct cuf_map map = cuf_map_make(start, end, kind);
	struct cuf_host_undo words = { 0, 0 };
	if (kind == CUF_MAP_SMALL)
		map = with_neighbours(map);
	else if (cuf_map_is_memory(map) && end - start < cuf_maps_bytes_min())
		return;
	if (cuf_map_is_memory(map) && kind != CUF_MAP_ARENA)
		cuf_host_record_map(address_of(map), cuf_map_bytes(map), frame, &words);
	if (words.word0) {
		map.stack = cuf_host_stack(words.word1);
		map.block |= CUF_MAP_HAS_BLOCK | cuf_host_birth(words.word0);
	}
	if (!cuf_map_add(map))
		end_block(map); /* nobody could free it */
	if (kind == CUF_MAP_ARENA)
		cuf_python_arena((int64_t)cuf_map_bytes(map));
}

/* ---- removing and restoring ---- */

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t earlier(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Ends the range of one map. false: none is there. */
static bool cut(uint64_t start, uint64_t end, struct cuf_map *taken)
{
	uint64_t bytes_min = cuf_maps_bytes_min();
	struct cuf_map piece;
	if (!cuf_map_cut(start, end, bytes_min, taken))
		return false;
	end_block(*taken);
	piece = *taken;
	piece.end = start;
	if (taken->start < start && cuf_map_bytes(piece) >= bytes_min)
		restore_block(piece);
	piece = *taken;
	piece.start = end;
	if (taken->end > end && cuf_map_bytes(piece) >= bytes_min)
		restore_block(piece);
	return true;
}

static void keep(struct cuf_maps_removed *removed, struct cuf_map map)
{
	removed->was_reserved |= !cuf_map_is_memory(map) && cuf_map_kind(map) != CUF_MAP_VIEW;
	if (removed->count < CUF_MAPS_REMOVED_MAX)
		removed->maps[removed->count++] = map;
}

void cuf_maps_remove(uint64_t start, uint64_t end, struct cuf_maps_removed *removed)
{
	struct cuf_map taken;
	removed->count = 0;
	removed->was_reserved = false;
	while (start < end && cut(start, end, &taken)) {
		keep(removed, taken);
		start = taken.end;
	}
}

void cuf_maps_restore(const struct cuf_maps_removed *removed)
{
	for (unsigned i = 0; i < removed->count; i++) {
		struct cuf_map map = removed->maps[i], piece;
		while (cuf_map_cut(map.start, map.end, 0, &piece))
			end_block(piece);
		if (cuf_map_add(map))
			restore_block(map);
	}
}

void cuf_maps_take_over(uint64_t start, uint64_t end, struct cuf_map ended)
{
	struct cuf_map map;
	if (!cuf_map_find(start, &map) || cuf_map_kind(map) != CUF_MAP_VIEW ||
	    !cuf_map_cut(start, end, 0, &map))
		return;
	map.start = later(start, map.start);
	map.end = earlier(end, map.end);
	map.stack = ended.stack;
	map.block = ended.block;
	if (cuf_map_bytes(map) >= cuf_maps_bytes_min() && cuf_map_add(map))
		restore_block(map);
}

/* ---- reservations ---- */

/* Where two threads do this at the same time, each part is taken by one. */
void cuf_maps_commit(uint64_t start, uint64_t end, const void *frame)
{
	struct cuf_map map;
	while (start < end && cuf_map_find(start, &map) && map.start < end) {
		uint64_t from = later(start, map.start), to = earlier(end, map.end);
		if (cuf_map_kind(map) == CUF_MAP_RESERVED && cut(from, to, &map)) {
			from = later(from, map.start);
			to = earlier(to, map.end);
			cuf_maps_add(from, to, to - from < cuf_maps_bytes_min()
						       ? CUF_MAP_SMALL : CUF_MAP_ANONYMOUS, frame);
		}
		start = to;
	}
}

void cuf_maps_decommit(uint64_t start, uint64_t end, struct cuf_maps_removed *removed)
{
	struct cuf_map map;
	removed->count = 0;
	removed->was_reserved = false;
	while (start < end && cuf_map_find(start, &map) && map.start < end) {
		uint64_t from = later(start, map.start), to = earlier(end, map.end);
		enum cuf_map_kind kind = cuf_map_kind(map);
		if ((kind == CUF_MAP_ANONYMOUS || kind == CUF_MAP_SMALL) && cut(from, to, &map)) {
			keep(removed, map);
			cuf_map_add(cuf_map_make(from, to, CUF_MAP_RESERVED));
		}
		start = to;
	}
}

/* ---- statistics ---- */

static uint64_t advised_bytes, advised_count; /* pages released while their map stayed */

void cuf_maps_advised(uint64_t bytes)
{
	__atomic_fetch_add(&advised_bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&advised_count, 1, __ATOMIC_RELAXED);
}

/* Key names are older than the words of today: given_back is what madvise released. */
void cuf_maps_stats(struct cuf_text *text)
{
	struct cuf_map_sums sums;
	if (!cuf_options.mmap && !cuf_options.large_maps)
		return;
	cuf_map_sum(&sums);
	cuf_stats_add(text, "mapped_anonymous_bytes", sums.bytes[CUF_MAP_ANONYMOUS]);
	cuf_stats_add(text, "mapped_anonymous_count", sums.count[CUF_MAP_ANONYMOUS]);
	cuf_stats_add(text, "mapped_file_bytes", sums.bytes[CUF_MAP_FILE]);
	cuf_stats_add(text, "mapped_file_count", sums.count[CUF_MAP_FILE]);
	cuf_stats_add(text, "mapped_shared_bytes", sums.bytes[CUF_MAP_SHARED]);
	cuf_stats_add(text, "mapped_shared_count", sums.count[CUF_MAP_SHARED]);
	cuf_stats_add(text, "python_arena_bytes", sums.bytes[CUF_MAP_ARENA]);
	cuf_stats_add(text, "python_arena_count", sums.count[CUF_MAP_ARENA]);
	cuf_stats_add(text, "given_back_bytes", __atomic_load_n(&advised_bytes, __ATOMIC_RELAXED));
	cuf_stats_add(text, "given_back_count", __atomic_load_n(&advised_count, __ATOMIC_RELAXED));
}
