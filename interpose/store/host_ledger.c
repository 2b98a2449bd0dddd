/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A prefix of 2^level buckets is in use. A block is in its home bucket for some level or in the
 * neighbour, which is the other half of the same 128 bytes and so is fetched with it. The present
 * level is searched first, since most blocks are young.
 *
 * Blocks of every level are in the table's beginning too, so homes there fill up long before the
 * table does. Therefore the last level has more places for a block, spread over the whole table.
 * word0 is stored last and cleared first.
 */
#include "interpose/store/host_ledger.h"

#include "interpose/platform/at_fork_child.h"
#include "interpose/store/dropped.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum {
	/* one page */
	FIRST_LEVEL = 6,
	/* overflows as a share of the buckets after which the level's fill is measured */
	MEASURE_SHARE = 8,
	/* how many buckets that measurement reads */
	MEASURE_BUCKETS = 64,
	FULL_ENTRIES = MEASURE_BUCKETS * CUF_HOST_BUCKET * 7 / 10,
	/*
	 * pairs of buckets for a block at the last level: 1 in 10^12 finds none at a fill of 90 %
	 */
	PLACES = 32
};

static unsigned level = FIRST_LEVEL;
/* the highest level with a block: pages beyond it are not even read */
static unsigned highest = FIRST_LEVEL;
/* blocks that found their home full, since the level began or was measured */
static uint32_t overflowed;
/* some block is in one of the places beyond its home at the last level */
static bool any_far;

/* The child's recording begins with an empty table. */
static void forget_levels(void)
{
	level = highest = FIRST_LEVEL;
	overflowed = 0;
	any_far = false;
}
CUF_AT_FORK_CHILD(forget_levels);

/* ---- where a block belongs ---- */

#define GOLDEN 0x9E3779B97F4A7C15ull

static inline uint64_t hash_of(uint64_t addr) { return (addr >> 4) * GOLDEN; }

static inline unsigned last_level(void)
{
	return 63 - (unsigned)__builtin_clzll(cuf_recording.host_bucket_mask + 1);
}

/*
 * Homes of different levels are independent. Else a bucket that is full at one level would be
 * full at all.
 */
static inline struct cuf_host_block *bucket_at(uint64_t hash, unsigned at_level, unsigned step)
{
	uint64_t home = (hash ^ at_level * GOLDEN) >> (64 - at_level);

	home &= cuf_recording.host_bucket_mask;
	return &cuf_recording.host_ledger[(home ^ step) * CUF_HOST_BUCKET];
}

/* A block's places are as far from each other as from those of other blocks. */
static inline uint64_t hash_of_place(uint64_t hash, unsigned place)
{
	return hash + place * 0xBF58476D1CE4E5B9ull;
}

/* ---- one bucket ---- */

/* One bit for each empty entry. Without branches, because no predictor guesses which one it is. */
static inline unsigned empty_entries(const struct cuf_host_block *bucket)
{
	unsigned bits = 0;

#pragma GCC unroll 4
	for (unsigned i = 0; i < CUF_HOST_BUCKET; i++)
		bits |= (unsigned)!__atomic_load_n(&bucket[i].word0, __ATOMIC_RELAXED) << i;
	return bits;
}

/* One bit for each entry of this address. A busy entry holds another address. */
static inline unsigned entries_of(const struct cuf_host_block *bucket, uint64_t addr)
{
	unsigned bits = 0;

#pragma GCC unroll 4
	for (unsigned i = 0; i < CUF_HOST_BUCKET; i++)
		bits |= (unsigned)(__atomic_load_n(&bucket[i].word0, __ATOMIC_ACQUIRE) >> 19 ==
				   addr >> 3)
			<< i;
	return bits;
}

