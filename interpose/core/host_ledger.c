/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets of four entries, at most four buckets from home; word0 is stored last and cleared first. */
#include "interpose/core/host_ledger.h"

#include "interpose/core/loss.h"
#include "interpose/core/recording.h"
#include "interpose/core/laws.h"

static inline uint64_t bucket_of(uint64_t addr)
{
	return ((addr >> 4) * 0x9E3779B97F4A7C15ull >> 24) & cuf_recording.host_bucket_mask;
}

static inline struct cuf_host_block *bucket_at(uint64_t home, unsigned step)
{
	return &cuf_recording.host_ledger[((home + step) & cuf_recording.host_bucket_mask) * CUF_HOST_BUCKET];
}

bool cuf_host_ledger_add(uint64_t addr, uint32_t birth, uint64_t word1)
{
	uint64_t home = bucket_of(addr);
	for (unsigned step = 0; step < CUF_HOST_PROBE; step++) {
		struct cuf_host_block *e = bucket_at(home, step);
		for (unsigned i = 0; i < CUF_HOST_BUCKET; i++) {
			uint64_t empty = 0;
			if (__atomic_load_n(&e[i].word0, __ATOMIC_RELAXED) ||
			    !__atomic_compare_exchange_n(&e[i].word0, &empty, CUF_KEY_BUSY, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
				continue;
			e[i].word1 = word1;
			__atomic_store_n(&e[i].word0, (addr >> 3) << 19 | birth, __ATOMIC_RELEASE);
			return true;
		}
	}
	cuf_lost(CUF_LOST_HOST_LEDGER);
	return false;
}

bool cuf_host_ledger_take(uint64_t addr, struct cuf_host_block *entry)
{
	uint64_t home = bucket_of(addr);
	for (unsigned step = 0; step < CUF_HOST_PROBE; step++) {
		struct cuf_host_block *e = bucket_at(home, step);
		for (unsigned i = 0; i < CUF_HOST_BUCKET; i++) {
			uint64_t word0 = __atomic_load_n(&e[i].word0, __ATOMIC_ACQUIRE);
			if (word0 >> 19 != addr >> 3 || word0 == CUF_KEY_BUSY)
				continue;
			entry->word0 = word0;
			entry->word1 = e[i].word1;
			__atomic_store_n(&e[i].word0, 0, __ATOMIC_RELEASE);
			return true;
		}
	}
	return false;
}
