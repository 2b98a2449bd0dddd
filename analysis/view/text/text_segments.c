/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of frameworks' segments: how full they are, the largest hole, and the sites whose blocks keep them. */
#include "analysis/view/text/text.h"

#include <string.h>
#include "analysis/base/units.h"
#include "analysis/view/text/table.h"

/* Segments by how full they are; a class has those used by less than `below` of 10,000, the last those that are full. */
static const struct { const char *words; unsigned below; } classes[] = {
	{ "empty", 1 }, { "less than a tenth", 1000 }, { "less than half", 5000 }, { "less than nine tenths", 9000 }, { "nearly full", 10000 }, { "full", 10001 },
};
enum { CLASSES = sizeof classes / sizeof *classes };
struct tally { uint64_t count, bytes, live_bytes, largest_hole_bytes; };

static unsigned class_of(const struct fact_segment *s)
{
	unsigned used = !s->live_count ? 0 : s->live_bytes >= s->bytes ? 10000 : 1 + (unsigned)((double)s->live_bytes / (double)s->bytes * 9998), c = 0;
	while (used >= classes[c].below)
		c++;
	return c;
}

static void occupancy(const struct text *text, const struct fact_framework *f)
{
	static const struct table_column columns[] = { { "segments", TABLE_RIGHT }, { "bytes", TABLE_RIGHT }, { "free", TABLE_RIGHT }, { "largest hole", TABLE_RIGHT }, { "used", TABLE_FLEX } };
	struct tally tallies[CLASSES] = { 0 };
	struct table *table = table_new(text->style, columns, 5);
	for (size_t i = 0; i < f->segment_count; i++) {
		const struct fact_segment *s = &f->segments[i];
		struct tally *t = &tallies[class_of(s)];
		t->count++;
		t->bytes += s->bytes;
		t->live_bytes += s->live_bytes;
		t->largest_hole_bytes = s->largest_hole_bytes > t->largest_hole_bytes ? s->largest_hole_bytes : t->largest_hole_bytes;
	}
	for (unsigned c = 0; c < CLASSES; c++)
		if (tallies[c].count)
			table_row(table, (const char *[]){ units_count(tallies[c].count).s, units_bytes(tallies[c].bytes).s,
				units_bytes(tallies[c].bytes - tallies[c].live_bytes).s, units_bytes(tallies[c].largest_hole_bytes).s, classes[c].words });
	table_print(table, text->out, TEXT_LABEL);
	table_free(table);
}

static void pins(const struct text *text, const struct fact_framework *f)
{
	static const struct table_column columns[] = { { "open", TABLE_RIGHT }, { "segments", TABLE_RIGHT }, { "blocks", TABLE_RIGHT }, { "bytes", TABLE_RIGHT }, { "kept by", TABLE_FLEX } };
	struct table *table;
	char where[TEXT_LINE_BYTES];
	if (!f->pin_count)
		return;
	table = table_new(text->style, columns, 5);
	for (size_t i = 0; i < f->pin_count && i < TEXT_ROWS_MAX; i++) {
		const struct fact_pin *pin = &f->pins[i];
		snprintf(where, sizeof where, "small blocks whose stacks were not sampled");
		if (pin->stack.depth)
			frames_line(text->frames, &pin->stack, where, sizeof where);
		table_row(table, (const char *[]){ units_bytes(pin->open_bytes).s, units_count(pin->pages).s, units_count(pin->count).s, units_bytes(pin->bytes).s, where });
	}
	table_print(table, text->out, TEXT_LABEL);
	table_free(table);
}

static void seen(const struct text *text, const struct fact_framework *f)
{
	uint64_t unused = f->reserved_bytes > f->allocated_bytes ? f->reserved_bytes - f->allocated_bytes : 0;
	char words[TEXT_LINE_BYTES];
	snprintf(words, sizeof words, "%s%s%s%s%s%s allocated %s of %s reserved in %s segments: %s unused%s", f->name, *f->version ? " " : "", f->version,
		 *f->backend ? " (" : "", f->backend, *f->backend ? ")" : "", units_bytes(f->allocated_bytes).s, units_bytes(f->reserved_bytes).s,
		 units_count(f->segment_count).s, units_bytes(unused).s, f->basis == BASIS_ESTIMATED ? " (estimated)" : "");
	text_flow(text, STYLE_PLAIN, "segments", 3, words);
	if (f->largest_hole.bytes == CUF_UNKNOWN)
		return;
	snprintf(words, sizeof words, "largest hole %s (%s); empty segments %s; held by less than a tenth %s", units_bytes(f->largest_hole.bytes).s,
		 f->largest_hole.words, units_bytes(f->empty_bytes).s, units_bytes(f->emptyable_bytes).s);
	text_flow(text, STYLE_PLAIN, "", 3, words);
	occupancy(text, f);
	pins(text, f);
}

void text_segments(const struct text *text, const struct fact_fragmentation *fragmentation)
{
	for (size_t i = 0; i < fragmentation->framework_count; i++) {
		const struct fact_framework *f = &fragmentation->frameworks[i];
		if (f->allocated_bytes != CUF_UNKNOWN)
			seen(text, f);
		else
			text_line(text, STYLE_PLAIN, "regions", "%s%s%s%s: %s in %s, whose inside is not seen", f->name, *f->backend ? " (" : "", f->backend,
				  *f->backend ? ")" : "", units_bytes(f->reserved_bytes).s, units_count(f->segment_count).s);
	}
}
