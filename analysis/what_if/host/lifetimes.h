/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the malloc family, paired: each block from its allocation to its free, as steps of one
 * thread after another. An address serves many blocks; here each block has a number of its own.
 *
 * Contract: lifetimes_read fills *out, ended with lifetimes_fini. `steps` is in the order of the
 * stream, which is exact for each thread and to a millisecond among threads. A resize keeps its
 * block's number, except in a sample, where it is a free and an allocation. The first begun_count
 * steps allocate, in order of birth, what was live before the first event.
 */
#ifndef ANALYSIS_WHAT_IF_HOST_LIFETIMES_H
#define ANALYSIS_WHAT_IF_HOST_LIFETIMES_H

#include <stdbool.h>
#include <stddef.h>
#include "analysis/recording/meta.h"
#include "analysis/recording/reader.h"
#include "analysis/what_if/host/player/play.h"

/* A step with what is needed to arrange it. */
struct timed_step {
	struct play_step step;
	uint64_t time_ns;         /* CLOCK_MONOTONIC */
	uint64_t mean_bytes;      /* of the sampler; 0: every event was recorded */
	uint32_t stack;           /* of the allocation */
};

struct lifetimes {
	struct timed_step *steps;
	size_t count, room;
	size_t begun_count;
	uint32_t block_count;
	uint32_t *tids;           /* by number of thread */
	size_t thread_count, thread_room;
	bool sampled;
};

/* most: of steps to keep; where there are more, the newest are kept. */
void lifetimes_read(struct lifetimes *out, const struct reader *reader, const struct meta *meta,
		    size_t most);
void lifetimes_fini(struct lifetimes *lifetimes);

#endif
