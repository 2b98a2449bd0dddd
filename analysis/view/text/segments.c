/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of frameworks' segments: how full they are, the largest gap, and the call
 * sites that keep them alive.
 */
#include <string.h>
#include "analysis/base/units.h"
#include "analysis/view/text/sections.h"
#include "analysis/base/terminal.h"

/*
 * Segments by how full they are: a class has those used by less than `below` of 10,000, the
 * last those that are full.
 */
static const struct { const char *words; unsigned below; } classes[] = {
	{ "empty", 1 }, { "less than a tenth", 1000 }, { "less than half", 5000 },
	{ "less than nine tenths", 9000 }, { "nearly full", 10000 }, { "full", 10001 },
};
enum { CLASSES = sizeof classes / sizeof *classes };
struct tally { uint64_t count, bytes, live_bytes, largest_gap_bytes; };

/*
 * In ten-thousandths. A segment with any block is never 0, and one with any gap never 10,000:
 * both ends are classes of their own.
 */
static unsigned used_share(const struct fact_segment *segment)
{
	if (!segment->live_count)
		return 0;
	if (segment->live_bytes >= segment->bytes)
		return 10000;
	return 1 + (unsigned)((double)segment->live_bytes / (double)segment->bytes * 9998);
}

static unsigned segment_class_of(const struct fact_segment *segment)
{
	unsigned used = used_share(segment), index = 0;
	while (used >= classes[index].below)
		index++;
	return index;
}

/*
 * Many segments that are nearly empty are the signature of fragmentation, which a sum would
 * hide.
 */
static void print_occupancy(const struct text *text, const struct fact_framework *framework)
{
	static const struct table_column columns[] = {
		{ "segments", TABLE_RIGHT }, { "bytes", TABLE_RIGHT }, { "free", TABLE_RIGHT },
		{ "largest gap", TABLE_RIGHT }, { "used", TABLE_FLEX },
	};
	struct tally tallies[CLASSES] = { 0 };
	struct table *table = table_new(text->style, columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < framework->segment_count; i++) {
		const struct fact_segment *segment = &framework->segments[i];
		struct tally *tally = &tallies[segment_class_of(segment)];
		tally->count++;
		tally->bytes += segment->bytes;
		tally->live_bytes += segment->live_bytes;
		if (segment->largest_hole_bytes > tally->largest_gap_bytes)
			tally->largest_gap_bytes = segment->largest_hole_bytes;
	}
	for (unsigned i = 0; i < CLASSES; i++) {
		const struct tally *tally = &tallies[i];
		if (tally->count)
			table_row(table, (const char *[]){
				units_count(tally->count).s, units_bytes(tally->bytes).s,
				units_bytes(tally->bytes - tally->live_bytes).s,
				units_bytes(tally->largest_gap_bytes).s, classes[i].words,
			});
	}
	table_print(table, text->out, TEXT_LABEL);
	table_free(table);
}

/* "PyTorch 2.9.0 (native)". */
static void framework_name(const struct fact_framework *framework, char *out, size_t bytes)
{
	int used = snprintf(out, bytes, "%s", framework->name);
	if (*framework->version)
		used += snprintf(out + used, bytes - (size_t)used, " %.32s", framework->version);
	if (*framework->backend)
		snprintf(out + used, bytes - (size_t)used, " (%.32s)", framework->backend);
}

/* "unallocated" is clamped at 0: the two figures may have been read at different moments. */
static void print_framework(const struct text *text, const struct fact_framework *framework)
{
	uint64_t unused = 0;
	char name[160];
	framework_name(framework, name, sizeof name);
	if (framework->reserved_bytes > framework->allocated_bytes)
		unused = framework->reserved_bytes - framework->allocated_bytes;
	text_item(text, STYLE_PLAIN, "segments",
		  "%s reserved %s in %s segment%s and allocated %s: %s is unallocated%s", name,
		  units_bytes(framework->reserved_bytes).s, units_count(framework->segment_count).s,
		  text_s(framework->segment_count), units_bytes(framework->allocated_bytes).s,
		  units_bytes(unused).s,
		  text_if(framework->basis == BASIS_ESTIMATED, " (an estimate)"));
	if (framework->largest_hole.bytes == CUF_UNKNOWN)
		return;
	text_item(text, STYLE_PLAIN, "",
		  "largest gap %s (%s); %s in empty segments, %s in segments of which less "
		  "than a tenth is used",
		  units_bytes(framework->largest_hole.bytes).s, framework->largest_hole.words,
		  units_bytes(framework->empty_bytes).s, units_bytes(framework->emptyable_bytes).s);
	print_occupancy(text, framework);
	text_pins(text, framework->pins, framework->pin_count, "segments");
}

void section_segments(const struct text *text, const struct fact_fragmentation *fragmentation)
{
	for (size_t i = 0; i < fragmentation->framework_count; i++) {
		const struct fact_framework *framework = &fragmentation->frameworks[i];
		char name[160];
		if (framework->allocated_bytes != CUF_UNKNOWN) {
			print_framework(text, framework);
			continue;
		}
		framework_name(framework, name, sizeof name);
		text_item(text, STYLE_PLAIN, "segments",
			  "%s reserved %s in %s segment%s; what it allocates inside is unknown",
			  name, units_bytes(framework->reserved_bytes).s,
			  units_count(framework->segment_count).s,
			  text_s(framework->segment_count));
	}
}
