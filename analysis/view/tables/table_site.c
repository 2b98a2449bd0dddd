/* SPDX-License-Identifier: Apache-2.0 */
/* Tables about code: call sites with what they hold, and the frames of call stacks. */
#include "analysis/view/tables/tables.h"

/* ---- sites ---- */

struct site_cells { const struct fact_site *site; struct place place; };
#define SITE VIA(struct site_cells, site)
#define OF struct fact_site
static const struct field site_columns[] = {
	KEY_COLUMN,
	{ "stack", SITE, STACK(stack), .meaning = "call stack: joins frames, blocks and events" },
	{ "kind", SITE, NAME(kind, kind_words), .meaning = "of memory" },
	{ "device", SITE, DEVICE(device), .meaning = "the driver's number; null: host" },
#undef OF
#define OF struct site_cells
	{ "function", TEXT_HERE(place.function),
	  .meaning = "the place that a person would name: the innermost function of the program "
	  "itself" },
	{ "file", WORD_HERE(place.file), .meaning = "its file, without the directory" },
	{ "line", POSITIVE(place.line), .meaning = "its line" },
	{ "callers", WORD_HERE(place.callers), .meaning = "who called it: a < b < c" },
#undef OF
#define OF struct fact_site
	{ "api", SITE, TEXT(api), .meaning = "function that allocated" },
	{ "role", SITE, TEXT(role), .meaning = "what the blocks are for: weights, kv, ..." },
	{ "class", SITE, NAME(class, class_words),
	  .meaning = "leak: proven; growing; live; bounded_cache; retained" },
	{ "shape", SITE, NAME(shape, growth_words),
	  .meaning = "of its growth: linear, geometric, quadratic, plateau" },
	{ "bytes", SITE, NUMBER(bytes), .meaning = "live at the moment" },
	{ "count", SITE, NUMBER(count), .meaning = "live blocks" },
	{ "basis", SITE, BASIS(basis), .meaning = "observed, or estimated from a sample" },
	{ "low_bytes", SITE, NUMBER(low_bytes), .meaning = "95 % interval of bytes" },
	{ "high_bytes", SITE, NUMBER(high_bytes), .meaning = "its upper end" },
	{ "grown_bytes", SITE, REAL(grown_bytes), .meaning = "over the time observed" },
	{ "slope_bytes_per_s", SITE, REAL(slope_bytes_per_s), .meaning = "of the floor" },
	{ "slope_low", SITE, REAL(interval[0]), .meaning = "95 % interval of the slope" },
	{ "slope_high", SITE, REAL(interval[1]), .meaning = "its upper end" },
	{ "per_request_bytes", SITE, NUMBER(per_request_bytes),
	  .meaning = "what each request or cycle adds" },
	{ "cycles", SITE, NUMBER(cycles), .meaning = "of the program's work that were seen" },
	{ "peak_bytes", SITE, NUMBER(peak_bytes), .meaning = "the most that it held" },
	{ "alloc_count", SITE, NUMBER(alloc_count), .meaning = "allocations in the recording" },
	{ "alloc_bytes", SITE, NUMBER(alloc_bytes), .meaning = "their bytes" },
	{ "free_count", SITE, NUMBER(free_count), .meaning = "frees in the recording" },
	{ "first_ns", SITE, NUMBER(first_ns), .meaning = "birth of its oldest live block" },
	{ "last_ns", SITE, NUMBER(last_ns), .meaning = "birth of its youngest live block" },
	{ "holds_blocks", SITE, FLAG(holds_blocks),
	  .meaning = "a framework splits its blocks, which have rows of their own for the same "
	  "bytes" },
#undef OF
};

static void write_site(struct sheet *sheet, const struct fact_site *site)
{
	struct site_cells cells = { .site = site };

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
	const struct frame *frame = *(const struct frame *const *)object;

	return frame_is_python(frame) ? NULL : frame;
}

struct frame_cells { const struct frame *frame; uint32_t stack; size_t depth; };
#define FRAME VIA(struct frame_cells, frame)
#define OF struct frame_cells
static const struct field frame_columns[] = {
	KEY_COLUMN,
	{ "stack", NUMBER(stack), .meaning = "call stack" },
	{ "depth", NUMBER(depth), .meaning = "0: the caller of the allocator" },
#undef OF
#define OF struct frame
	{ "function", FRAME, TEXT(function), .meaning = "demangled; qualified in Python" },
	{ "module", FRAME, TEXT(module), .meaning = "program file or library" },
	{ "file", FRAME, TEXT(file), .meaning = "source" },
	{ "line", FRAME, POSITIVE(line), .meaning = "of the source" },
	{ "language", FRAME, TEXT(language), .meaning = "native or python" },
	{ "address", .base = native, NUMBER(addr), .meaning = "return address; null: Python" },
	{ "is_inlined", FRAME, FLAG(inlined), .meaning = "into the next frame" },
#undef OF
};

static void write_stack(void *context, const struct fact_stack *stack)
{
	struct sheet *sheet = context;
	const struct frame *frames;
	size_t count = frames_of(sheet->frames, stack, &frames);

	for (size_t i = 0; i < count; i++)
		sheet_row(sheet, &(struct frame_cells){ &frames[i], stack->id, i });
}

static void write_frames(struct sheet *sheet)
{
	rows_call_sites(sheet->rows, 0, write_stack, sheet);
}

TABLE(table_frames, "frames", "the frames of call stacks, innermost first", frame_columns,
      write_frames);
