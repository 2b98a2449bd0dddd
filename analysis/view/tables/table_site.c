/* SPDX-License-Identifier: Apache-2.0 */
/* Tables about code: call sites with what they hold, and the frames of call stacks. */
#include "analysis/view/tables/tables.h"

/* ---- sites ---- */

struct site_cells { struct fact_site site; struct place place; };
#define OF struct site_cells
static const struct field site_columns[] = {
	KEY_COLUMN,
	{ "stack", STACK(site.stack), .meaning = "call stack: joins frames, blocks and events" },
	{ "kind", NAME(site.kind, kind_words), .meaning = "of memory" },
	{ "device", DEVICE(site.device), .meaning = "the driver's number; null: host" },
	{ "function", TEXT_HERE(place.function),
	  .meaning = "the place that a person would name: the innermost function of the program "
	  "itself" },
	{ "file", WORD_HERE(place.file), .meaning = "its file, without the directory" },
	{ "line", POSITIVE(place.line), .meaning = "its line" },
	{ "callers", WORD_HERE(place.callers), .meaning = "who called it: a < b < c" },
	{ "api", TEXT(site.api), .meaning = "function that allocated" },
	{ "role", TEXT(site.role), .meaning = "what the blocks are for: weights, kv, ..." },
	{ "class", NAME(site.class, class_words),
	  .meaning = "leak: proven; growing; live; bounded_cache; retained" },
	{ "shape", NAME(site.shape, growth_words),
	  .meaning = "of its growth: linear, geometric, quadratic, plateau" },
	{ "bytes", NUMBER(site.bytes), .meaning = "live at the moment" },
	{ "count", NUMBER(site.count), .meaning = "live blocks" },
	{ "basis", BASIS(site.basis), .meaning = "observed, or estimated from a sample" },
	{ "low_bytes", NUMBER(site.low_bytes), .meaning = "95 % interval of bytes" },
	{ "high_bytes", NUMBER(site.high_bytes), .meaning = "its upper end" },
	{ "grown_bytes", REAL(site.grown_bytes), .meaning = "over the time observed" },
	{ "slope_bytes_per_s", REAL(site.slope_bytes_per_s), .meaning = "of the floor" },
	{ "slope_low", REAL(site.interval[0]), .meaning = "95 % interval of the slope" },
	{ "slope_high", REAL(site.interval[1]), .meaning = "its upper end" },
	{ "per_request_bytes", NUMBER(site.per_request_bytes),
	  .meaning = "what each request or cycle adds" },
	{ "cycles", NUMBER(site.cycles), .meaning = "of the program's work that were seen" },
	{ "peak_bytes", NUMBER(site.peak_bytes), .meaning = "the most that it held" },
	{ "alloc_count", NUMBER(site.alloc_count), .meaning = "allocations in the recording" },
	{ "alloc_bytes", NUMBER(site.alloc_bytes), .meaning = "their bytes" },
	{ "free_count", NUMBER(site.free_count), .meaning = "frees in the recording" },
	{ "first_ns", NUMBER(site.first_ns), .meaning = "birth of its oldest live block" },
	{ "last_ns", NUMBER(site.last_ns), .meaning = "birth of its youngest live block" },
	{ "holds_blocks", FLAG(site.holds_blocks),
	  .meaning = "a framework splits its blocks, which have rows of their own for the same "
	  "bytes" },
};
#undef OF

static void write_site(struct sheet *sheet, const struct fact_site *site)
{
	struct site_cells cells = { .site = *site };

	if (!sheet_wants(sheet, site->kind, site->device))
		return;
	place_of(sheet->places, &site->stack, &cells.place);
	sheet_row(sheet, &cells);
}

/* Sites that hold memory, then those that grew and hold none at the moment. */
static void write_sites(struct sheet *sheet)
{
	for (size_t i = 0; i < sheet->facts->leak_count; i++)
		write_site(sheet, &sheet->facts->leaks[i]);
	for (size_t i = 0; i < sheet->facts->growth_count; i++)
		if (!sheet->facts->growth[i].count)
			write_site(sheet, &sheet->facts->growth[i]);
}

TABLE(table_sites, "sites", "call sites: what each holds at the moment, and how that changed",
      site_columns, write_sites);

/* ---- frames ---- */

static const void *native(const struct fields *fields, const void *object)
{
	const struct frame *frame = object;

	return frame_is_python(frame) ? NULL : frame;
}

struct frame_cells { struct frame frame; uint32_t stack; size_t depth; };
#define OF struct frame_cells
static const struct field frame_columns[] = {
	KEY_COLUMN,
	{ "stack", NUMBER(stack), .meaning = "call stack" },
	{ "depth", NUMBER(depth), .meaning = "0: the caller of the allocator" },
	{ "function", TEXT(frame.function), .meaning = "demangled; qualified in Python" },
	{ "module", TEXT(frame.module), .meaning = "program file or library" },
	{ "file", TEXT(frame.file), .meaning = "source" },
	{ "line", POSITIVE(frame.line), .meaning = "of the source" },
	{ "language", TEXT(frame.language), .meaning = "native or python" },
	{ "address", .base = native, NUMBER(frame.addr),
	  .meaning = "return address; null: Python" },
	{ "is_inlined", FLAG(frame.inlined), .meaning = "into the next frame" },
};
#undef OF

static void write_stack(void *context, const struct fact_stack *stack)
{
	struct sheet *sheet = context;
	const struct frame *frames;
	size_t count = frames_of(sheet->frames, stack, &frames);

	for (size_t i = 0; i < count; i++)
		sheet_row(sheet, &(struct frame_cells){ frames[i], stack->id, i });
}

static void write_frames(struct sheet *sheet)
{
	rows_call_sites(sheet->rows, 0, write_stack, sheet);
}

TABLE(table_frames, "frames", "the frames of call stacks, innermost first", frame_columns,
      write_frames);
