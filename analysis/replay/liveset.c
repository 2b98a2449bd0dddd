/* SPDX-License-Identifier: Apache-2.0 */
/* Linear probing. A removal moves the followers back, so there are no tombstones. */
#include "analysis/replay/liveset.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/xalloc.h"

/*
 * Honest addresses never make a run of occupied slots this long at three quarters of fill. A
 * recording that was made to collide does: then the hash gets a secret. It is not secret from the
 * start, so that honest sets are walked in the same order every time.
 */
enum { RUN_MAX = 1024 };

static size_t home_of(const struct liveset *set, uint64_t key)
{
	uint64_t h = (key ^ key >> 31 ^ set->secret) * 0x9E3779B97F4A7C15ull;

	if (set->secret)
		h = (h ^ h >> 29) * (set->secret | 1);
	return (size_t)(h ^ h >> 32) & (set->room - 1);
}

/* expected: how many blocks will live at once. The table grows when it is more. */
void liveset_init(struct liveset *set, size_t expected)
{
	*set = (struct liveset){ .room = 64 };
	while (set->room * 3 < (expected + 1) * 4)
		set->room *= 2;
	set->slots = xalloc_zeroed(set->room, sizeof *set->slots);
}

/* Frees the table. The set may be initialised again. */
void liveset_fini(struct liveset *set)
{
	free(set->slots);
	*set = (struct liveset){ 0 };
}

static size_t slot_of(const struct liveset *set, uint64_t key)
{
	size_t i = home_of(set, key);
	while (set->slots[i].key && set->slots[i].key != key)
		i = (i + 1) & (set->room - 1);
	return i;
}

/* Puts every block into a new table of at least this many. */
static void rebuild(struct liveset *set, size_t expected, uint64_t secret)
{
	struct liveset old = *set;

	liveset_init(set, expected);
	set->count = old.count;
	set->secret = secret;
	memcpy(set->kinds, old.kinds, sizeof set->kinds);
	for (size_t i = 0; i < old.room; i++)
		if (old.slots[i].key)
			set->slots[slot_of(set, old.slots[i].key)] = old.slots[i];
	free(old.slots);
}

static unsigned kind_of(const struct cuf_block *block)
{
	if (block->kind >= CUF_KIND_MAX)
		return CUF_KIND_NONE;
	return block->kind;
}

bool liveset_put(struct liveset *set, const struct cuf_block *block)
{
	size_t i;
	bool fresh;
	if (!block->key || block->key == CUF_KEY_BUSY)
		return false;
	if ((set->count + 1) * 4 > set->room * 3)
		rebuild(set, set->room + set->room / 2, set->secret);
	i = slot_of(set, block->key);
	if (!set->secret && ((i - home_of(set, block->key)) & (set->room - 1)) > RUN_MAX) {
		rebuild(set, set->count, hash_secret());
		i = slot_of(set, block->key);
	}
	fresh = !set->slots[i].key;
	set->count += fresh;
	if (!fresh)
		set->kinds[kind_of(&set->slots[i])]--;
	set->kinds[kind_of(block)]++;
	set->slots[i] = *block;
	return fresh;
}

struct cuf_block *liveset_find(const struct liveset *set, uint64_t key)
{
	size_t i = slot_of(set, key);
	if (!key || !set->slots[i].key)
		return NULL;
	return &set->slots[i];
}

bool liveset_take(struct liveset *set, uint64_t key, struct cuf_block *block)
{
	size_t hole = slot_of(set, key), mask = set->room - 1;
	if (!key || !set->slots[hole].key)
		return false;
	if (block)
		*block = set->slots[hole];
	set->kinds[kind_of(&set->slots[hole])]--;
	for (size_t i = (hole + 1) & mask; set->slots[i].key; i = (i + 1) & mask) {
		/* an entry may fill the hole unless its home is between the hole and itself */
		if (((i - home_of(set, set->slots[i].key)) & mask) < ((i - hole) & mask))
			continue;
		set->slots[hole] = set->slots[i];
		hole = i;
	}
	set->slots[hole].key = 0;
	set->count--;
	return true;
}

const struct cuf_block *liveset_next(const struct liveset *set, size_t *at)
{
	while (*at < set->room) {
		const struct cuf_block *block = &set->slots[(*at)++];
		if (block->key)
			return block;
	}
	return NULL;
}