/* Claims an empty entry, fills it, publishes it by word0. false: the bucket is full. */
static inline bool bucket_add(struct cuf_host_block *bucket, uint64_t word0, uint64_t word1)
{
	for (unsigned empty; (empty = empty_entries(bucket));) {
		struct cuf_host_block *entry = &bucket[__builtin_ctz(empty)];
		uint64_t none = 0;

		if (!__atomic_compare_exchange_n(&entry->word0, &none, CUF_KEY_BUSY, 0,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&entry->word1, word1, __ATOMIC_RELAXED);
		__atomic_store_n(&entry->word0, word0, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

/* Copies the block to *entry and empties its place. false: not in this bucket. */
static inline bool bucket_take(struct cuf_host_block *bucket, uint64_t addr,
			       struct cuf_host_block *entry)
{
	unsigned found = entries_of(bucket, addr);

	if (!found)
		return false;
	bucket += __builtin_ctz(found);
	entry->word0 = __atomic_load_n(&bucket->word0, __ATOMIC_RELAXED);
	entry->word1 = __atomic_load_n(&bucket->word1, __ATOMIC_RELAXED);
	__atomic_store_n(&bucket->word0, 0, __ATOMIC_RELEASE);
	return true;
}

/* ---- levels ---- */

static void raise_highest(unsigned to)
{
	unsigned seen = __atomic_load_n(&highest, __ATOMIC_RELAXED);

	while (seen < to && !__atomic_compare_exchange_n(&highest, &seen, to, 1, __ATOMIC_RELAXED,
							 __ATOMIC_RELAXED))
		;
}

/* Overflows also happen by chance, so a sample of buckets decides whether the level is full. */
static bool level_is_full(uint64_t hash, unsigned at)
{
	unsigned entries = 0;

	for (unsigned i = 0; i < MEASURE_BUCKETS; i++) {
		unsigned empty = empty_entries(bucket_at(hash + i * GOLDEN, at, 0));

		entries += CUF_HOST_BUCKET - (unsigned)__builtin_popcount(empty);
	}
	return entries >= FULL_ENTRIES;
}

/*
 * Counts an overflow at this level. When there are many and the level is full, the next level
 * begins.
 */
static void count_overflow(uint64_t hash, unsigned from)
{
	uint32_t count = __atomic_add_fetch(&overflowed, 1, __ATOMIC_RELAXED);

	if (count <= (1u << from) / MEASURE_SHARE || from >= last_level())
		return;
	if (!level_is_full(hash, from) ||
	    __atomic_compare_exchange_n(&level, &from, from + 1, 0, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		__atomic_store_n(&overflowed, 0, __ATOMIC_RELAXED);
}

/* Both buckets at this level are full: finds a place at a higher one. */
static __attribute__((noinline)) bool add_above(uint64_t hash, unsigned at, uint64_t word0,
						uint64_t word1)
{
	unsigned last = last_level();

	count_overflow(hash, at);
	for (at++; at <= last; at++) {
		raise_highest(at);
		for (unsigned step = 0; step < 2; step++)
			if (bucket_add(bucket_at(hash, at, step), word0, word1))
				return true;
	}
	__atomic_store_n(&any_far, true, __ATOMIC_RELAXED);
	for (unsigned i = 2; i < 2 * PLACES; i++)
		if (bucket_add(bucket_at(hash_of_place(hash, i / 2), last, i & 1), word0, word1))
			return true;
	cuf_count_dropped(CUF_LOST_HOST_LEDGER);
	return false;
}

/* The block was added under another level, or while its buckets were full. */
static __attribute__((noinline)) bool take_elsewhere(uint64_t hash, unsigned now, uint64_t addr,
						     struct cuf_host_block *entry)
{
	unsigned last = last_level(), high = __atomic_load_n(&highest, __ATOMIC_RELAXED);

	for (unsigned at = now + 1; at <= high; at++)
		for (unsigned step = 0; step < 2; step++)
			if (bucket_take(bucket_at(hash, at, step), addr, entry))
				return true;
	for (unsigned at = now; at-- > FIRST_LEVEL;)
		for (unsigned step = 0; step < 2; step++)
			if (bucket_take(bucket_at(hash, at, step), addr, entry))
				return true;
	for (unsigned i = 2; __atomic_load_n(&any_far, __ATOMIC_RELAXED) && i < 2 * PLACES; i++)
		if (bucket_take(bucket_at(hash_of_place(hash, i / 2), last, i & 1), addr, entry))
			return true;
	return false;
}

/* ---- the interface ---- */

void cuf_host_ledger_expect(uint64_t addr)
{
	unsigned now = __atomic_load_n(&level, __ATOMIC_RELAXED);

	__builtin_prefetch(bucket_at(hash_of(addr), now, 0), 1);
}

bool cuf_host_ledger_add(uint64_t addr, uint32_t birth, uint64_t word1)
{
	uint64_t hash = hash_of(addr), word0 = cuf_host_block_word0(addr, birth);
	unsigned now = __atomic_load_n(&level, __ATOMIC_RELAXED);

	return bucket_add(bucket_at(hash, now, 0), word0, word1) ||
	       bucket_add(bucket_at(hash, now, 1), word0, word1) ||
	       add_above(hash, now, word0, word1);
}

bool cuf_host_ledger_take(uint64_t addr, struct cuf_host_block *entry)
{
	uint64_t hash = hash_of(addr);
	unsigned now = __atomic_load_n(&level, __ATOMIC_RELAXED);

	return bucket_take(bucket_at(hash, now, 0), addr, entry) ||
	       bucket_take(bucket_at(hash, now, 1), addr, entry) ||
	       take_elsewhere(hash, now, addr, entry);
}

/* All homes of a level are in the prefix of that level; places beyond them are of the last one. */
void cuf_host_ledger_each(void (*visit)(uint64_t word0, uint64_t word1))
{
	uint64_t buckets = UINT64_C(1) << __atomic_load_n(&highest, __ATOMIC_RELAXED);
	uint64_t all = cuf_recording.host_bucket_mask + 1;

	if (buckets > all)
		buckets = all;
	for (uint64_t i = 0; i < buckets * CUF_HOST_BUCKET; i++) {
		const struct cuf_host_block *entry = &cuf_recording.host_ledger[i];
		uint64_t word0 = __atomic_load_n(&entry->word0, __ATOMIC_ACQUIRE);
		uint64_t word1 = __atomic_load_n(&entry->word1, __ATOMIC_RELAXED);

		if (cuf_host_addr(word0))
			visit(word0, word1);
	}
}
