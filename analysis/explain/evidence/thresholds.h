/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers that explain/ decides by, each with its unit and its source. Rows of causes_table.c
 * and causes_host.def have thresholds of their own, and a text about where they are from.
 *
 * Source, where no other is named: reasoning, checked by the generated victims
 * (tests/e2e/README.md), not a corpus of real failures. From what is called high and medium:
 * explain/cause.h.
 */
#pragma once

#include <stdint.h>
#include "analysis/base/numbers.h"

/* ---- confidence, from 0 to 1 ---- */
#define CAUSE_LEAST 0.3   /* below, no cause is named */
#define CAUSE_MOST 0.97   /* nothing is surer */
#define CAUSE_UNSEEN 0.7  /* a factor for each needed signal that is unknown */
#define CAUSE_LEAD 0.15   /* a runner-up that is nearer lowers the confidence */
#define SURE 0.9          /* of the budget: nothing doubtful can change the answer */
#define DOUBTED 0.65      /* of the budget: something can */
#define GUESSED 0.45      /* of the budget: of the second */

/* ---- sizes, in bytes ---- */
#define CONTEXT_PART 20u                   /* of the device: allowed for a context */
#define CONTEXT_MOST ((uint64_t)1 << 30)   /* and no more than this */
#define NOTABLE_BYTES ((uint64_t)16 << 20) /* less is no model, and no second finding */
#define WORTH_BYTES ((uint64_t)64 << 20)   /* less is not worth a change of anything */
#define CAP_MARGIN ((uint64_t)64 << 20)    /* free, and yet refused; the driver rounds to pages */
#define ROUNDED_LEAST ((uint64_t)64 << 10) /* smaller pinned blocks are rounded, too; PyTorch */
#define FEW_BYTES ((uint64_t)1 << 20)      /* less in each thread is no crowd; equal steps differ */
#define EXPANDABLE_CHUNK ((uint64_t)20 << 20) /* mapped at a time for large blocks; PyTorch */

/* ---- shares: a number below 1, or the part "one in so many" ---- */
#define SLACK_SHARE 0.003      /* of what the process holds: less slack does not matter */
#define PACKED_NOT 0.99        /* it would fit by a hair, and not because of the holes */
#define MOSTLY 0.6             /* of rises, layers, bytes of a burst: equal matrices are half */
#define MUCH_SHARE 0.2         /* explains a good part of resident memory */
#define KEPT_MOST 0.1          /* of its allocations: what frees no more keeps its blocks */
#define NOISE_SHARE 0.01       /* of growth, and of gaps, which any program that frees has */
#define LASTS_AS_LONG 0.8      /* of the longest: nobody would tell the difference */
#define LOADED_ENOUGH 0.5      /* of what was loaded: more is seldom still to come */
#define NEAR_PART 3u           /* of a step: what equal steps may differ by */
#define PARALLEL_PART 4u       /* of the largest row: less is no crowd */
#define PASS_PART 8u           /* of what stays: less that comes and goes was one pass */
#define HEAP_PART 10u          /* of the limit: left for what grows next to a heap */
#define FIRST_PART 16u         /* of the device: a first load is no less */
#define FIRST_PART_NAMELESS 1024u /* the same where no function is named */
#define ROUND_PART 32u         /* of what it holds now: a smaller round tells nothing */
#define DEPTH_PART 50u         /* of live blocks: fewer bytes tell nothing of the layers */
#define MARGIN_PART 50u        /* of the device: advice leaves no more free */
#define FAMILY_PART 4096u      /* of the device: smaller blocks are in no family */
#define SMALL_PART 16384u      /* of the device: smaller blocks are not counted */

/* ---- counts ---- */
#define ROUNDS_LEAST 2  /* of work: one may be chance */
#define REPEATS_LEAST 4 /* threads, equal blocks, layers: fewer are chance */
#define SERIES_LEAST 8  /* steps, tasks, freed sizes: fewer are no series */
#define PIECES_LEAST 16 /* fewer blocks are no pieces of one thing */

/* ---- time ---- */
#define LEFT_LEAST_S 10        /* less is not stated: nobody could act in it */
#define LATE_NS 1000000000ull  /* before the end: it still grew then */

/* What a context and its libraries take that nobody allocated. */
static inline uint64_t context_allowance(uint64_t total_bytes)
{
	return least_of(total_bytes / CONTEXT_PART, CONTEXT_MOST);
}
