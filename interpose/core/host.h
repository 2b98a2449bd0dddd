/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The malloc family's side of the recorder. Contract as in recorder.h; besides, what is inline here runs millions of
 * times a second: it reads a setting, one thread-local word and at most one byte of a table, and writes one word.
 */
#ifndef CUF_HOST_H
#define CUF_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/format.h"
#include "interpose/core/options.h"
#include "interpose/core/thread.h"

/* Counts of sampled live blocks by hash of their address; saturated counts stay. One load tells most frees that there
 * is nothing to do. */
#define CUF_HOST_FILTER_BITS 17
extern uint8_t cuf_host_filter[1u << CUF_HOST_FILTER_BITS];

static inline uint8_t *cuf_host_filter_at(uint64_t addr)
{
	return &cuf_host_filter[(addr >> 4) * 0x9E3779B97F4A7C15ull >> (64 - CUF_HOST_FILTER_BITS)];
}

struct cuf_host_undo { uint64_t word0, word1; };

/* The slow halves, for blocks that are to be recorded. */
void cuf_host_record_born(void *p, size_t bytes, unsigned op, void *frame);
void cuf_host_record_freed(void *p, unsigned op, struct cuf_host_undo *undo);

/* A block was handed out. p is not NULL. frame: __builtin_frame_address(0) of the hook. op: enum cuf_host_op. */
static inline void cuf_host_born(void *p, size_t bytes, unsigned op, void *frame)
{
	/* a thread's first event finds its countdown at 0 and goes the slow way, where it gets one */
	if (__builtin_expect(cuf_options.host == CUF_HOST_SAMPLED, 1) && __builtin_expect(bytes < CUF_SAMPLE_EXACT_BYTES, 1) &&
	    __builtin_expect((cuf_tls.countdown_bytes -= (int64_t)bytes) > 0, 1))
		return;
	cuf_host_record_born(p, bytes, op, frame);
}

/* Before the real free. *undo holds what restored needs; it is set in every case. */
static inline void cuf_host_freed(void *p, unsigned op, struct cuf_host_undo *undo)
{
	undo->word0 = 0;
	if (__builtin_expect(cuf_options.host == CUF_HOST_SAMPLED, 1) &&
	    __builtin_expect(!__atomic_load_n(cuf_host_filter_at((uintptr_t)p), __ATOMIC_RELAXED), 1))
		return;
	cuf_host_record_freed(p, op, undo);
}

/* The real call refused (a realloc that failed): the block is live again. */
void cuf_host_restored(const struct cuf_host_undo *undo);

/* Live bytes of the malloc family as recorded: exact in full mode, an estimate in sampled mode; CUF_UNKNOWN when off. */
uint64_t cuf_host_live_bytes(void);

#endif
