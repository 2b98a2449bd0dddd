/* SPDX-License-Identifier: Apache-2.0 */
/* The table of holders: "weights  load_weights (:58)  7.50 GiB  47%  #######  steady". */
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/facts/kinds.h"
#include "analysis/view/text/holders.h"

/*
 * Columns. A wide terminal leaves the rest of its lines empty: figures far from their names
 * are hard to read.
 */
enum { ROLE = 10, BYTES = 9, PERCENT = 4, BAR = 8, TREND = 7, GAP = 2, WIDEST = 100,
	NAME_MAX = 200 };

struct layout {
	const struct text *text;
	const struct holders *holders;
	unsigned rows;          /* that may be printed */
	size_t role, name;      /* columns; role 0: no row has one, or no room */
	bool bars, trends;
	const char *file;       /* of most rows: left out of their names where they do not fit */
	bool short_names;
};

/* LEAK replaces the role: it is what the reader has to see first. */
static const char *role_or_leak(const struct holder *row)
{
	return row->leaks ? "LEAK" : role_word(row->role);
}

/* In a run of milliseconds everything grows: the weights are still being loaded. */
const char *holder_trend(const struct holder *row)
{
	bool is_sure = row->shape == SHAPE_PLATEAU || row->suspect || row->long_run;

	return text_if(row->sort == HOLDER_SITE && is_sure, shape_word(row->shape));
}

static void name_in_full(const struct holder *row, char *out, size_t bytes)
{
	if (row->sort == HOLDER_SITE)
		place_text(&row->place, out, bytes);
	else
		snprintf(out, bytes, "%s", row->words);
}

/* The largest row that the cause is about, unless it is one of many processes; else the count. */
static size_t first_suspect(const struct holders *holders)
{
	size_t at = 0;
	while (at < holders->count &&
	       (!holders->rows[at].suspect || holders->rows[at].is_process))
		at++;
	return at;
}

/*
 * Is the row printed by itself? The largest are, and the largest that the cause is about. One of
 * the rows is for what is free, one for the sum of those that are not printed.
 */
static bool is_kept(const struct holders *holders, size_t index, unsigned rows)
{
	const struct holder *row = &holders->rows[index];
	size_t before = 1, first = first_suspect(holders);
	if (holders->count <= rows || row->sort == HOLDER_FREE)
		return true;
	if (row->sort == HOLDER_OUTSIDE)
		return false;
	for (size_t i = 0; i < holders->count; i++)
		before += holders->rows[i].sort == HOLDER_FREE ||
			  (holders->rows[i].sort < HOLDER_FREE && index != first &&
			   (i == first || i < index));
	return before < rows;
}

/* Another path to the same line is only told apart by its callers. */
static bool needs_callers(const struct layout *layout, const struct holder *row)
{
	for (size_t i = 0; i < layout->holders->count; i++) {
		const struct holder *other = &layout->holders->rows[i];
		if (other != row && other->sort == HOLDER_SITE &&
		    place_is_same(&other->place, &row->place) &&
		    !place_has_same_path(&other->place, &row->place) &&
		    is_kept(layout->holders, i, layout->rows))
			return true;
	}
	return false;
}

/* Of a row and those of the same line: is there no room for a first caller behind the name? */
static bool lacks_room(const struct layout *layout, const struct holder *row)
{
	for (size_t i = 0; i < layout->holders->count; i++) {
		const struct holder *other = &layout->holders->rows[i];
		if (other->sort == HOLDER_SITE && place_is_same(&other->place, &row->place) &&
		    is_kept(layout->holders, i, layout->rows) && *other->place.callers &&
		    strlen(other->place.function) + 3 + strcspn(other->place.callers, " ") >
			    layout->name)
			return true;
	}
	return false;
}

/* "run_attention < ask < step": without lines, there is no room for them. Where there is none for
 * a first caller either, "ask < step": it tells more than a name that several rows have. */
static void name_with_callers(const struct layout *layout, const struct holder *row, char *out,
			      size_t bytes)
{
	size_t used = 0, columns = layout->name;
	if (!lacks_room(layout, row))
		used = (size_t)snprintf(out, bytes, "%s", row->place.function);
	for (const char *caller = row->place.callers; caller && *caller;) {
		size_t name = strcspn(caller, " ");
		if (used + 3 + name > columns || used + 4 + name > bytes)
			return;
		used += (size_t)snprintf(out + used, bytes - used, "%s%.*s",
					 text_if(used, " < "), (int)name, caller);
		caller = strstr(caller, " < "); /* a name may have a bracket: <module> */
		if (caller)
			caller += 3;
	}
}

/* "append_kv (:64)" of a row in the common file; of another "Chunks.answer.<..> (plain.py:153)",
 * without the line where that is still too long. */
