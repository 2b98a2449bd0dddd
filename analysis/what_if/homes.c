/* SPDX-License-Identifier: Apache-2.0 */
/* See homes.h. Ranges and their free parts are trees by address; free parts are also one by size,
 * for "would another have fitted better". */
#include "analysis/what_if/homes.h"

#include <bsd/sys/tree.h>
#include <stdlib.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

#define SMALL_BLOCK_BYTES (1ull << 20) /* at most this: of the pool for small blocks */

enum {
	BETTER_MAX = 32,      /* free ranges that one request is compared with */
	CONFLICTS_MAX = 1 << 20,
	GROUPS_MAX = 1 << 12
};

struct range {
	RB_ENTRY(range) node;
	uint64_t addr, bytes;
	uint32_t home;
};
RB_HEAD(range_tree, range);

/* A free part of a segment. */
struct gap {
	RB_ENTRY(gap) by_addr, by_size;
	uint64_t addr, bytes;
	uint32_t home;
};
RB_HEAD(gap_tree, gap);
RB_HEAD(size_tree, gap);

struct home {
	uint16_t group;
	bool is_segment, is_small, is_private, is_reservation;
	uint32_t first_conflict; /* index + 1 in conflicts; 0: none */
};

/* Two homes of different groups; in the list of the later one. */
struct conflict { uint32_t with, next; };

struct homes {
	struct range_tree ranges, reservations;
	struct gap_tree gaps;
	struct size_tree sizes[2]; /* of segments for large and for small blocks */
	struct home *homes;
	size_t count, room;
	struct conflict *conflicts;
	size_t conflict_count, conflict_room;
	struct hash_index known; /* pairs */
};

static int range_order(const struct range *a, const struct range *b)
{
	return compare_numbers(a->addr, b->addr);
}

static int gap_order(const struct gap *a, const struct gap *b)
{
	return compare_numbers(a->addr, b->addr);
}

static int size_order(const struct gap *a, const struct gap *b)
{
	int order = compare_numbers(a->bytes, b->bytes);
	return order ? order : compare_numbers(a->addr, b->addr);
}

/* of the tree's functions some are not used */
#define UNUSED static __attribute__((unused))
RB_GENERATE_INTERNAL(range_tree, range, node, range_order, UNUSED)
RB_GENERATE_INTERNAL(gap_tree, gap, by_addr, gap_order, UNUSED)
RB_GENERATE_INTERNAL(size_tree, gap, by_size, size_order, UNUSED)

struct homes *homes_new(void)
{
	struct homes *homes = xalloc_zeroed(1, sizeof *homes);
	hash_index_init(&homes->known, 0);
	return homes;
}

static void ranges_free(struct range_tree *tree)
{
	for (struct range *range; (range = RB_ROOT(tree));) {
		RB_REMOVE(range_tree, tree, range);
		free(range);
	}
}

void homes_free(struct homes *homes)
{
	if (!homes)
		return;
	ranges_free(&homes->ranges);
	ranges_free(&homes->reservations);
	for (struct gap *gap; (gap = RB_ROOT(&homes->gaps));) {
		RB_REMOVE(gap_tree, &homes->gaps, gap);
		free(gap);
	}
	hash_index_fini(&homes->known);
	free(homes->homes);
	free(homes->conflicts);
	free(homes);
}

static struct range_tree *tree_of(struct homes *homes, bool is_reservation)
{
	return is_reservation ? &homes->reservations : &homes->ranges;
}

/* The range around an address; NULL. */
static struct range *range_around(const struct range_tree *tree, uint64_t addr)
{
	struct range_tree *mutable = (struct range_tree *)(uintptr_t)tree;
	struct range key = { .addr = addr }, *range = RB_NFIND(range_tree, mutable, &key);
	if (!range || range->addr != addr)
		range = range ? RB_PREV(range_tree, mutable, range) : RB_MAX(range_tree, mutable);
	return range && addr - range->addr < range->bytes ? range : NULL;
}

static struct size_tree *sizes_of(struct homes *homes, uint32_t home)
{
	return &homes->sizes[homes->homes[home].is_small];
}

static void gap_add(struct homes *homes, uint32_t home, uint64_t addr, uint64_t bytes)
{
	struct gap *gap = xalloc_zeroed(1, sizeof *gap), *other;
	gap->addr = addr;
	gap->bytes = bytes;
	gap->home = home;
	other = RB_INSERT(gap_tree, &homes->gaps, gap);
	if (other) { /* damaged: two ranges at one address */
		free(gap);
		return;
	}
	RB_INSERT(size_tree, sizes_of(homes, home), gap);
}

