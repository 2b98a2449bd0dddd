/* SPDX-License-Identifier: Apache-2.0 */
/* What the rest of this room needs of host.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "interpose/process/thread.h"
#include "interpose/record/host_fast.h"

/*
 * Once, when the settings are read: allocations and frees that are skipped go straight to the real
 * functions.
 */
void cuf_host_begin_skipping(void);

/*
 * What this thread records from here on is later than any time read before: its coarse clock is
 * moved forward.
 */
void cuf_host_mark_time(struct cuf_thread_state *thread);

/*
 * An allocation that was not skipped. Returns the thread, entered; NULL: nothing is recorded.
 * *is_chosen: a record is to be made, by cuf_host_add_block. cuf_host_sampled follows, made or not.
 */
struct cuf_thread_state *cuf_host_choose(size_t bytes, bool *is_chosen);
void cuf_host_add_block(struct cuf_thread_state *thread, uint64_t addr, size_t bytes, unsigned op,
			const void *frame);
void cuf_host_sampled(struct cuf_thread_state *thread, size_t bytes);

/* While CPython's allocator serves a request, no call of malloc is skipped: so far below 0 that no
 * request makes it positive. */
#define CUF_HOST_NOTHING_SKIPPED (INT64_MIN / 2)

static inline void cuf_host_go_inside(struct cuf_host_outer *outer)
{
	outer->countdown_bytes = cuf_tls.countdown_bytes;
	cuf_tls.countdown_bytes = CUF_HOST_NOTHING_SKIPPED;
	cuf_tls.outer = outer;
}

/*
 * True while the thread is inside of one. A signal handler may have left it by siglongjmp: then its
 * end never comes, and what it noted is gone.
 */
static inline bool cuf_host_is_inside(const void *frame)
{
	if (__builtin_expect(!cuf_tls.outer, 1))
		return false;
	if (!cuf_frame_was_left((uintptr_t)cuf_tls.outer, (uintptr_t)frame))
		return true;
	cuf_tls.outer = NULL;
	cuf_tls.countdown_bytes = 0;
	return false;
}

static inline void cuf_host_come_out(const struct cuf_host_outer *outer)
{
	cuf_tls.outer = NULL;
	cuf_tls.countdown_bytes = outer->countdown_bytes;
}
