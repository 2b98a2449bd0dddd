/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks with their births and deaths, found while events are undone. There may be millions: only
 * blocks of at least a size are followed, chosen so that the table keeps its limit, and all that
 * live at the moment of the report.
 *
 * Contract: heap memory, freed by spans_fini. Times are CLOCK_MONOTONIC. `row` is the caller's
 * number of the call site.
 */
#pragma once

#include "analysis/replay/liveset.h"

/* How many blocks have which size, in quarters of an octave. */
enum { SIZE_CLASSES = 256 };
struct sizes { uint64_t count[SIZE_CLASSES]; };
void sizes_add(struct sizes *sizes, uint64_t bytes);
/* All blocks of at least `all_bytes` are at most as many as there is room for; those of at least
 * `some_bytes`, the class of sizes below, no longer. */
struct size_limit { uint64_t all_bytes, some_bytes; };
struct size_limit sizes_limit(const struct sizes *sizes, uint64_t most);

struct span_found {
	uint64_t address, bytes, born_ns, died_ns, aux; /* died CUF_UNKNOWN: never */
	uint32_t row;
	uint8_t kind, device;
};

struct spans {
	/* time_ns: estimated birth; seq: death; tid: row; maps: a free of it failed */
	struct liveset open;
	struct span_found *items;
	size_t count, room;
	struct size_limit ever; /* smaller ones are followed only while `tail` */
	struct size_limit live; /* and of those, not the ones below this */
	uint64_t left_out;
	size_t small_count, some_count; /* that are followed by `live`, and by ever.some_bytes */
	size_t most;           /* of each */
	bool tail;             /* after the moment of the report: everything is followed */
	bool overflowed;       /* small blocks did not fit */
};

/* live: of the blocks that are followed because they live at the moment of the report. */
void spans_init(struct spans *spans, struct size_limit ever, struct size_limit live, size_t most);
void spans_fini(struct spans *spans);
/* Kinds that have an address of their own. */
bool spans_has(unsigned kind);

/* A block of the ledger: live at the end. */
void spans_live(struct spans *spans, const struct cuf_block *block, uint32_t row);
/* Undoes an event of a block. */
void spans_undo(struct spans *spans, const struct cuf_event *event, uint32_t row);
/* The moment of the report is passed: from here on small blocks are not opened. */
void spans_pass_report(struct spans *spans);
/* The oldest event is undone: what is open was born before it. */
void spans_close(struct spans *spans);