static void gap_remove(struct homes *homes, struct gap *gap)
{
	RB_REMOVE(gap_tree, &homes->gaps, gap);
	RB_REMOVE(size_tree, sizes_of(homes, gap->home), gap);
	free(gap);
}

/* The free part that ends at or behind an address and begins before it; NULL. */
static struct gap *gap_before(struct homes *homes, uint64_t addr)
{
	struct gap key = { .addr = addr }, *gap = RB_NFIND(gap_tree, &homes->gaps, &key);
	if (gap && gap->addr == addr)
		return gap;
	gap = gap ? RB_PREV(gap_tree, &homes->gaps, gap) : RB_MAX(gap_tree, &homes->gaps);
	return gap && gap->addr + gap->bytes >= addr ? gap : NULL;
}

static void gaps_close(struct homes *homes, const struct range *range)
{
	struct gap key = { .addr = range->addr }, *gap = RB_NFIND(gap_tree, &homes->gaps, &key);
	while (gap && gap->addr - range->addr < range->bytes) {
		struct gap *next = RB_NEXT(gap_tree, &homes->gaps, gap);
		gap_remove(homes, gap);
		gap = next;
	}
}

uint32_t homes_open(struct homes *homes, uint64_t addr, uint64_t bytes, bool is_reservation)
{
	struct range *range, *old;
	homes_close(homes, addr, is_reservation);
	if (!bytes || addr + bytes < addr || homes->count == HOME_NONE - 1)
		return HOME_NONE;
	range = xalloc_zeroed(1, sizeof *range);
	range->addr = addr;
	range->bytes = bytes;
	range->home = (uint32_t)homes->count;
	old = RB_INSERT(range_tree, tree_of(homes, is_reservation), range);
	if (old) {
		free(range);
		return HOME_NONE;
	}
	xalloc_grow(&homes->homes, homes->count, &homes->room, sizeof *homes->homes);
	homes->homes[homes->count++] = (struct home){ .is_reservation = is_reservation };
	return range->home;
}

void homes_close(struct homes *homes, uint64_t addr, bool is_reservation)
{
	struct range_tree *tree = tree_of(homes, is_reservation);
	struct range key = { .addr = addr }, *range = RB_FIND(range_tree, tree, &key);
	if (!range)
		return;
	if (!is_reservation)
		gaps_close(homes, range);
	RB_REMOVE(range_tree, tree, range);
	free(range);
}

uint32_t homes_reservation(const struct homes *homes, uint64_t addr)
{
	const struct range *range = range_around(&homes->reservations, addr);
	return range ? range->home : HOME_NONE;
}

/* The allocator did not take memory of `other` for a block in `home`. */
static void conflict_add(struct homes *homes, uint32_t home, uint32_t other)
{
	uint32_t later = home > other ? home : other, earlier = home > other ? other : home;
	uint32_t *place;
	if (home == other || homes->conflict_count == CONFLICTS_MAX)
		return;
	place = hash_index_place(&homes->known, ((uint64_t)later << 32 | earlier) + 1);
	if (*place)
		return;
	xalloc_grow(&homes->conflicts, homes->conflict_count, &homes->conflict_room,
		    sizeof *homes->conflicts);
	homes->conflicts[homes->conflict_count] =
		(struct conflict){ earlier, homes->homes[later].first_conflict };
	*place = homes->homes[later].first_conflict = (uint32_t)++homes->conflict_count;
}

/* Free parts that the request would have preferred to one of `taken` bytes at addr. */
static void compare_gaps(struct homes *homes, uint32_t home, uint64_t addr, uint64_t bytes,
			 uint64_t taken)
{
	struct gap key = { .bytes = bytes }, *gap;
	unsigned left = BETTER_MAX;
	gap = RB_NFIND(size_tree, sizes_of(homes, home), &key);
	for (; gap && left--; gap = RB_NEXT(size_tree, sizes_of(homes, home), gap)) {
		if (gap->bytes > taken || (gap->bytes == taken && gap->addr >= addr))
			return;
		conflict_add(homes, home, gap->home);
	}
}

/* The first block of a segment: all of it was free. */
static void segment_begin(struct homes *homes, const struct range *range, uint64_t bytes,
			  bool is_private)
{
	struct home *home = &homes->homes[range->home];
	home->is_segment = true;
	home->is_small = bytes <= SMALL_BLOCK_BYTES;
	home->is_private = is_private;
	if (!home->is_reservation)
		gap_add(homes, range->home, range->addr, range->bytes);
}

