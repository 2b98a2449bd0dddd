/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that grow with the recording: blocks and events. They are streamed. */
#include "analysis/view/tables/tables.h"

static const struct words row_part_words = WORDS(NULL, row_part_names),
			  op_words = WORDS(NULL, event_op_names);

/* Members that the struct `in` has of both. */
#define PLACE_COLUMNS(in) \
	{ "kind", NAME(in.kind, kind_words), \
	  .meaning = "device, managed, pinned, registered, async, vmm, array, imported, " \
	  "framework (inside a device block: do not add them) or host" }, \
	{ "part", NAME(in.part, row_part_words), \
	  .meaning = "of the host: malloc, map or python" }, \
	{ "device", DEVICE(in.device), .meaning = "the driver's number; null: host" }, \
	{ "address", NUMBER(in.addr), .meaning = "a number, so that ranges can be computed" }, \
	{ "bytes", NUMBER(in.bytes), .meaning = "as requested" }, \
	{ "weight_bytes", NUMBER(in.weight_bytes), \
	  .meaning = "bytes that it stands for: more than its own where the recorder sampled" }, \
	{ "weight_count", NUMBER(in.weight_count), .meaning = "blocks that it stands for" }

/* The call site of a row; 0: unknown. */
static uint32_t stack_of(const struct sheet *sheet, uint32_t site)
{
	return site ? rows_site(sheet->rows, site).stack : 0;
}

/* ---- blocks ---- */

struct block_cells { struct block_row block; uint32_t stack; };
#define OF struct block_cells
static const struct field block_columns[] = {
	KEY_COLUMN,
	PLACE_COLUMNS(block),
	{ "born_ns", NUMBER(block.born_ns),
	  .meaning = "allocated, in nanoseconds since 1970; null: before the events that are "
	  "left" },
	{ "died_ns", NUMBER(block.died_ns), .meaning = "freed; null: it lived at the end" },
	{ "born_seq", POSITIVE(block.born_seq),
	  .meaning = "the same in the order of device events" },
	{ "died_seq", POSITIVE(block.died_seq),
	  .meaning = "the same in the order of device events" },
	{ "tid", POSITIVE(block.tid), .meaning = "thread that allocated it" },
	{ "api", TEXT(block.api), .meaning = "function that was called" },
	{ "role", TEXT(block.role), .meaning = "what it is for: weights, kv, ..." },
	{ "phase", TEXT(block.phase), .meaning = "innermost phase of the thread at its birth" },
	{ "request_id", NUMBER(block.request), .meaning = "request that was open then" },
	{ "stack", POSITIVE(stack), .meaning = "call site: joins sites and frames" },
};
#undef OF

static void write_block(void *context, const struct block_row *block)
{
	sheet_row(context, &(struct block_cells){ *block, stack_of(context, block->site) });
}

/* With a moment only what was live then; else every block of which the recording knows. */
static void write_blocks(struct sheet *sheet)
{
	if (sheet->at_moment)
		rows_live(sheet->rows, write_block, sheet);
	else
		rows_blocks(sheet->rows, write_block, sheet);
}

TABLE(table_blocks, "blocks",
      "every block of which the recording knows, with its birth and death; with --at, those that "
      "were live then",
      block_columns, write_blocks);

/* ---- events ---- */

static const void *failure(const struct fields *fields, const void *object)
{
	const struct event_row *event = object;

	return event->op == EVENT_FAIL ? event : NULL;
}

struct event_cells { struct event_row event; uint32_t stack; };
#define OF struct event_cells
static const struct field event_columns[] = {
	KEY_COLUMN,
	{ "seq", POSITIVE(event.seq), .meaning = "order of device events; null: host" },
	{ "time_ns", NUMBER(event.time_ns), .meaning = "in nanoseconds since 1970" },
	{ "op", NAME(event.op, op_words),
	  .meaning = "alloc, free, restore (a free that was refused) or fail" },
	PLACE_COLUMNS(event),
	{ "tid", POSITIVE(event.tid), .meaning = "thread" },
	{ "api", TEXT(event.api), .meaning = "function that was called" },
	{ "result", .base = failure, NUMBER(event.result), .meaning = "of what failed: CUresult" },
	{ "stack", POSITIVE(stack), .meaning = "call site of the allocation, also on its free" },
};
#undef OF

static void write_event(void *context, const struct event_row *event)
{
	sheet_row(context, &(struct event_cells){ *event, stack_of(context, event->site) });
}

static void write_events(struct sheet *sheet)
{
	rows_events(sheet->rows, write_event, sheet);
}

TABLE(table_events, "events", "allocations, frees and failures that are left in the recording",
      event_columns, write_events);
