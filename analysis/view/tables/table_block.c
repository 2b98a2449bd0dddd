/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that grow with the recording: blocks and events. They are streamed. */
#include "analysis/view/tables/tables.h"

#include "analysis/view/kinds.h"

#define PLACE_COLUMNS \
	{ "kind", COLUMN_TEXT, "device, managed, pinned, registered, async, vmm, array, " \
			       "imported, " \
			       "framework (inside a device block: do not add them) or host" }, \
	{ "part", COLUMN_TEXT, "of the host: malloc, map or python" }, \
	{ "device", COLUMN_INTEGER, "the driver's number; null: host" }, \
	{ "address", COLUMN_INTEGER, "a number, so that ranges can be computed" }, \
	{ "bytes", COLUMN_INTEGER, "as requested" }, \
	{ "weight_bytes", COLUMN_INTEGER, "bytes that it stands for: more than its own where the " \
					  "recorder sampled" }, \
	{ "weight_count", COLUMN_INTEGER, "blocks that it stands for" }

/* The call site of a row; 0: unknown. */
static uint32_t stack_of(const struct sheet *sheet, uint32_t site)
{
	return site ? rows_site(sheet->rows, site).stack : 0;
}

/* ---- blocks ---- */

static const struct column block_columns[] = {
	KEY_COLUMN,
	PLACE_COLUMNS,
	{ "born_ns", COLUMN_INTEGER, "allocated, in nanoseconds since 1970; null: before the "
				     "events that are left" },
	{ "died_ns", COLUMN_INTEGER, "freed; null: it lived at the end" },
	{ "born_seq", COLUMN_INTEGER, "the same in the order of device events" },
	{ "died_seq", COLUMN_INTEGER, "the same in the order of device events" },
	{ "tid", COLUMN_INTEGER, "thread that allocated it" },
	{ "api", COLUMN_TEXT, "function that was called" },
	{ "role", COLUMN_TEXT, "what it is for: weights, kv, ..." },
	{ "phase", COLUMN_TEXT, "innermost phase of the thread at its birth" },
	{ "request_id", COLUMN_INTEGER, "request that was open then" },
	{ "stack", COLUMN_INTEGER, "call site: joins sites and frames" },
};

static void write_block(void *context, const struct block_row *block)
{
	struct sheet *sheet = context;

	sheet_begin(sheet);
	cell_text(sheet, kind_name(block->kind));
	cell_text(sheet, row_part_names[block->part]);
	cell_device(sheet, block->device);
	cell_number(sheet, block->addr);
	cell_number(sheet, block->bytes);
	cell_number(sheet, block->weight_bytes);
	cell_number(sheet, block->weight_count);
	cell_number(sheet, block->born_ns);
	cell_number(sheet, block->died_ns);
	cell_positive(sheet, block->born_seq);
	cell_positive(sheet, block->died_seq);
	cell_positive(sheet, block->tid);
	cell_text(sheet, block->api);
	cell_text(sheet, block->role);
	cell_text(sheet, block->phase);
	cell_number(sheet, block->request);
	cell_positive(sheet, stack_of(sheet, block->site));
	sheet_end(sheet);
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

static const struct column event_columns[] = {
	KEY_COLUMN,
	{ "seq", COLUMN_INTEGER, "order of device events; null: host" },
	{ "time_ns", COLUMN_INTEGER, "in nanoseconds since 1970" },
	{ "op", COLUMN_TEXT, "alloc, free, restore (a free that was refused) or fail" },
	PLACE_COLUMNS,
	{ "tid", COLUMN_INTEGER, "thread" },
	{ "api", COLUMN_TEXT, "function that was called" },
	{ "result", COLUMN_INTEGER, "of what failed: CUresult" },
	{ "stack", COLUMN_INTEGER, "call site of the allocation, also on its free" },
};

static void write_event(void *context, const struct event_row *event)
{
	struct sheet *sheet = context;

	sheet_begin(sheet);
	cell_positive(sheet, event->seq);
	cell_number(sheet, event->time_ns);
	cell_text(sheet, event_op_names[event->op]);
	cell_text(sheet, kind_name(event->kind));
	cell_text(sheet, row_part_names[event->part]);
	cell_device(sheet, event->device);
	cell_number(sheet, event->addr);
	cell_number(sheet, event->bytes);
	cell_number(sheet, event->weight_bytes);
	cell_number(sheet, event->weight_count);
	cell_positive(sheet, event->tid);
	cell_text(sheet, event->api);
	cell_number(sheet, event->op == EVENT_FAIL ? event->result : CUF_UNKNOWN);
	cell_positive(sheet, stack_of(sheet, event->site));
	sheet_end(sheet);
}

static void write_events(struct sheet *sheet)
{
	rows_events(sheet->rows, write_event, sheet);
}

TABLE(table_events, "events", "allocations, frees and failures that are left in the recording",
      event_columns, write_events);
