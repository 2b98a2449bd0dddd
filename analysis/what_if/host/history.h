/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of malloc and free in one recording, as a player is given it: who allocated which
 * block, how large, in which thread, and when it was freed.
 *
 * Contract. history_read fills *history, which history_fini ends; it dies on exhaustion. `steps`
 * is in the order in which they are played: by time, and within a time slice thread by thread.
 * Sizes are bytes as requested. Where the ring has lost its oldest events, the history begins with
 * what is known to have been live (begun_blocks). Where the recording is a sample, each sampled
 * block stands for several, spread over the time between the samples of its call site (estimated).
 * Blocks of CPython's own allocator and maps are left out. The number of steps is bounded: an older
 * part of a longer history is only used to know what was live after it, and short-lived blocks of a
 * sample are left out (left_out_count).
 */
#ifndef ANALYSIS_WHAT_IF_HOST_HISTORY_H
#define ANALYSIS_WHAT_IF_HOST_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include "analysis/recording/meta.h"
#include "analysis/recording/reader.h"
#include "analysis/what_if/host/player/play.h"

enum { HISTORY_STEPS_MAX = 16 << 20, HISTORY_SAMPLED_STEPS_MAX = 6 << 20 };

struct history {
	struct play_step *steps;
	size_t count, room;
	uint32_t block_count;
	uint32_t thread_count;    /* 1 and more; 0 is the main thread */
	bool estimated;           /* the recording is a sample */
	bool complete;            /* all events of the process since its start are there */
	uint64_t begun_blocks;    /* live before the first event that is known */
	uint64_t begun_bytes;
	uint64_t left_out_count;  /* blocks of a sample that lived too shortly */
	uint64_t live_bytes;      /* at the end */
	uint64_t peak_live_bytes;
	uint64_t large_bytes;     /* of live_bytes: in blocks of PLAY_LARGE_BYTES and more */
	uint64_t duration_ns;     /* from the first event to the last */
};

void history_read(struct history *history, const struct reader *reader, const struct meta *meta);
void history_fini(struct history *history);

/* A descriptor of a sealed memory file for players; -1 with errno. The caller closes it. */
int history_file(const struct history *history);

#endif
