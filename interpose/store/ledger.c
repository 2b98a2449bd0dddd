/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No tombstones: a key is at one of PROBES_MAX places, and `reach` (the most that were ever gone through) keeps the search
 * short, so that removal is one store. A row of neighbours, then a row somewhere else: neighbours are cheap to look at, but
 * rows alone grow together into long ones. None of 131,072 entries is out of reach up to a fill of 95 %.
 */
#include "interpose/store/ledger.h"

#include "interpose/store/dropped.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum { ROW = 8, PROBES_MAX = 256 };

static uint32_t reach; /* places to search; only grows */

void cuf_ledger_atfork_child(void) { reach = 0; }

static uint64_t hash_of(uint64_t key)
{
	uint64_t h = (key ^ key >> 31) * 0x9E3779B97F4A7C15ull;
	return (h ^ h >> 29) * 0xBF58476D1CE4E5B9ull;
}

/* The upper half of the hash is where the first row begins, the lower one how far it is to the next. */
static struct cuf_block *entry_at(uint64_t hash, uint32_t probe)
{
	uint64_t row = (hash >> 32) + probe / ROW * (uint64_t)(uint32_t)(hash | 1);
	return &cuf_recording.ledger[(row + probe % ROW) & cuf_recording.ledger_mask];
}

enum { BLOCK_WORDS = sizeof(struct cuf_block) / sizeof(uint64_t) };

/* An entry may be taken and filled again under our eyes; the key, looked at afterwards, tells. So the words are read and
 * written one by one, each whole. */
static void load_block(struct cuf_block *to, const struct cuf_block *entry)
{
	for (unsigned i = 0; i < BLOCK_WORDS; i++)
		((uint64_t *)to)[i] = __atomic_load_n((const uint64_t *)entry + i, __ATOMIC_RELAXED);
}

/* All but the key. */
static void store_block(struct cuf_block *entry, const struct cuf_block *from)
{
	_Static_assert(__builtin_offsetof(struct cuf_block, key) == 0, "the key is the first word");
	for (unsigned i = 1; i < BLOCK_WORDS; i++)
		__atomic_store_n((uint64_t *)entry + i, ((const uint64_t *)from)[i], __ATOMIC_RELAXED);
}

static struct cuf_block *find(uint64_t key)
{
	uint64_t hash = hash_of(key);
	uint32_t limit = __atomic_load_n(&reach, __ATOMIC_ACQUIRE);
	for (uint32_t probe = 0; probe < limit; probe++) {
		struct cuf_block *e = entry_at(hash, probe);
		if (__atomic_load_n(&e->key, __ATOMIC_ACQUIRE) == key)
			return e;
	}
	return NULL;
}

static void widen(uint32_t limit)
{
	uint32_t seen = __atomic_load_n(&reach, __ATOMIC_RELAXED);
	while (seen < limit && !__atomic_compare_exchange_n(&reach, &seen, limit, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
}

bool cuf_ledger_add(const struct cuf_block *block, struct cuf_block *old)
{
	bool replaced = cuf_ledger_take(block->key, old);
	uint64_t hash = hash_of(block->key);
	for (uint32_t probe = 0; probe < PROBES_MAX; probe++) {
		struct cuf_block *e = entry_at(hash, probe);
		uint64_t empty = 0;
		if (__atomic_load_n(&e->key, __ATOMIC_RELAXED) ||
		    !__atomic_compare_exchange_n(&e->key, &empty, CUF_KEY_BUSY, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		widen(probe + 1);
		store_block(e, block);
		__atomic_store_n(&e->key, block->key, __ATOMIC_RELEASE);
		return replaced;
	}
	cuf_count_dropped(CUF_LOST_LEDGER);
	return replaced;
}

bool cuf_ledger_find(uint64_t key, struct cuf_block *block)
{
	struct cuf_block *e = find(key);
	if (e)
		load_block(block, e);
	return e != NULL;
}

bool cuf_ledger_take(uint64_t key, struct cuf_block *block)
{
	struct cuf_block *e = find(key);
	uint64_t expected = key;
	if (!e)
		return false;
	load_block(block, e);
	return __atomic_compare_exchange_n(&e->key, &expected, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool cuf_ledger_refer(uint64_t key, int references, int maps, unsigned flags, struct cuf_block *after)
{
	struct cuf_block *e = find(key);
	if (!e)
		return false;
	/* both counts are one aligned word, changed together, so that one thread sees both reach zero */
	_Static_assert(__builtin_offsetof(struct cuf_block, references) % 4 == 0 &&
		       __builtin_offsetof(struct cuf_block, maps) == __builtin_offsetof(struct cuf_block, references) + 2, "one word");
	uint32_t *both = (uint32_t *)(void *)&e->references, before = __atomic_load_n(both, __ATOMIC_RELAXED), now;
	do {
		int r = (int)(before & 0xffff) + references, m = (int)(before >> 16) + maps;
		r = r < 0 ? 0 : r > 0xffff ? 0xffff : r;
		m = m < 0 ? 0 : m > 0xffff ? 0xffff : m;
		now = (uint32_t)m << 16 | (uint32_t)r;
	} while (!__atomic_compare_exchange_n(both, &before, now, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	if (flags)
		__atomic_fetch_or(&e->flags, (uint8_t)flags, __ATOMIC_RELAXED);
	load_block(after, e);
	after->references = (uint16_t)now;
	after->maps = (uint16_t)(now >> 16);
	return true;
}

bool cuf_ledger_assign(uint64_t key, unsigned role, struct cuf_block *block)
{
	struct cuf_block *e = find(key);
	if (!e)
		return false;
	__atomic_store_n(&e->role, (uint8_t)role, __ATOMIC_RELAXED);
	load_block(block, e);
	return true;
}

void cuf_ledger_each(void (*see)(const struct cuf_block *block, void *context), void *context)
{
	for (uint64_t i = 0; i <= cuf_recording.ledger_mask; i++) {
		struct cuf_block copy;
		uint64_t key = __atomic_load_n(&cuf_recording.ledger[i].key, __ATOMIC_ACQUIRE);
		if (!key || key == CUF_KEY_BUSY)
			continue;
		load_block(&copy, &cuf_recording.ledger[i]);
		if (__atomic_load_n(&cuf_recording.ledger[i].key, __ATOMIC_ACQUIRE) == key) {
			copy.key = key;
			see(&copy, context);
		}
	}
}