/* Takes a block out of the free part that has it. */
static void gap_carve(struct homes *homes, struct gap *gap, uint64_t addr, uint64_t bytes)
{
	uint64_t end = gap->addr + gap->bytes, first = gap->addr;
	uint32_t home = gap->home;
	gap_remove(homes, gap);
	if (first < addr)
		gap_add(homes, home, first, addr - first);
	if (addr + bytes < end)
		gap_add(homes, home, addr + bytes, end - addr - bytes);
}

/* Not in damaged recordings: there a block may have no bytes, or end behind its range. */
static bool is_inside(const struct range *range, uint64_t addr, uint64_t bytes)
{
	return bytes && bytes <= range->bytes - (addr - range->addr);
}

uint32_t homes_alloc(struct homes *homes, uint64_t addr, uint64_t bytes, bool is_old,
		     bool is_private)
{
	struct range *range = range_around(&homes->ranges, addr);
	struct gap *gap;
	bool is_first;
	if (!range)
		range = range_around(&homes->reservations, addr);
	if (!range)
		return HOME_NONE;
	is_first = !homes->homes[range->home].is_segment;
	if (is_first)
		segment_begin(homes, range, bytes, is_private);
	if (homes->homes[range->home].is_reservation || !is_inside(range, addr, bytes))
		return range->home;
	gap = gap_before(homes, addr);
	if (!gap || gap->home != range->home || addr + bytes > gap->addr + gap->bytes)
		return range->home;
	if (!is_old)
		compare_gaps(homes, range->home, addr, bytes, is_first ? UINT64_MAX : gap->bytes);
	gap_carve(homes, gap, addr, bytes);
	return range->home;
}

void homes_give(struct homes *homes, uint32_t home, uint64_t addr, uint64_t bytes)
{
	struct gap *before, *after, key = { .addr = addr + bytes };
	struct range *range = range_around(&homes->ranges, addr);
	if (home == HOME_NONE || !range || range->home != home || !is_inside(range, addr, bytes) ||
	    homes->homes[home].is_reservation)
		return;
	before = gap_before(homes, addr);
	after = RB_FIND(gap_tree, &homes->gaps, &key);
	if (after && after->home == home) {
		bytes += after->bytes;
		gap_remove(homes, after);
	}
	if (before && before->home == home && before->addr + before->bytes == addr) {
		bytes += addr - before->addr;
		addr = before->addr;
		gap_remove(homes, before);
	}
	gap_add(homes, home, addr, bytes);
}

bool homes_is_segment(const struct homes *homes, uint32_t home)
{
	return home < homes->count && homes->homes[home].is_segment;
}

bool homes_is_private(const struct homes *homes, uint32_t home)
{
	return home < homes->count && homes->homes[home].is_private;
}

/* The lowest group that no conflicting home has. Private pools have groups of their own. */
static unsigned group_for(const struct homes *homes, const struct home *home, const uint8_t *kinds,
			  uint32_t *taken, uint32_t mark)
{
	unsigned group = 0;
	uint8_t kind = home->is_private ? 2 : 1;
	for (uint32_t at = home->first_conflict; at; at = homes->conflicts[at - 1].next)
		taken[homes->homes[homes->conflicts[at - 1].with].group] = mark;
	while (group < GROUPS_MAX - 1 &&
	       (taken[group] == mark || (kinds[group] && kinds[group] != kind)))
		group++;
	return group;
}

unsigned homes_settle(struct homes *homes)
{
	unsigned most = 1, reserved[2] = { 0, 0 };
	uint32_t *taken = xalloc_zeroed(GROUPS_MAX, sizeof *taken);
	uint8_t *kinds = xalloc_zeroed(GROUPS_MAX, sizeof *kinds);
	for (size_t i = 0; i < homes->count; i++) {
		struct home *home = &homes->homes[i];
		unsigned group;
		if (!home->is_segment)
			continue;
		if (home->is_reservation) /* one for each stream and pool */
			group = reserved[home->is_small]++ % GROUPS_MAX;
		else
			group = group_for(homes, home, kinds, taken, (uint32_t)i + 1);
		home->group = (uint16_t)group;
		kinds[group] = home->is_private ? 2 : 1;
		if (group >= most)
			most = group + 1;
	}
	free(taken);
	free(kinds);
	return most;
}

unsigned homes_group(const struct homes *homes, uint32_t home)
{
	return home < homes->count ? homes->homes[home].group : 0;
}
