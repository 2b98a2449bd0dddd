/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No tombstones: a key is somewhere within the window behind its home, and `reach` (the longest distance ever used)
 * keeps the search short, so that removal is one store.
 */
#include "interpose/core/ledger.h"

#include "interpose/core/loss.h"
#include "interpose/core/recording.h"
#include "interpose/core/laws.h"

static uint32_t reach; /* entries to search from a key's home; only grows */

void cuf_ledger_fork(void) { reach = 0; }

static uint64_t home_of(uint64_t key)
{
	uint64_t h = (key ^ key >> 31) * 0x9E3779B97F4A7C15ull;
	return (h ^ h >> 29) * 0xBF58476D1CE4E5B9ull >> 32;
}

static struct cuf_block *entry_at(uint64_t home, uint32_t distance)
{
	return &cuf_recording.ledger[(home + distance) & cuf_recording.ledger_mask];
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
	uint64_t home = home_of(key);
	uint32_t limit = __atomic_load_n(&reach, __ATOMIC_ACQUIRE);
	for (uint32_t d = 0; d < limit; d++) {
		struct cuf_block *e = entry_at(home, d);
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
	uint64_t home = home_of(block->key);
	for (uint32_t d = 0; d < CUF_LEDGER_WINDOW; d++) {
		struct cuf_block *e = entry_at(home, d);
		uint64_t empty = 0;
		if (__atomic_load_n(&e->key, __ATOMIC_RELAXED) ||
		    !__atomic_compare_exchange_n(&e->key, &empty, CUF_KEY_BUSY, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		widen(d + 1);
		store_block(e, block);
		__atomic_store_n(&e->key, block->key, __ATOMIC_RELEASE);
		return replaced;
	}
	cuf_lost(CUF_LOST_LEDGER);
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
