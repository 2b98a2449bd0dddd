/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kill workload (kill_workload.c) writes about itself into a shared file.
 * tests/fault/kill_runs.c reads it after the kill: for each thread the blocks of all completed
 * calls, and the one call in flight.
 *
 * Contract: a thread writes only its part, in this order: `doing` and its arguments, the call, the
 * slot, the count, doing = NOTHING. So a slot is true at any instant, unless the call in flight is
 * about it.
 */
#pragma once

#include <stdint.h>
#include "interpose/abi/format.h"

#define KILL_THREADS 4
#define KILL_CHURNERS 2 /* at work with `churn`, each succeeded by the next of its line again and again */
#define KILL_SLOTS 128

/* Ways to own memory; the index is a truth_slot's way. */
enum kill_way { KILL_DEVICE, KILL_ASYNC, KILL_MANAGED, KILL_PINNED, KILL_HOST, KILL_WAYS };
static const uint8_t kill_kinds[KILL_WAYS] = { CUF_KIND_DEVICE, CUF_KIND_ASYNC, CUF_KIND_MANAGED,
	                                       CUF_KIND_PINNED, CUF_KIND_HOST };

/* Sizes that nothing else requests from malloc, so that the workload's host blocks are distinguished
 * from those of libc and the driver. */
#define KILL_SIZE_STEP 1024u
#define KILL_SIZE_REST 613u
static inline int kill_is_ours(uint64_t bytes) { return bytes % KILL_SIZE_STEP == KILL_SIZE_REST; }

enum kill_doing { KILL_NOTHING, KILL_ALLOC, KILL_FREE, KILL_RESIZE };

/* addr 0: no block */
struct kill_slot { uint64_t addr; uint64_t bytes; uint32_t way; uint32_t unused; };

struct kill_thread {
	uint32_t tid;
	uint32_t doing;         /* enum kill_doing */
	uint32_t slot;          /* what it is done to */
	uint32_t way;
	uint64_t bytes;         /* ALLOC, RESIZE: asked for */
	uint64_t old_addr, old_bytes; /* RESIZE: the block before */
	uint64_t allocs[KILL_WAYS], frees[KILL_WAYS]; /* completed; a resize counts as both */
	struct kill_slot slots[KILL_SLOTS];
};

struct kill_truth {
	uint32_t started;       /* all threads are at work */
	/* threads come and go, children are forked: `tid` is the last of a line */
	uint32_t churn;
	uint32_t failed;        /* a call failed that should not: the run is void */
	struct kill_thread threads[KILL_THREADS];
};

/* What a forked child of the churn does: blocks of our sizes, of which it frees all but these. */
#define KILL_CHILD_ALLOCS 7u
#define KILL_CHILD_KEEPS 2u
