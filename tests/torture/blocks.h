/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random blocks of host memory, and the count of what was allocated and freed.
 *
 * Contract. A table of slots belongs to one thread. The counts belong to the process and may be
 * raised from any thread. The sizes are so large that the recorder records every block in both
 * modes.
 */
#pragma once

#include <stdint.h>

#define SIZES 12 /* different sizes: SIZE(0) to SIZE(SIZES - 1) of host_ways.h */

struct random { uint64_t state; };

struct slot {
	unsigned char *block; /* NULL: empty */
	unsigned size;        /* index of its size */
	uint8_t pattern;      /* what every byte is */
};

/* What this process allocated and freed, by size. */
extern struct counts { _Atomic unsigned allocs, frees; } counts[SIZES];

/* How many forks lie between the first process and this one. */
extern unsigned fork_depth;

uint64_t next(struct random *random);
unsigned below(struct random *random, unsigned limit);

/* Prints one line, indented by fork_depth. Ends the process if that fails. */
void line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a line if the block does not hold its pattern. */
void block_check(const struct slot *slot);
/* Checks the block and frees it. */
void block_release(struct slot *slot);
/* One random step: a few small blocks, and one slot that is filled, resized or freed. */
void blocks_churn(struct slot *slots, unsigned count, struct random *random);
