/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A prefix of 2^level buckets is in use. A block lies in its home bucket for some level or in the one beside it (the other
 * half of 128 bytes, which the cache fetches along); the present level comes first, since most blocks are young.
 * Every level's blocks lie in the table's beginning as well, so homes there fill up long before the table does: the last level
 * has more places for a block, all over the table. word0 is stored last and cleared first.
 */
#include "interpose/store/host_ledger.h"

#include "interpose/store/dropped.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum {
	FIRST_LEVEL = 6,   /* one page */
	LOOK_SHARE = 8,    /* after 1/8 as many overflows as there are buckets a look is taken at how full they are */
	LOOK_BUCKETS = 64,
	PLACES = 32,       /* pairs of buckets for a block at the last level: one in 10^12 finds none at a fill of 90 % */
	FULL_ENTRIES = LOOK_BUCKETS * CUF_HOST_BUCKET * 7 / 10
};

static unsigned level = FIRST_LEVEL;
static unsigned highest = FIRST_LEVEL; /* that any block lies at: pages beyond are not even read */
static uint32_t overflowed;
static bool far; /* some block lies beyond its first place */

void cuf_host_ledger_atfork_child(void)
{
	level = highest = FIRST_LEVEL;
	overflowed = 0;
	far = false;
}

#define GOLDEN 0x9E3779B97F4A7C15ull

static inline uint64_t hash_of(uint64_t addr) { return (addr >> 4) * GOLDEN; }
static inline unsigned last_level(void) { return 63 - (unsigned)__builtin_clzll(cuf_recording.host_bucket_mask + 1); }

static inline struct cuf_host_block *bucket_at(uint64_t hash, unsigned at_level, unsigned step)
{
	/* homes of different levels have nothing to do with each other: else a full bucket would be full at every level */
	uint64_t home = (hash ^ at_level * GOLDEN) >> (64 - at_level) & cuf_recording.host_bucket_mask;
	return &cuf_recording.host_ledger[(home ^ step) * CUF_HOST_BUCKET];
}

/* As far from one another as from other blocks' places. */
static inline uint64_t hash_of_place(uint64_t hash, unsigned place) { return hash + place * 0xBF58476D1CE4E5B9ull; }

/* One bit for each entry of the bucket that is empty. Without branches: which one it is cannot be guessed. */
static inline unsigned empty_entries(const struct cuf_host_block *e)
{
	unsigned bits = 0;
#pragma GCC unroll 4
	for (unsigned i = 0; i < CUF_HOST_BUCKET; i++)
		bits |= (unsigned)!__atomic_load_n(&e[i].word0, __ATOMIC_RELAXED) << i;
	return bits;
}

/* The same for entries of this address. A busy entry has another one. */
static inline unsigned entries_of(const struct cuf_host_block *e, uint64_t addr)
{
	unsigned bits = 0;
#pragma GCC unroll 4
	for (unsigned i = 0; i < CUF_HOST_BUCKET; i++)
		bits |= (unsigned)(__atomic_load_n(&e[i].word0, __ATOMIC_ACQUIRE) >> 19 == addr >> 3) << i;
	return bits;
}

