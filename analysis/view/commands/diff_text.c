/* SPDX-License-Identifier: Apache-2.0 */
/* The screen of `cuflight diff`: totals by kind, then call sites, the biggest change first. */
#include "analysis/view/commands/diff_view.h"

#include "analysis/base/units.h"
#include "analysis/view/commands/site_text.h"
#include "interpose/abi/format.h"

static struct unit_text change_text(const struct diff_measure *row)
{
	struct unit_text text = { "" };

	if (row->before == CUF_UNKNOWN || row->now == CUF_UNKNOWN || row->before == row->now)
		return text;
	if (row->measure->unit == GATE_BYTES)
		return units_bytes_signed((double)row->now - (double)row->before);
	snprintf(text.s, sizeof text.s, "%+lld", (long long)(row->now - row->before));
	return text;
}

static void print_measures(FILE *out, const struct gate_diff *diff)
{
	for (size_t i = 0; i < diff->measure_count; i++) {
		const struct diff_measure *row = &diff->measures[i];
		fprintf(out, "  %-20s %12s -> %-12s %s\n", row->measure->name,
			gate_amount(row->measure, row->before).s,
			gate_amount(row->measure, row->now).s, change_text(row).s);
	}
}

void diff_text(FILE *out, const struct gate_diff *diff, const struct style *style, size_t rows)
{
	struct site_printer printer = { out, style };
	size_t shown = diff->row_count < rows ? diff->row_count : rows;

	site_print_clean(&printer, diff->before);
	fputs(" -> ", out);
	site_print_clean(&printer, diff->now);
	fputc('\n', out);
	if (diff->difference) {
		fputs("  note: ", out);
		site_print_clean(&printer, diff->difference);
		fputc('\n', out);
	}
	print_measures(out, diff);
	fprintf(out, "\nCall sites %s\n", diff->at_end ? "at the end" : "at the peak");
	for (size_t i = 0; i < shown; i++) {
		const struct diff_row *row = &diff->rows[i];
		fprintf(out, "  %-7s%11s %-9s ", diff_names[row->change],
			units_bytes_signed((double)row->site.bytes_now -
					   (double)row->site.bytes_before).s,
			gate_group_names[row->site.group]);
		site_print_line(&printer, &row->site, 32);
	}
	if (!diff->row_count)
		fputs("  no difference\n", out);
	if (diff->row_count > shown)
		fprintf(out, "  %zu more; --top=N prints them\n", diff->row_count - shown);
	if (diff->left_out)
		fprintf(out, "  %llu smaller; --least=0 prints them\n",
			(unsigned long long)diff->left_out);
}