static void name_of(const struct layout *layout, const struct holder *row, char *out, size_t bytes)
{
	const struct place *place = &row->place;
	char line[NAME_MAX / 2] = "";

	name_in_full(row, out, bytes);
	if (row->sort == HOLDER_SITE && needs_callers(layout, row)) {
		name_with_callers(layout, row, out, bytes);
		return;
	}
	if (row->sort != HOLDER_SITE || !layout->short_names)
		return;
	if (*place->file && !strcmp(place->file, layout->file))
		snprintf(line, sizeof line, " (:%u)%s", place->line, place_thread(place));
	else if (clean_columns(out) <= layout->name)
		return;
	else if (*place->file)
		text_append(line, sizeof line, " (%s:%u)%s", place->file, place->line,
			    place_thread(place));
	place_function(place, subtract_to_zero(layout->name, strlen(line)), out,
		       bytes - sizeof line);
	if (strlen(out) + strlen(line) <= layout->name || !strcmp(place->file, layout->file))
		strcat(out, line);
	else
		place_function(place, layout->name, out, bytes);
}

/* The file that most of the sites are in. */
static const char *common_file(const struct holders *holders)
{
	const char *best = "";
	size_t most = 0;
	for (size_t i = 0; i < holders->count; i++) {
		size_t same = 0;
		for (size_t j = 0; j < holders->count; j++)
			same += !strcmp(holders->rows[i].place.file, holders->rows[j].place.file);
		if (*holders->rows[i].place.file && same > most) {
			most = same;
			best = holders->rows[i].place.file;
		}
	}
	return best;
}

/* The column of roles and the blank behind it. */
static size_t role_columns(const struct layout *layout)
{
	if (!layout->role)
		return 0;
	return layout->role + 1;
}

/*
 * Columns are given up in the order in which they are missed least: bars below 70 columns,
 * trends below 60, roles below 50. Names are shortened only where one does not fit.
 */
static void lay_out(const struct text *text, const struct holders *holders, unsigned rows,
		    struct layout *layout)
{
	size_t columns = text->style->columns;
	char name[NAME_MAX];
	if (columns > WIDEST)
		columns = WIDEST;
	*layout = (struct layout){ .text = text, .holders = holders, .rows = rows,
		.bars = columns >= 70, .trends = columns >= 60 };
	for (size_t i = 0; i < holders->count; i++)
		if (*role_or_leak(&holders->rows[i]) && columns >= 50)
			layout->role = ROLE;
	columns -= GAP + role_columns(layout) + GAP + BYTES + GAP + PERCENT;
	if (layout->bars)
		columns -= GAP + BAR;
	if (layout->trends)
		columns -= GAP + TREND;
	layout->name = columns;
	layout->file = common_file(holders);
	for (size_t i = 0; i < holders->count; i++) {
		name_in_full(&holders->rows[i], name, sizeof name);
		layout->short_names |= holders->rows[i].sort == HOLDER_SITE &&
			clean_columns(name) > columns;
	}
}

/* In at most `columns` columns, cut with "..", and padded. */
static void print_cell(const struct layout *layout, const char *words, size_t columns)
{
	char clean[NAME_MAX];
	size_t width, at = 0;
	clean_terminal(clean, sizeof clean, words, !layout->text->style->utf8);
	width = clean_columns(clean);
	if (width > columns) {
		for (size_t i = 0; i + 2 < columns; i++)
			at += clean_character(clean + at);
		snprintf(clean + at, sizeof clean - at, "..");
		width = columns;
	}
	fprintf(layout->text->out, "%s%*s", clean, (int)(columns - width), "");
}

/* A '#' for each fifteenth of the total: more than half of it fills the bar. */
static int bar_marks(uint64_t bytes, uint64_t total)
{
	int marks = 0;
	if (total && total != CUF_UNKNOWN)
		marks = (int)(15.0 * (double)bytes / (double)total + 0.5);
	if (marks > BAR)
		return BAR;
	return marks;
}

/* The last columns; no blanks at the end of the line. */
static void print_bar_and_trend(const struct layout *layout, const struct holder *row,
				uint64_t total)
{
	FILE *out = layout->text->out;
	const char *trend = text_if(layout->trends, holder_trend(row));
	int marks = 0, padding = GAP + BAR;
	if (layout->bars && row->sort <= HOLDER_PART)
		marks = bar_marks(row->bytes, total);
	if (marks) {
		fprintf(out, "%*s%.*s", GAP, "", marks, "########");
		padding = BAR - marks;
	}
	if (!*trend)
		return;
	if (layout->bars)
		fprintf(out, "%*s", padding, "");
	fprintf(out, "%*s%s", GAP, "", trend);
}

/*
 * Empty where a share would be wrong: the total is unknown or the two were read at different
 * moments.
 */
static void percent_text(uint64_t bytes, uint64_t total, char *out, size_t size)
{
	*out = 0;
	if (total && total != CUF_UNKNOWN && bytes <= total)
		snprintf(out, size, "%.0f%%", 100.0 * (double)bytes / (double)total);
}

