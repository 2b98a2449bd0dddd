/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host blocks that were live at a moment, each with its birth. The ledger has those that are
 * still live at the end of the recording. The others were freed since; their births are found among
 * the events, as Python frees all its objects when it ends.
 *
 * Contract: heap memory, freed by heap_births_free; dies on exhaustion.
 * Blocks whose birth was overwritten are left out. More than a few million blocks freed after the
 * moment are too many: then only the ledger's are returned.
 */
#pragma once

#include "analysis/measure/heap.h"

struct heap_birth {
	uint32_t stack;          /* that of reader_call_site */
	uint64_t birth_ns;       /* CLOCK_MONOTONIC */
	uint64_t bytes;          /* that the block stands for */
	double variance;         /* of these; 0: exact */
};

struct heap_births;
/* until_ns: the moment; CUF_UNKNOWN: the end. Then all events after it, then those before it. */
struct heap_births *heap_births_new(const struct reader *reader, const struct host_means *means,
				    uint64_t until_ns);
void heap_births_later(struct heap_births *births, const struct host_event *event);
void heap_births_before(struct heap_births *births, const struct host_event *event);
/* The next few blocks, at most SITES_ROW; 0: at the end. */
size_t heap_births_next(struct heap_births *births, struct heap_birth *out);
void heap_births_free(struct heap_births *births); /* NULL is fine */
