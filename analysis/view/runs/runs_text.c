/* SPDX-License-Identifier: Apache-2.0 */
/* When, which program, how it ended; peaks and cause. */
#include "analysis/view/runs/runs_text.h"

#include <string.h>
#include "analysis/base/units.h"
#include "analysis/explain/cause.h"
#include "analysis/facts/totals.h"
#include "analysis/view/clean.h"
#include "analysis/view/text/text.h"

enum { WORDS = 160, INDENT = 5 };

static void print_peaks(FILE *out, uint64_t device, uint64_t host)
{
	if (device != CUF_UNKNOWN)
		fprintf(out, "GPU peak %s", units_bytes(device).s);
	if (host != CUF_UNKNOWN)
		fprintf(out, "%shost peak %s", device != CUF_UNKNOWN ? ", " : "",
			units_bytes(host).s);
}

static void program_of(const struct facts *facts, char *out, size_t bytes)
{
	char program[96];

	text_program(&facts->processes[facts->focus], program, sizeof program);
	clean_terminal(out, bytes, program, true);
}

/* Empty: no cause. */
static const char *cause_of(const struct facts *facts)
{
	if (facts->cause && *facts->cause->id)
		return facts->cause->name;
	return facts->fatal_incident ? "out of memory, cause unclear" : "";
}

/* ---- runs like the one before ---- */

static void keep_higher(uint64_t *peak, uint64_t value)
{
	if (value != CUF_UNKNOWN && (*peak == CUF_UNKNOWN || value > *peak))
		*peak = value;
}

/* True if the run is like the last one that was printed: then it is counted. */
static bool is_counted(struct runs_text *text, const struct facts *facts)
{
	char program[96], ending[WORDS], like[sizeof text->like];

	program_of(facts, program, sizeof program);
	text_ending(&facts->processes[facts->focus], ending, sizeof ending);
	snprintf(like, sizeof like, "%s\n%s\n%s\n%zu", program, ending, cause_of(facts),
		 facts->process_count);
	if (strcmp(like, text->like) != 0) {
		memcpy(text->like, like, sizeof like);
		return false;
	}
	if (!text->first) {
		text->first = facts->run_number;
		text->device_peak = text->host_peak = CUF_UNKNOWN;
	}
	text->last = facts->run_number;
	text->last_start_ns = facts->processes[facts->focus].start_ns;
	keep_higher(&text->device_peak, facts_device_peak(facts));
	keep_higher(&text->host_peak, facts_host_peak(facts));
	return true;
}

static void print_counted(struct runs_text *text)
{
	size_t times = text->last - text->first + 1;

	if (!text->first)
		return;
	fprintf(text->out, "%3zu  %s  the same again", text->last,
		units_date(text->last_start_ns).s);
	if (times > 1)
		fprintf(text->out, ", %zu times (%zu-%zu), highest", times, text->first,
			text->last);
	fputs(": ", text->out);
	print_peaks(text->out, text->device_peak, text->host_peak);
	fputc('\n', text->out);
	text->first = 0;
}

/* ---- the list ---- */

void runs_text_begin(struct runs_text *text, FILE *out, const struct style *style,
		     const char *directory, size_t count)
{
	char shown[256];

	*text = (struct runs_text){ .out = out, .style = style };
	clean_terminal(shown, sizeof shown, directory, true);
	fprintf(out, "%s%zu run%s in %s, oldest first%s\n\n", style_on(style, STYLE_HEAD), count,
		count == 1 ? "" : "s", shown, style_off(style));
	fprintf(out, "  #  started                lasted  program (pid)\n");
}

void runs_text_row(struct runs_text *text, const struct facts *facts)
{
	const struct fact_process *process = &facts->processes[facts->focus];
	const struct style *style = text->style;
	char name[96], ending[WORDS];
	FILE *out = text->out;

	if (is_counted(text, facts))
		return;
	print_counted(text);
	program_of(facts, name, sizeof name);
	text_ending(process, ending, sizeof ending);
	fprintf(out, "%3zu  %s  %8s  %s (%u)", facts->run_number, units_date(process->start_ns).s,
		units_duration(facts_duration_ns(facts)).s, name, process->pid);
	if (facts->process_count > 1)
		fprintf(out, ", %zu processes", facts->process_count);
	fprintf(out, "\n%*s%s; ", INDENT, "", ending);
	print_peaks(out, facts_device_peak(facts), facts_host_peak(facts));
	fputc('\n', out);
	if (!*cause_of(facts))
		return;
	fprintf(out, "%*s%s%s%s", INDENT, "", style_on(style, STYLE_BAD), cause_of(facts),
		style_off(style));
	if (facts->cause && *facts->cause->id)
		fprintf(out, " (%s confidence)", text_confidence(facts->cause->confidence));
	fputc('\n', out);
}

void runs_text_end(struct runs_text *text) { print_counted(text); }
