/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The malloc family's side of the recorder. Contract as in recorder.h; besides, what is inline here runs millions of
 * times a second: it counts down one thread-local word, or reads one byte of a table.
 * errno is untouched: nothing below calls libc but for string functions and the vDSO.
 */
#ifndef CUF_HOST_H
#define CUF_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/format.h"
#include "interpose/platform/options.h"
#include "interpose/process/thread.h"

/*
 * Sampled mode: counts of recorded live blocks by address. One load in the small table, an eighth of the nearest cache (with
 * half of it, the program's own data had to make room), tells most frees that there is nothing to do; where many blocks are
 * recorded, the large one still does. Neighbours in memory are neighbours here, so that the part in use is as small as the
 * program's own.
 *
 * What else could forbid to skip a free is a count in the small table, too, so that nothing else need be looked at: each place begins at
 * one, which cuf_host_begin_skipping takes away. In full mode nobody does.
 */
enum { CUF_HOST_FILTER_SMALL_BITS = 12, CUF_HOST_FILTER_LARGE_BITS = 18 };
extern uint8_t cuf_host_filter_small[1u << CUF_HOST_FILTER_SMALL_BITS];

static inline uint32_t cuf_host_filter_place(uint64_t addr, unsigned bits)
{
	return (uint32_t)((addr ^ addr >> bits) >> 4) & ((1u << bits) - 1);
}

/* Once, when the settings are read: births and frees that are skipped go straight to the real functions, which the caller has found. */
void cuf_host_begin_skipping(void);
/* The free of this address is never skipped. */
void cuf_host_keep(const void *p);

struct cuf_host_undo { uint64_t word0, word1; };

/* The slow halves, for blocks that are to be recorded: frame is __builtin_frame_address(0) of a function that is still
 * running and was called by the program. p is not NULL. */
void cuf_host_record_alloc(void *p, size_t bytes, unsigned op, const void *frame);
void cuf_host_record_free(void *p, unsigned op, struct cuf_host_undo *undo);

/* True while the countdown is above 0. (Left alone, the compiler loads, subtracts, stores and tests.) */
static inline bool cuf_host_count_down(size_t bytes)
{
#if defined(__x86_64__)
	bool is_above;
	__asm__("subq %2, %1" : "=@ccg"(is_above), "+m"(cuf_tls.countdown_bytes) : "er"(bytes));
	return is_above;
#else
	return (cuf_tls.countdown_bytes -= (int64_t)bytes) > 0;
#endif
}

/*
 * True when a block of this size need not be recorded. It may be asked before the real call, which then can be jumped
 * to; after it, a birth that was not skipped must be recorded, or given up when the call failed.
 */
static inline bool cuf_host_skips_alloc(size_t bytes)
{
	/* in full mode, and until a thread's first event while the recorder is on, the countdown is not above 0 */
	return __builtin_expect(bytes < CUF_SAMPLE_EXACT_BYTES, 1) && __builtin_expect(cuf_host_count_down(bytes), 1);
}

static inline void cuf_host_cancel(size_t bytes)
{
	if (bytes < CUF_SAMPLE_EXACT_BYTES)
		cuf_tls.countdown_bytes += (int64_t)bytes;
}

/* True when the free of p, which may be NULL, need not be recorded. */
static inline bool cuf_host_skips_free(const void *p)
{
	return __builtin_expect(!__atomic_load_n(&cuf_host_filter_small[cuf_host_filter_place((uintptr_t)p, CUF_HOST_FILTER_SMALL_BITS)], __ATOMIC_RELAXED), 1);
}

/* A block was handed out. p is not NULL. op: enum cuf_host_op. */
static inline void cuf_host_alloc(void *p, size_t bytes, unsigned op, const void *frame)
{
	if (!cuf_host_skips_alloc(bytes))
		cuf_host_record_alloc(p, bytes, op, frame);
}

/* Before the real free. *undo holds what restored needs; it is set in every case. */
static inline void cuf_host_free(void *p, unsigned op, struct cuf_host_undo *undo)
{
	undo->word0 = 0;
	if (!cuf_host_skips_free(p))
		cuf_host_record_free(p, op, undo);
}

/* The real call refused (a realloc that failed): the block is live again. */
void cuf_host_restore(const struct cuf_host_undo *undo);
/* What this thread records from here on is later than any time read before: the coarse clock of its events is put right. */
void cuf_host_mark_time(struct cuf_thread_state *thread);
/* The real function refused for want of memory: an incident; errno is left alone. hook: which of the family; frame as above. */
void cuf_host_refused(size_t bytes, unsigned hook, void *frame);

/* Sampled mode: another mean from now on, each thread's from its next sample on, which still has the old one. -1: another
 * mode, beyond the bounds of the option, or it was changed too often to keep count (16 times). */
int cuf_host_set_sample(uint64_t mean_bytes);

/* Live bytes of the malloc family as recorded: exact in full mode, an estimate in sampled mode; CUF_UNKNOWN when off. */
uint64_t cuf_host_live_bytes(void);

#endif
