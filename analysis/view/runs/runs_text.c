/* SPDX-License-Identifier: Apache-2.0 */
/* When, which program, how it ended; peaks and cause. */
#include "analysis/view/runs/runs_text.h"

#include "analysis/base/units.h"
#include "analysis/explain/cause.h"
#include "analysis/facts/totals.h"
#include "analysis/view/clean.h"
#include "analysis/view/text/text.h"

enum { WORDS = 160, INDENT = 5 };

void runs_text_title(FILE *out, const struct style *style, const char *directory, size_t count)
{
	char shown[256];

	clean_terminal(shown, sizeof shown, directory, true);
	fprintf(out, "%s%zu run%s in %s, oldest first%s\n\n", style_on(style, STYLE_HEAD), count,
		count == 1 ? "" : "s", shown, style_off(style));
	fprintf(out, "  #  started                lasted  program (pid)\n");
}

static void print_peaks(FILE *out, const struct facts *facts)
{
	uint64_t device = facts_device_peak(facts), host = facts_host_peak(facts);

	if (device != CUF_UNKNOWN)
		fprintf(out, "GPU peak %s", units_bytes(device).s);
	if (host != CUF_UNKNOWN)
		fprintf(out, "%shost peak %s", device != CUF_UNKNOWN ? ", " : "",
			units_bytes(host).s);
}

void runs_text_row(FILE *out, const struct style *style, const struct facts *facts)
{
	const struct fact_process *process = &facts->processes[facts->focus];
	char program[96], name[96], ending[WORDS];

	text_program(process, program, sizeof program);
	clean_terminal(name, sizeof name, program, true);
	text_ending(process, ending, sizeof ending);
	fprintf(out, "%3zu  %s  %8s  %s (%u)", facts->run_number, units_date(process->start_ns).s,
		units_duration(facts_duration_ns(facts)).s, name, process->pid);
	if (facts->process_count > 1)
		fprintf(out, ", %zu processes", facts->process_count);
	fprintf(out, "\n%*s%s; ", INDENT, "", ending);
	print_peaks(out, facts);
	fputc('\n', out);
	if (facts->cause && *facts->cause->id)
		fprintf(out, "%*s%s%s%s (%s confidence)\n", INDENT, "",
			style_on(style, STYLE_BAD), facts->cause->name, style_off(style),
			text_confidence(facts->cause->confidence));
	else if (facts->fatal_incident)
		fprintf(out, "%*s%sout of memory, cause unclear%s\n", INDENT, "",
			style_on(style, STYLE_BAD), style_off(style));
}
