/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, as flamegraph.pl, inferno and speedscope read them: one line for each call site,
 * outermost first, then its live bytes. The first entry is the kind of memory; with several
 * processes the process precedes it.
 */
#include "analysis/view/export/formats.h"

#include "analysis/view/export/names.h"
#include "analysis/view/export/site_sums.h"

/* A semicolon separates frames and the last blank precedes the number. */
static void put_entry(FILE *out, char *name)
{
	for (char *at = name; *at; at++)
		if (*at == ';')
			*at = ':';
	fputs(name, out);
}

static void write_line(FILE *out, struct rows *rows, const struct site_sum *sum)
{
	const struct facts *facts = rows_facts(rows);
	const struct frame *frames;
	size_t count = rows_site_frames(rows, sum->site, &frames);
	char name[NAME_BYTES];

	if (facts->process_count > 1) {
		name_process(facts, sum->process, name, sizeof name);
		put_entry(out, name);
		fputc(';', out);
	}
	name_memory(facts, sum->kind, sum->device, name, sizeof name);
	put_entry(out, name);
	for (size_t i = count; i--;) {
		name_frame(&frames[i], name, sizeof name);
		fputc(';', out);
		put_entry(out, name);
	}
	if (!count)
		fputs(";?", out);
	fprintf(out, " %llu\n", (unsigned long long)sum->live_bytes);
}

static int write_folded(struct export_target *target, struct rows *rows)
{
	struct site_sums sums;

	site_sums_read(&sums, rows, false, false);
	for (size_t i = 0; i < sums.count; i++)
		if (sums.items[i].live_bytes)
			write_line(target->file, rows, &sums.items[i]);
	site_sums_fini(&sums);
	return 0;
}

const struct export_format export_folded = {
	.name = "folded",
	.ending = ".folded",
	.about = "folded stacks of live bytes, for flamegraph.pl, inferno and speedscope",
	.takes_moment = true,
	.sums = true,
	.write = write_folded,
};
