/* SPDX-License-Identifier: Apache-2.0 */
/* Leaks, live memory and growth by call stack. */
#include "analysis/view/text/text.h"

#include <math.h>
#include <string.h>
#include "analysis/view/kinds.h"
#include "analysis/view/text/table.h"
#include "analysis/view/units.h"

static const char *const class_words[CLASS_MAX] = {
	[CLASS_LEAK] = "leak", [CLASS_LIVE] = "live", [CLASS_BOUNDED_CACHE] = "cache", [CLASS_RETAINED] = "retained",
};

static struct unit_text slope_of(const struct fact_site *site)
{
	struct unit_text rate = units_bytes_signed(site->slope_bytes_per_s);
	if (strcmp(rate.s, "?") != 0)
		strcat(rate.s, "/s");
	return rate;
}

static void site_rows(const struct text *text, const struct fact_site *sites, size_t count, bool grown)
{
	static const struct table_column columns[] = {
		{ "bytes", TABLE_RIGHT }, { "blocks", TABLE_RIGHT }, { "kind", TABLE_LEFT }, { "class", TABLE_LEFT }, { "slope", TABLE_RIGHT }, { "site", TABLE_FLEX },
	};
	struct table *table = table_new(text->style, columns, 6);
	char where[TEXT_LINE_BYTES];
	for (size_t i = 0; i < count && i < TEXT_ROWS_MAX; i++) {
		const struct fact_site *site = &sites[i];
		frames_line(text->frames, &site->stack, where, sizeof where);
		table_row(table, (const char *[]){ grown ? units_bytes_signed(site->grown_bytes).s : units_bytes(site->bytes).s, units_count(site->count).s,
			kind_name(site->kind), grown && site->shape != SHAPE_NONE ? shape_names[site->shape] : class_words[site->class], slope_of(site).s, where });
		if (site->class == CLASS_LEAK)
			table_tone(table, STYLE_BAD);
	}
	table_print(table, text->out, 2);
	table_free(table);
	if (count > TEXT_ROWS_MAX)
		fprintf(text->out, "  and %zu more; --json has all\n", count - TEXT_ROWS_MAX);
}

static void leak_stacks(const struct text *text)
{
	const struct facts *facts = text->facts;
	for (size_t i = 0; i < facts->leak_count && i < TEXT_ROWS_MAX && facts->leaks[i].class == CLASS_LEAK; i++) {
		const struct fact_site *site = &facts->leaks[i];
		text_line(text, STYLE_BAD, "leak", "%s in %s blocks; %s a %s, of %s%s; pid %u%s%s", units_bytes(site->bytes).s,
			  units_count(site->count).s, units_bytes(site->per_request_bytes).s, text_cycle_name(site), units_count(site->cycles).s, site->cycles_basis == BASIS_INFERRED ? " (inferred)" : "", site->pid,
			  site->api ? "; " : "", site->api ? site->api : "");
		text_stack(text, &site->stack, TEXT_LABEL);
	}
}

void text_sites(const struct text *text)
{
	const struct facts *facts = text->facts;
	if (facts->leak_count) {
		text_section(text, "LIVE BY SITE (leak alone is a verdict)");
		site_rows(text, facts->leaks, facts->leak_count, false);
		leak_stacks(text);
	}
	if (facts->growth_count) {
		text_section(text, "GROWTH BY SITE (bytes gained over the time observed)");
		site_rows(text, facts->growth, facts->growth_count, true);
	}
}
