/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing without tombstones: a key is at one of PROBES_MAX places, so removal is one
 * store. `reach`, the most places that were ever probed, keeps the search short.
 *
 * A probe sequence is a row of neighbours, then a row somewhere else. Neighbours are cheap to
 * read, but rows that only continue would grow together into long ones. None of 131,072 entries
 * is out of reach up to a fill of 95 %.
 */
#include "interpose/store/ledger.h"

#include "interpose/platform/at_fork_child.h"
#include "interpose/store/dropped.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum {
	ROW = 8,
	PROBES_MAX = 256,
	BLOCK_WORDS = sizeof(struct cuf_block) / sizeof(uint64_t),
	PARTS = 4096
};

/* places to search; only grows */
static uint32_t reach;

/*
 * Parts of the table that ever held a block. A visit of all blocks reads only these: the rest of
 * a table for 262,144 blocks is 16 MiB, which a process with ten would read, and occupy, for
 * nothing.
 */
static uint8_t is_part_used[PARTS];

static uint64_t changes;

/* The child's recording begins with an empty table. */
static void forget_table(void)
{
	reach = 0;
	changes = 0;
	__builtin_memset(is_part_used, 0, sizeof is_part_used);
}
CUF_AT_FORK_CHILD(forget_table);

/* Entries of one part, a power of two as the table is. */
static uint64_t part_entries(void)
{
	uint64_t entries = cuf_recording.ledger_mask + 1;

	return entries > PARTS ? entries / PARTS : 1;
}

static void count_change(void) { __atomic_fetch_add(&changes, 1, __ATOMIC_RELAXED); }

uint64_t cuf_ledger_changes(void) { return __atomic_load_n(&changes, __ATOMIC_RELAXED); }

