/* SPDX-License-Identifier: Apache-2.0 */
/* Tables about code: call sites with what they hold, and the frames of call stacks. */
#include "analysis/view/tables/tables.h"

#include "analysis/view/kinds.h"

/* ---- sites ---- */

static const struct column site_columns[] = {
	KEY_COLUMN,
	{ "stack", COLUMN_INTEGER, "call stack: joins frames, blocks and events" },
	{ "kind", COLUMN_TEXT, "of memory" },
	{ "device", COLUMN_INTEGER, "the driver's number; null: host" },
	{ "function", COLUMN_TEXT, "the place that a person would name: the innermost function of "
				   "the program itself" },
	{ "file", COLUMN_TEXT, "its file, without the directory" },
	{ "line", COLUMN_INTEGER, "its line" },
	{ "callers", COLUMN_TEXT, "who called it: a < b < c" },
	{ "api", COLUMN_TEXT, "function that allocated" },
	{ "role", COLUMN_TEXT, "what the blocks are for: weights, kv, ..." },
	{ "class", COLUMN_TEXT, "leak: proven; growing; live; bounded_cache; retained" },
	{ "shape", COLUMN_TEXT, "of its growth: linear, geometric, quadratic, plateau" },
	{ "bytes", COLUMN_INTEGER, "live at the moment" },
	{ "count", COLUMN_INTEGER, "live blocks" },
	{ "basis", COLUMN_TEXT, "observed, or estimated from a sample" },
	{ "low_bytes", COLUMN_INTEGER, "95 % interval of bytes" },
	{ "high_bytes", COLUMN_INTEGER, "its upper end" },
	{ "grown_bytes", COLUMN_REAL, "over the time observed" },
	{ "slope_bytes_per_s", COLUMN_REAL, "of the floor" },
	{ "slope_low", COLUMN_REAL, "95 % interval of the slope" },
	{ "slope_high", COLUMN_REAL, "its upper end" },
	{ "per_request_bytes", COLUMN_INTEGER, "what each request or cycle adds" },
	{ "cycles", COLUMN_INTEGER, "of the program's work that were seen" },
	{ "peak_bytes", COLUMN_INTEGER, "the most that it held" },
	{ "alloc_count", COLUMN_INTEGER, "allocations in the recording" },
	{ "alloc_bytes", COLUMN_INTEGER, "their bytes" },
	{ "free_count", COLUMN_INTEGER, "frees in the recording" },
	{ "first_ns", COLUMN_INTEGER, "birth of its oldest live block" },
	{ "last_ns", COLUMN_INTEGER, "birth of its youngest live block" },
	{ "holds_blocks", COLUMN_BOOLEAN, "a framework splits its blocks, which have rows of their "
					  "own for the same bytes" },
};

static void add_place(struct sheet *sheet, const struct fact_stack *stack)
{
	struct place place;

	place_of(sheet->places, stack, &place);
	cell_text(sheet, place.function);
	cell_word(sheet, place.file);
	cell_positive(sheet, place.line);
	cell_word(sheet, place.callers);
}

static void add_growth(struct sheet *sheet, const struct fact_site *site)
{
	cell_real(sheet, site->grown_bytes);
	cell_real(sheet, site->slope_bytes_per_s);
	cell_real(sheet, site->interval[0]);
	cell_real(sheet, site->interval[1]);
	cell_number(sheet, site->per_request_bytes);
	cell_number(sheet, site->cycles);
}

static void write_site(struct sheet *sheet, const struct fact_site *site)
{
	if (!sheet_wants(sheet, site->kind, site->device))
		return;
	sheet_begin(sheet);
	cell_stack(sheet, &site->stack);
	cell_text(sheet, kind_name(site->kind));
	cell_device(sheet, site->device);
	add_place(sheet, &site->stack);
	cell_text(sheet, site->api);
	cell_text(sheet, site->role);
	cell_text(sheet, class_names[site->class]);
	cell_word(sheet, shape_names[site->shape]);
	cell_number(sheet, site->bytes);
	cell_number(sheet, site->count);
	cell_word(sheet, basis_names[site->basis]);
	cell_number(sheet, site->low_bytes);
	cell_number(sheet, site->high_bytes);
	add_growth(sheet, site);
	cell_number(sheet, site->peak_bytes);
	cell_number(sheet, site->alloc_count);
	cell_number(sheet, site->alloc_bytes);
	cell_number(sheet, site->free_count);
	cell_number(sheet, site->first_ns);
	cell_number(sheet, site->last_ns);
	cell_flag(sheet, site->holds_blocks);
	sheet_end(sheet);
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

static const struct column frame_columns[] = {
	KEY_COLUMN,
	{ "stack", COLUMN_INTEGER, "call stack" },
	{ "depth", COLUMN_INTEGER, "0: the caller of the allocator" },
	{ "function", COLUMN_TEXT, "demangled; qualified in Python" },
	{ "module", COLUMN_TEXT, "program file or library" },
	{ "file", COLUMN_TEXT, "source" },
	{ "line", COLUMN_INTEGER, "of the source" },
	{ "language", COLUMN_TEXT, "native or python" },
	{ "address", COLUMN_INTEGER, "return address; null: Python" },
	{ "is_inlined", COLUMN_BOOLEAN, "into the next frame" },
};

static void write_frame(struct sheet *sheet, uint32_t stack, size_t depth,
			const struct frame *frame)
{
	sheet_begin(sheet);
	cell_number(sheet, stack);
	cell_number(sheet, depth);
	cell_text(sheet, frame->function);
	cell_text(sheet, frame->module);
	cell_text(sheet, frame->file);
	cell_positive(sheet, frame->line);
	cell_text(sheet, frame->language);
	cell_number(sheet, frame_is_python(frame) ? CUF_UNKNOWN : frame->addr);
	cell_flag(sheet, frame->inlined);
	sheet_end(sheet);
}

static void write_stack(void *context, const struct fact_stack *stack)
{
	struct sheet *sheet = context;
	const struct frame *frames;
	size_t count = frames_of(sheet->frames, stack, &frames);

	for (size_t i = 0; i < count; i++)
		write_frame(sheet, stack->id, i, &frames[i]);
}

static void write_frames(struct sheet *sheet)
{
	rows_call_sites(sheet->rows, 0, write_stack, sheet);
}

TABLE(table_frames, "frames", "the frames of call stacks, innermost first", frame_columns,
      write_frames);
