/* SPDX-License-Identifier: Apache-2.0 */
/* The screen of `cuflight check`: the verdict, what is exceeded and who is to blame. */
#include "analysis/view/commands/gate_view.h"

#include <stddef.h>
#include <string.h>
#include "analysis/base/paths.h"
#include "analysis/base/units.h"
#include "analysis/view/commands/site_text.h"
#include "analysis/view/commands/write_parts.h"

enum { FINDINGS_MAX = 4, SITES_MAX = 3, OTHERS_MAX = 5 };

struct screen { FILE *out; const struct gate_result *result; const struct style *style; };

static void print_clean(const struct screen *screen, const char *text)
{
	struct site_printer printer = { screen->out, screen->style };

	site_print_clean(&printer, text);
}

static const char *plural(size_t count) { return count == 1 ? "" : "s"; }

/* "FAIL server: 2 of 5 limits exceeded". */
static void print_verdict(const struct screen *screen)
{
	static const char *const words[] = { "PASS", "FAIL", "", "INCONCLUSIVE" };
	static const enum style_tone tones[] = { STYLE_GOOD, STYLE_BAD, STYLE_PLAIN, STYLE_WARN };
	const struct gate_result *result = screen->result;
	int status = gate_exit_status(result);
	size_t exceeded = gate_count(result, GATE_EXCEEDED);

	fprintf(screen->out, "%s%s%s ", style_on(screen->style, tones[status]), words[status],
		style_off(screen->style));
	print_clean(screen, *result->program ? result->program : result->path);
	if (exceeded)
		fprintf(screen->out, ": %zu of %zu limit%s exceeded\n", exceeded,
			result->finding_count, plural(result->finding_count));
	else if (status)
		fputs(": it cannot be judged\n", screen->out);
	else
		fprintf(screen->out, ": %zu limit%s kept\n", result->finding_count,
			plural(result->finding_count));
	for (size_t i = 0; i < result->inconclusive_count; i++) {
		fputs("  ", screen->out);
		print_clean(screen, result->inconclusive[i]);
		fputc('\n', screen->out);
	}
}

/* "10.0 MiB, before 2.00 MiB" */
static void print_figures(const struct screen *screen, const struct gate_site *site)
{
	fprintf(screen->out, "    %s", units_bytes(site->bytes_now).s);
	if (site->bytes_before == 0)
		fputs(", new", screen->out);
	else if (site->bytes_before != CUF_UNKNOWN)
		fprintf(screen->out, ", before %s", units_bytes(site->bytes_before).s);
	if (site->count_now)
		fprintf(screen->out, ", %s block%s", units_count(site->count_now).s,
			plural(site->count_now));
}

static void print_site(const struct screen *screen, const struct gate_site *site)
{
	struct site_printer printer = { screen->out, screen->style };

	print_figures(screen, site);
	if (site->rule) {
		fputs(", suppressed by ", screen->out);
		print_clean(screen, site->rule);
	}
	fputs("\n      ", screen->out);
	site_print_line(&printer, site, 6);
}

/* Its limit, its sentence, and the call sites that are worst. */
static void print_exceeded(const struct screen *screen, const struct gate_finding *finding)
{
	size_t shown = finding->site_count < SITES_MAX ? finding->site_count : SITES_MAX;

	fprintf(screen->out, "\n%s%s%s", style_on(screen->style, STYLE_HEAD),
		finding->limit.text, style_off(screen->style));
	if (*finding->limit.origin) {
		fputs("  (", screen->out);
		print_clean(screen, path_base_name(finding->limit.origin));
		fputc(')', screen->out);
	}
	fputs("\n  ", screen->out);
	print_clean(screen, finding->message);
	fputc('\n', screen->out);
	for (size_t i = 0; i < shown; i++)
		print_site(screen, &finding->sites[i]);
	if (finding->site_count > shown)
		fprintf(screen->out, "    %zu more call site%s; see --json\n",
			finding->site_count - shown, plural(finding->site_count - shown));
}

/* Nothing was there before, and nothing is there now. */
static bool is_empty(const struct gate_finding *finding)
{
	return finding->status == GATE_OK && !finding->observed.value &&
	       (finding->limit.relative || finding->limit.proofs_only);
}

static size_t print_findings(const struct screen *screen, enum gate_status status, bool verbose)
{
	const struct gate_result *result = screen->result;
	size_t printed = 0, empty = 0, all = gate_count(result, status), most = OTHERS_MAX;

	if (status == GATE_EXCEEDED)
		most = FINDINGS_MAX;
	if (verbose)
		most = all;

	for (size_t i = 0; i < result->finding_count && printed < most; i++) {
		const struct gate_finding *finding = &result->findings[i];
		if (finding->status != status)
			continue;
		if (!verbose && is_empty(finding)) {
			empty++;
			continue;
		}
		printed++;
		if (status == GATE_EXCEEDED) {
			print_exceeded(screen, finding);
			continue;
		}
		fprintf(screen->out, "  %-13s", gate_status_names[status]);
		print_clean(screen, finding->message);
		fputc('\n', screen->out);
	}
	if (all > printed + empty)
		fprintf(screen->out, "  %zu more %s; -v prints all\n", all - printed - empty,
			gate_status_names[status]);
	return printed;
}

void gate_text(FILE *out, const struct gate_result *result, const struct style *style,
	       bool verbose)
{
	struct screen screen = { out, result, style };

	print_verdict(&screen);
	if (print_findings(&screen, GATE_EXCEEDED, verbose))
		fputc('\n', out);
	print_findings(&screen, GATE_INCONCLUSIVE, verbose);
	print_findings(&screen, GATE_SUPPRESSED, verbose);
	print_findings(&screen, GATE_OK, verbose);
	for (size_t i = 0; i < result->note_count; i++) {
		fputs("  note         ", out);
		print_clean(&screen, result->notes[i]);
		fputc('\n', out);
	}
}
