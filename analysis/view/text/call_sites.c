/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "By call site": one table of what each holds and how that developed, and the stacks of
 * the largest.
 */
#include <stdlib.h>
#include <string.h>
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/kinds.h"
#include "analysis/view/text/sections.h"
#include "analysis/base/terminal.h"

enum { STACKS = 3, SITES_READ = 1000, FIGURES = 42 /* columns before the call site */,
	SITE_LEAST = 24 };

/* Sites that print alike. */
struct line {
	const struct fact_site *site; /* the largest of them */
	struct place place;
	uint64_t bytes, count, peak_bytes;
	bool sampled, leaks;
	enum fact_shape shape;
};

struct lines { struct line *items; size_t count, room; };

/* A line is sampled or leaks as soon as one of its sites does. */
static void merge(struct line *line, const struct fact_site *site)
{
	if (site->bytes != CUF_UNKNOWN)
		line->bytes += site->bytes;
	if (site->count != CUF_UNKNOWN)
		line->count += site->count;
	if (site->peak_bytes != CUF_UNKNOWN)
		line->peak_bytes += site->peak_bytes;
	line->sampled |= site->basis == BASIS_ESTIMATED;
	line->leaks |= site->class == CLASS_LEAK;
	/* one growing site makes the line grow */
	if ((line->shape == SHAPE_NONE || line->shape == SHAPE_PLATEAU) &&
	    site->shape != SHAPE_NONE)
		line->shape = site->shape;
}

/*
 * Sites of one kind, process and device that print alike share a line: two lines with the same
 * text would look like an error. The search is linear, which SITES_READ bounds.
 */
static void fold_site(const struct text *text, struct lines *lines, const struct fact_site *site)
{
	struct place place;
	place_of(text->places, &site->stack, &place);
	for (size_t i = 0; i < lines->count; i++) {
		struct line *line = &lines->items[i];
		if (line->site->kind != site->kind || line->site->process != site->process ||
		    line->site->device != site->device ||
		    !place_shares_row(&line->place, NULL, &place, NULL,
				      site->device == FACT_NONE))
			continue;
		merge(line, site);
		return;
	}
	xalloc_grow(&lines->items, lines->count, &lines->room, sizeof *lines->items);
	lines->items[lines->count] = (struct line){ .site = site, .place = place };
	merge(&lines->items[lines->count++], site);
}

/*
 * Largest first. The name decides between equals, so that the output does not depend on the
 * order of the sites.
 */
static int by_line_bytes(const void *a, const void *b)
{
	const struct line *left = a, *right = b;
	if (left->bytes != right->bytes)
		return left->bytes > right->bytes ? -1 : 1;
	return strcmp(left->place.function, right->place.function);
}

/* The call site gets the columns that the figures leave, but never less than is legible. */
static void add_line_row(const struct text *text, struct table *table, const struct line *line)
{
	size_t columns = SITE_LEAST;
	char where[TEXT_LINE_BYTES], count[48];
	const char *trend = line->leaks ? "leaks" : shape_word(line->shape);
	if (text->style->columns > FIGURES + SITE_LEAST)
		columns = text->style->columns - FIGURES;
	text_place(text, &line->site->stack, columns, where, sizeof where);
	snprintf(count, sizeof count, "%s%s", text_if(line->sampled, "~"),
		 units_count(line->count).s);
	table_row(table, (const char *[]){
		text_sampled(line->bytes, line->sampled).s,
		text_sampled(line->peak_bytes, line->sampled).s,
		count, kind_word(line->site->kind), trend, where,
	});
	if (line->leaks)
		table_tone(table, STYLE_BAD);
}

/*
 * The table has room for a function and its callers. The full stacks of the first few follow.
 */
static void print_stacks(const struct text *text, const struct lines *lines)
{
	for (size_t i = 0; i < lines->count && i < STACKS; i++) {
		const struct line *line = &lines->items[i];
		if (!line->site->stack.depth)
			continue;
		fprintf(text->out, "\n  %s", text_sampled(line->bytes, line->sampled).s);
		if (line->site->api)
			fprintf(text->out, " by %s", line->site->api);
		fputc('\n', text->out);
		text_stack(text, &line->site->stack, 4);
	}
}

void section_call_sites(const struct text *text)
{
	static const struct table_column columns[] = {
		{ "bytes", TABLE_RIGHT }, { "at peak", TABLE_RIGHT }, { "blocks", TABLE_RIGHT },
		{ "kind", TABLE_LEFT }, { "trend", TABLE_LEFT }, { "call site", TABLE_FLEX },
	};
	const struct facts *facts = text->facts;
	struct lines lines = { 0 };
	struct table *table;
	size_t rows = text_rows(text);

	for (size_t i = 0; i < facts->leak_count && i < SITES_READ; i++)
		if (!facts->leaks[i].holds_blocks)
			fold_site(text, &lines, &facts->leaks[i]);
	if (!lines.count)
		return;
	qsort(lines.items, lines.count, sizeof *lines.items, by_line_bytes);
	text_section(text, "By call site");
	table = table_new(text->style, columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < lines.count && i < rows; i++)
		add_line_row(text, table, &lines.items[i]);
	table_print(table, text->out, 2);
	table_free(table);
	if (lines.count > rows)
		fprintf(text->out, "  and %zu more (--top=%zu)\n", lines.count - rows, lines.count);
	print_stacks(text, &lines);
	free(lines.items);
}

/* ---- what keeps partly used memory alive ---- */

void text_pins(const struct text *text, const struct fact_pin *pins, size_t count,
	       const char *unit)
{
	const struct table_column columns[] = {
		{ "unused", TABLE_RIGHT }, { unit, TABLE_RIGHT }, { "blocks", TABLE_RIGHT },
		{ "bytes", TABLE_RIGHT }, { "kept alive by", TABLE_FLEX },
	};
	struct table *table;
	char where[TEXT_LINE_BYTES];

	if (!count)
		return;
	table = table_new(text->style, columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < count && i < text_rows(text); i++) {
		const struct fact_pin *pin = &pins[i];

		snprintf(where, sizeof where, "small blocks whose stacks were not sampled");
		if (pin->stack.depth)
			text_place(text, &pin->stack, text->style->columns, where, sizeof where);
		table_row(table, (const char *[]){
			units_bytes(pin->open_bytes).s, units_count(pin->pages).s,
			units_count(pin->count).s, units_bytes(pin->bytes).s, where,
		});
	}
	table_print(table, text->out, TEXT_LABEL);
	table_free(table);
}