static uint64_t hash_of(uint64_t key)
{
	uint64_t hash = (key ^ key >> 31) * 0x9E3779B97F4A7C15ull;

	return (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9ull;
}

/*
 * The upper half of the hash is where the first row begins, the lower half the distance to the
 * next.
 */
static struct cuf_block *entry_at(uint64_t hash, uint32_t probe)
{
	uint64_t row = (hash >> 32) + probe / ROW * (uint64_t)(uint32_t)(hash | 1);

	return &cuf_recording.ledger[(row + probe % ROW) & cuf_recording.ledger_mask];
}

/*
 * Another thread may remove an entry and fill it again while we read it. The key, compared
 * afterwards, detects that. So words are read and written one by one, each as a whole.
 */
static void load_block(struct cuf_block *to, const struct cuf_block *entry)
{
	for (unsigned i = 0; i < BLOCK_WORDS; i++)
		((uint64_t *)to)[i] =
			__atomic_load_n((const uint64_t *)entry + i, __ATOMIC_RELAXED);
}

/* Everything except the key, which publishes the entry. */
static void store_block(struct cuf_block *entry, const struct cuf_block *from)
{
	_Static_assert(__builtin_offsetof(struct cuf_block, key) == 0, "the key is the first word");
	for (unsigned i = 1; i < BLOCK_WORDS; i++)
		__atomic_store_n((uint64_t *)entry + i, ((const uint64_t *)from)[i],
				 __ATOMIC_RELAXED);
}

static struct cuf_block *find_entry(uint64_t key)
{
	uint64_t hash = hash_of(key);
	uint32_t limit = __atomic_load_n(&reach, __ATOMIC_ACQUIRE);

	for (uint32_t probe = 0; probe < limit; probe++) {
		struct cuf_block *entry = entry_at(hash, probe);

		if (__atomic_load_n(&entry->key, __ATOMIC_ACQUIRE) == key)
			return entry;
	}
	return NULL;
}

static void raise_reach(uint32_t limit)
{
	uint32_t seen = __atomic_load_n(&reach, __ATOMIC_RELAXED);

	while (seen < limit && !__atomic_compare_exchange_n(&reach, &seen, limit, 1,
							    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
}

/* ---- adding and removing ---- */

static void use_part(const struct cuf_block *entry)
{
	uint8_t *is_used = &is_part_used[(uint64_t)(entry - cuf_recording.ledger) / part_entries()];

	if (!__atomic_load_n(is_used, __ATOMIC_RELAXED))
		__atomic_store_n(is_used, 1, __ATOMIC_RELAXED);
	count_change();
}

bool cuf_ledger_add(const struct cuf_block *block, struct cuf_block *old)
{
	uint64_t hash = hash_of(block->key);

	if (!cuf_ledger_take(block->key, old))
		old->key = 0;
	for (uint32_t probe = 0; probe < PROBES_MAX; probe++) {
		struct cuf_block *entry = entry_at(hash, probe);
		uint64_t empty = 0;

		if (__atomic_load_n(&entry->key, __ATOMIC_RELAXED) ||
		    !__atomic_compare_exchange_n(&entry->key, &empty, CUF_KEY_BUSY, 0,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		raise_reach(probe + 1);
		use_part(entry);
		store_block(entry, block);
		__atomic_store_n(&entry->key, block->key, __ATOMIC_RELEASE);
		return true;
	}
	cuf_count_dropped(CUF_LOST_LEDGER);
	return false;
}

bool cuf_ledger_find(uint64_t key, struct cuf_block *block)
{
	struct cuf_block *entry = find_entry(key);

	if (entry)
		load_block(block, entry);
	return entry != NULL;
}

bool cuf_ledger_take(uint64_t key, struct cuf_block *block)
{
	struct cuf_block *entry = find_entry(key);
	uint64_t expected = key;

	if (!entry)
		return false;
	load_block(block, entry);
	if (!__atomic_compare_exchange_n(&entry->key, &expected, 0, 0, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return false;
	count_change();
	return true;
}

/* ---- changing a live block ---- */

static int clamp_count(int count)
{
	if (count < 0)
		return 0;
	return count > 0xffff ? 0xffff : count;
}

/*
 * Both counts are one aligned word and change together, so that exactly one thread sees both
 * reach zero.
 */
bool cuf_ledger_add_refs(uint64_t key, int *references, int *maps, unsigned flags,
			 struct cuf_block *after)
{
	_Static_assert(__builtin_offsetof(struct cuf_block, references) % 4 == 0, "aligned");
	_Static_assert(__builtin_offsetof(struct cuf_block, maps) ==
			       __builtin_offsetof(struct cuf_block, references) + 2, "one word");
	struct cuf_block *entry = find_entry(key);
	uint32_t *both, before, now;

	if (!entry)
		return false;
	both = (uint32_t *)(void *)&entry->references;
	before = __atomic_load_n(both, __ATOMIC_RELAXED);
	do {
		int new_references = clamp_count((int)(before & 0xffff) + *references);
		int new_maps = clamp_count((int)(before >> 16) + *maps);

		now = (uint32_t)new_maps << 16 | (uint32_t)new_references;
	} while (!__atomic_compare_exchange_n(both, &before, now, 0, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	if (flags)
		__atomic_fetch_or(&entry->flags, (uint8_t)flags, __ATOMIC_RELAXED);
	load_block(after, entry);
	after->references = (uint16_t)now;
	after->maps = (uint16_t)(now >> 16);
	*references = (int)(now & 0xffff) - (int)(before & 0xffff);
	*maps = (int)(now >> 16) - (int)(before >> 16);
	return true;
}

bool cuf_ledger_assign(uint64_t key, unsigned role, struct cuf_block *block)
{
	struct cuf_block *entry = find_entry(key);

	if (!entry)
		return false;
	__atomic_store_n(&entry->role, (uint8_t)role, __ATOMIC_RELAXED);
	load_block(block, entry);
	return true;
}

static void visit_entries(const struct cuf_block *entry, uint64_t count,
			  void (*visit)(const struct cuf_block *block, void *context),
			  void *context)
{
	for (; count; count--, entry++) {
		uint64_t key = __atomic_load_n(&entry->key, __ATOMIC_ACQUIRE);
		struct cuf_block copy;

		if (!key || key == CUF_KEY_BUSY)
			continue;
		load_block(&copy, entry);
		/* else the entry was removed while it was copied */
		if (__atomic_load_n(&entry->key, __ATOMIC_ACQUIRE) == key) {
			copy.key = key;
			visit(&copy, context);
		}
	}
}

void cuf_ledger_each(void (*visit)(const struct cuf_block *block, void *context), void *context)
{
	const uint64_t entries = part_entries(), parts = (cuf_recording.ledger_mask + 1) / entries;

	for (uint64_t part = 0; part < parts; part++)
		if (__atomic_load_n(&is_part_used[part], __ATOMIC_RELAXED))
			visit_entries(cuf_recording.ledger + part * entries, entries, visit,
				      context);
}