static inline bool enter(struct cuf_host_block *e, uint64_t word0, uint64_t word1)
{
	for (unsigned empty; (empty = empty_entries(e));) {
		struct cuf_host_block *entry = &e[__builtin_ctz(empty)];
		uint64_t none = 0;
		if (!__atomic_compare_exchange_n(&entry->word0, &none, CUF_KEY_BUSY, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&entry->word1, word1, __ATOMIC_RELAXED);
		__atomic_store_n(&entry->word0, word0, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

static inline bool leave(struct cuf_host_block *e, uint64_t addr, struct cuf_host_block *entry)
{
	unsigned found = entries_of(e, addr);
	if (!found)
		return false;
	e += __builtin_ctz(found);
	entry->word0 = __atomic_load_n(&e->word0, __ATOMIC_RELAXED);
	entry->word1 = __atomic_load_n(&e->word1, __ATOMIC_RELAXED);
	__atomic_store_n(&e->word0, 0, __ATOMIC_RELEASE);
	return true;
}

static void reach(unsigned at)
{
	unsigned seen = __atomic_load_n(&highest, __ATOMIC_RELAXED);
	while (seen < at && !__atomic_compare_exchange_n(&highest, &seen, at, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Overflows come by chance, too: only a level that is full indeed is left. */
static bool is_full(uint64_t hash, unsigned at)
{
	unsigned entries = 0;
	for (unsigned i = 0; i < LOOK_BUCKETS; i++)
		entries += CUF_HOST_BUCKET - (unsigned)__builtin_popcount(empty_entries(bucket_at(hash + i * GOLDEN, at, 0)));
	return entries >= FULL_ENTRIES;
}

static void grow(uint64_t hash, unsigned from)
{
	if (__atomic_add_fetch(&overflowed, 1, __ATOMIC_RELAXED) <= (1u << from) / LOOK_SHARE || from >= last_level())
		return;
	if (!is_full(hash, from) || __atomic_compare_exchange_n(&level, &from, from + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		__atomic_store_n(&overflowed, 0, __ATOMIC_RELAXED);
}

/* Its buckets at this level are full: a place at a higher one. */
static __attribute__((noinline)) bool enter_above(uint64_t hash, unsigned at, uint64_t word0, uint64_t word1)
{
	unsigned last = last_level();
	grow(hash, at);
	for (at++; at <= last; at++) {
		reach(at);
		for (unsigned step = 0; step < 2; step++)
			if (enter(bucket_at(hash, at, step), word0, word1))
				return true;
	}
	__atomic_store_n(&far, true, __ATOMIC_RELAXED);
	for (unsigned i = 2; i < 2 * PLACES; i++)
		if (enter(bucket_at(hash_of_place(hash, i / 2), last, i & 1), word0, word1))
			return true;
	cuf_count_dropped(CUF_LOST_HOST_LEDGER);
	return false;
}

void cuf_host_ledger_expect(uint64_t addr)
{
	__builtin_prefetch(bucket_at(hash_of(addr), __atomic_load_n(&level, __ATOMIC_RELAXED), 0), 1);
}

bool cuf_host_ledger_add(uint64_t addr, uint32_t birth, uint64_t word1)
{
	uint64_t hash = hash_of(addr), word0 = (addr >> 3) << 19 | birth;
	unsigned now = __atomic_load_n(&level, __ATOMIC_RELAXED);
	return enter(bucket_at(hash, now, 0), word0, word1) || enter(bucket_at(hash, now, 1), word0, word1) ||
	       enter_above(hash, now, word0, word1);
}

/* Entered when the level was another, or when its buckets were full. */
static __attribute__((noinline)) bool leave_other_level(uint64_t hash, unsigned now, uint64_t addr, struct cuf_host_block *entry)
{
	unsigned last = last_level(), high = __atomic_load_n(&highest, __ATOMIC_RELAXED);
	for (unsigned at = now + 1; at <= high; at++)
		for (unsigned step = 0; step < 2; step++)
			if (leave(bucket_at(hash, at, step), addr, entry))
				return true;
	for (unsigned at = now; at-- > FIRST_LEVEL;)
		for (unsigned step = 0; step < 2; step++)
			if (leave(bucket_at(hash, at, step), addr, entry))
				return true;
	for (unsigned i = 2; __atomic_load_n(&far, __ATOMIC_RELAXED) && i < 2 * PLACES; i++)
		if (leave(bucket_at(hash_of_place(hash, i / 2), last, i & 1), addr, entry))
			return true;
	return false;
}

bool cuf_host_ledger_take(uint64_t addr, struct cuf_host_block *entry)
{
	uint64_t hash = hash_of(addr);
	unsigned now = __atomic_load_n(&level, __ATOMIC_RELAXED);
	return leave(bucket_at(hash, now, 0), addr, entry) || leave(bucket_at(hash, now, 1), addr, entry) ||
	       leave_other_level(hash, now, addr, entry);
}