/* The name takes the columns of role and bars where those are empty, and no blanks end a line. */
static void print_row(const struct layout *layout, const struct holder *row, uint64_t total)
{
	FILE *out = layout->text->out;
	const char *role = role_or_leak(row);
	char name[NAME_MAX], percent[16], likely[24];
	uint64_t share = row->bytes;

	name_of(layout, row, name, sizeof name);
	if (row->suspect)
		fprintf(out, "%s> ", style_on(layout->text->style, STYLE_BAD));
	else
		fputs("  ", out);
	snprintf(likely, sizeof likely, "%s%s", role,
		 text_if(*role && row->role_is_likely && !row->leaks, "?"));
	if (layout->role && *likely) {
		print_cell(layout, likely, layout->role);
		fputc(' ', out);
		print_cell(layout, name, layout->name);
	} else {
		print_cell(layout, name, layout->name + role_columns(layout));
	}
	if (row->sort == HOLDER_OUTSIDE)
		share = CUF_UNKNOWN; /* not part of the total */
	percent_text(share, total, percent, sizeof percent);
	fprintf(out, "%*s%*s", GAP, "", BYTES, text_sampled(row->bytes, row->sampled).s);
	if (*percent)
		fprintf(out, "%*s%*s", GAP, "", PERCENT, percent);
	print_bar_and_trend(layout, row, total);
	if (row->suspect)
		fputs(style_off(layout->text->style), out);
	fputc('\n', out);
}

/* The total stands above the column of bytes. */
static void print_title(const struct layout *layout, const struct holders *holders)
{
	FILE *out = layout->text->out;
	size_t columns = GAP + role_columns(layout) + layout->name;
	fputs(style_on(layout->text->style, STYLE_HEAD), out);
	print_cell(layout, holders->title, columns);
	fputs(style_off(layout->text->style), out);
	fprintf(out, "%*s%*s\n", GAP, "", BYTES, units_bytes(holders->total_bytes).s);
}

/* "4 call sites, CUDA context": what the row of the rest sums up. */
/* "other: anonymous memory" */
static const char *without_other(const char *words)
{
	static const char other[] = "other ";

	return words + (strncmp(words, other, strlen(other)) ? 0 : strlen(other));
}

static void sum_up(const struct holders *holders, unsigned rows, struct holder *rest,
		   size_t columns)
{
	size_t sites = 0, used;
	bool more = false;
	*rest = (struct holder){ .sort = HOLDER_PART };
	for (size_t i = 0; i < holders->count; i++)
		if (!is_kept(holders, i, rows) && holders->rows[i].sort != HOLDER_OUTSIDE) {
			rest->bytes += holders->rows[i].bytes;
			rest->sampled |= holders->rows[i].sampled;
			sites += holders->rows[i].sort == HOLDER_SITE;
		}
	snprintf(rest->words, sizeof rest->words, "other: ");
	if (sites)
		snprintf(rest->words, sizeof rest->words, "other: %zu call site%s", sites,
			 text_s(sites));
	for (size_t i = 0; i < holders->count; i++) {
		const struct holder *row = &holders->rows[i];
		if (is_kept(holders, i, rows) || row->sort == HOLDER_SITE ||
		    row->sort == HOLDER_OUTSIDE)
			continue;
		used = strlen(rest->words);
		if (used + strlen(row->words) + sizeof " and more" > columns ||
		    used + strlen(row->words) + 3 > sizeof rest->words) {
			more = true;
			continue;
		}
		snprintf(rest->words + used, sizeof rest->words - used, "%s%s",
			 text_if(used > strlen("other: "), ", "), without_other(row->words));
	}
	used = strlen(rest->words);
	if (more)
		snprintf(rest->words + used, sizeof rest->words - used, "%s",
			 used > strlen("other: ") ? " and more" : "smaller ones");
}

/* The rest is printed behind the sites and parts, before what is free. */
unsigned holders_print(const struct text *text, const struct holders *holders, unsigned rows)
{
	struct layout layout;
	struct holder rest;
	unsigned lines = 1;
	bool printed_rest = false;
	if (!holders->count)
		return 0;
	lay_out(text, holders, rows, &layout);
	print_title(&layout, holders);
	sum_up(holders, rows, &rest, layout.name + layout.role);
	for (size_t i = 0; i < holders->count; i++) {
		if (holders->rows[i].sort >= HOLDER_FREE && rest.bytes && !printed_rest) {
			print_row(&layout, &rest, holders->total_bytes);
			printed_rest = true;
			lines++;
		}
		if (is_kept(holders, i, rows)) {
			print_row(&layout, &holders->rows[i], holders->total_bytes);
			lines++;
		}
	}
	if (rest.bytes && !printed_rest) {
		print_row(&layout, &rest, holders->total_bytes);
		lines++;
	}
	return lines;
}
