/* SPDX-License-Identifier: Apache-2.0 */
/* Linear probing over the index. A removal moves the followers back, so there are no tombstones.
 * The last block takes the place of the removed one. */
#include "analysis/replay/liveset.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/sort.h"
#include "analysis/base/xalloc.h"

/*
 * Honest addresses never make a run of occupied slots this long at half of fill. A
 * recording that was made to collide does: then the hash gets a secret. It is not secret from the
 * start, so that honest sets cost the same every time.
 */
enum { RUN_MAX = 1024 };

/* A slot: the upper half is of the hash, the lower half is the number of the block, from 1. */
#define NUMBER_MASK 0xffffffffull

static uint64_t hash_of(const struct liveset *set, uint64_t key)
{
	uint64_t h = (key ^ key >> 31 ^ set->secret) * 0x9E3779B97F4A7C15ull;

	if (set->secret)
		h = (h ^ h >> 29) * (set->secret | 1);
	return h ^ h >> 32;
}

/* Where the search for a slot of this hash begins; also of the slot itself. */
static size_t home_of(const struct liveset *set, uint64_t hash)
{
	return (size_t)(hash >> 32) & (set->slots - 1);
}

static size_t slots_for(size_t count)
{
	size_t slots = 64;

	while (slots < 2 * count)
		slots *= 2;
	return slots;
}

/* expected: how many blocks will live at once. The table grows when it is more. */
void liveset_init(struct liveset *set, size_t expected)
{
	*set = (struct liveset){ .room = expected + 1, .slots = slots_for(expected + 1) };
	set->blocks = xalloc_bytes(set->room * sizeof *set->blocks);
	set->index = xalloc_zeroed(set->slots, sizeof *set->index);
}

/* Frees the table. The set may be initialised again. */
void liveset_fini(struct liveset *set)
{
	free(set->blocks);
	free(set->index);
	*set = (struct liveset){ 0 };
}

size_t liveset_bytes(const struct liveset *set)
{
	return set->room * sizeof *set->blocks + set->slots * sizeof *set->index;
}

/* The slot of a key, or the empty one where it belongs. */
static size_t slot_of(const struct liveset *set, uint64_t key)
{
	uint64_t hash = hash_of(set, key), slot;
	size_t i = home_of(set, hash);

	while ((slot = set->index[i]) &&
	       (slot >> 32 != hash >> 32 || set->blocks[(slot & NUMBER_MASK) - 1].key != key))
		i = (i + 1) & (set->slots - 1);
	return i;
}

/* Puts a block that is not in the index there. Returns how far from its home. */
static size_t add_to_index(struct liveset *set, size_t number)
{
	uint64_t hash = hash_of(set, set->blocks[number].key);
	size_t home = home_of(set, hash), i = home;

	while (set->index[i])
		i = (i + 1) & (set->slots - 1);
	set->index[i] = (hash & ~NUMBER_MASK) | (number + 1);
	return (i - home) & (set->slots - 1);
}

static void rebuild_index(struct liveset *set, size_t slots)
{
	for (size_t farthest = RUN_MAX + 1; farthest > RUN_MAX;) {
		free(set->index);
		set->slots = slots;
		set->index = xalloc_zeroed(set->slots, sizeof *set->index);
		farthest = 0;
		for (size_t i = 0; i < set->count && farthest <= RUN_MAX; i++)
			farthest = add_to_index(set, i);
		if (farthest <= RUN_MAX || set->secret)
			break;
		set->secret = hash_secret();
	}
}

static unsigned kind_of(const struct cuf_block *block)
{
	if (block->kind >= CUF_KIND_MAX)
		return CUF_KIND_NONE;
	return block->kind;
}

void liveset_adopt(struct liveset *set, struct cuf_block *blocks, size_t count)
{
	*set = (struct liveset){ .blocks = blocks, .room = count };
	sort_by_number(blocks, count, sizeof *blocks, offsetof(struct cuf_block, key));
	for (size_t i = 0; i < count; i++) {
		if (i + 1 < count && blocks[i].key == blocks[i + 1].key)
			continue;
		set->kinds[kind_of(&blocks[i])]++;
		if (set->count != i)
			blocks[set->count] = blocks[i];
		set->count++;
	}
	rebuild_index(set, slots_for(set->count));
}

/* Room for one more block. An eighth more each time: a large array is moved by its pages. */
static void grow(struct liveset *set)
{
	if (set->count == set->room) {
		set->room += set->room / 8 + 64;
		set->blocks = xalloc_resize(set->blocks, set->room, sizeof *set->blocks);
	}
	if ((set->count + 1) * 4 > set->slots * 3)
		rebuild_index(set, 2 * set->slots);
}

bool liveset_put(struct liveset *set, const struct cuf_block *block)
{
	size_t i;
	if (!block->key || block->key == CUF_KEY_BUSY)
		return false;
	i = slot_of(set, block->key);
	if (set->index[i]) {
		struct cuf_block *known = &set->blocks[(set->index[i] & NUMBER_MASK) - 1];
		set->kinds[kind_of(known)]--;
		set->kinds[kind_of(block)]++;
		*known = *block;
		return false;
	}
	grow(set);
	set->blocks[set->count] = *block;
	set->kinds[kind_of(block)]++;
	if (add_to_index(set, set->count++) > RUN_MAX && !set->secret)
		rebuild_index(set, set->slots);
	return true;
}

struct cuf_block *liveset_find(const struct liveset *set, uint64_t key)
{
	size_t i = slot_of(set, key);
	if (!key || !set->index[i])
		return NULL;
	return &set->blocks[(set->index[i] & NUMBER_MASK) - 1];
}

/* Empties a slot. An entry behind it may fill the hole unless its home is between the two. */
static void remove_slot(struct liveset *set, size_t hole)
{
	size_t mask = set->slots - 1;

	for (size_t i = (hole + 1) & mask; set->index[i]; i = (i + 1) & mask) {
		if (((i - home_of(set, set->index[i])) & mask) < ((i - hole) & mask))
			continue;
		set->index[hole] = set->index[i];
		hole = i;
	}
	set->index[hole] = 0;
}

bool liveset_take(struct liveset *set, uint64_t key, struct cuf_block *block)
{
	size_t slot = slot_of(set, key), number, last = set->count - 1;
	if (!key || !set->index[slot])
		return false;
	number = (size_t)(set->index[slot] & NUMBER_MASK) - 1;
	if (block)
		*block = set->blocks[number];
	set->kinds[kind_of(&set->blocks[number])]--;
	if (number != last) {
		size_t moved = slot_of(set, set->blocks[last].key);

		set->index[moved] = (set->index[moved] & ~NUMBER_MASK) | (number + 1);
		set->blocks[number] = set->blocks[last];
	}
	remove_slot(set, slot);
	set->count--;
	return true;
}
