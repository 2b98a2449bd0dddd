/* SPDX-License-Identifier: Apache-2.0 */
/* When, which program, how it ended; peaks and cause. */
#include "analysis/view/commands/runs.h"

#include <json-c/json.h>
#include <math.h>
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/base/paths.h"
#include "analysis/base/units.h"
#include "analysis/explain/cause.h"
#include "analysis/facts/totals.h"
#include "analysis/view/json/json_parts.h"
#include "analysis/view/text/live.h"
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

/* Of a run that still runs. */
static void print_judgement(FILE *out, const struct facts *facts)
{
	const struct live_resource *first = live_judged_first(facts->judgement);
	char early[WORDS];

	live_early(facts->judgement, early, sizeof early);
	if (*early)
		fprintf(out, "%*s%s\n", INDENT, "", early);
	else if (first)
		fprintf(out, "%*sits %s is full in %s at this rate\n", INDENT, "",
			live_resource_words[first->kind],
			units_duration((uint64_t)(first->oom_s[LIVE_EXPECTED] * 1e9)).s);
}

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
	print_judgement(out, facts);
	if (!*cause_of(facts))
		return;
	fprintf(out, "%*s%s%s%s", INDENT, "", style_on(style, STYLE_BAD), cause_of(facts),
		style_off(style));
	if (facts->cause && *facts->cause->id)
		fprintf(out, " (%s confidence)", text_confidence(facts->cause->confidence));
	fputc('\n', out);
}

void runs_text_end(struct runs_text *text) { print_counted(text); }

/* One object a run; keys as in the report where they mean the same. */
enum { FORMAT = JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE };

static void print_object(FILE *out, struct json_object *object)
{
	fputs(json_object_to_json_string_ext(object, FORMAT), out);
	json_object_put(object);
}

void runs_json_begin(FILE *out, const char *directory)
{
	fputs("{\"schema\":\"cuflight.list/1\",\"directory\":", out);
	print_object(out, json_text(directory));
	fputs(",\"runs\":[", out);
}

static struct json_object *cause_object(const struct fact_cause *cause)
{
	struct json_object *object;

	if (!cause || !*cause->id)
		return NULL;
	object = json_object_new_object();
	json_add_text(object, "id", cause->id);
	json_add_text(object, "name_id", cause->name_id);
	json_add_text(object, "name", cause->name);
	json_add_text(object, "summary", cause->summary);
	json_add_double(object, "confidence", cause->confidence);
	return object;
}

/* null: it does not run any more. */
static void json_add_live(struct json_object *object, const struct judgement *judgement)
{
	const struct live_resource *first = live_judged_first(judgement);

	json_add(object, "too_early",
		 judgement ? json_object_new_boolean(judgement->is_too_early) : NULL);
	json_add_double(object, "seconds_to_oom", first ? first->oom_s[LIVE_EXPECTED] : NAN);
}

static struct json_object *files_of(const struct facts *facts)
{
	struct json_object *files = json_object_new_array();

	for (size_t i = 0; i < facts->process_count; i++)
		json_object_array_add(files, json_text(facts->processes[i].path));
	return files;
}

void runs_json_row(FILE *out, const struct facts *facts, bool first)
{
	const struct fact_process *process = &facts->processes[facts->focus];
	struct json_object *object = json_object_new_object();
	char program[96];

	program_name(process->exe, process->cmdline, program, sizeof program);
	json_add_number(object, "run", facts->run_number);
	json_add_number(object, "start_ns", facts->processes[0].start_ns);
	json_add_number(object, "duration_ns", facts_duration_ns(facts));
	json_add_text(object, "program", program);
	json_add_number(object, "pid", process->pid);
	json_add_text(object, "end_state", end_names[process->end]);
	json_add_number(object, "end_status", process->end_status);
	json_add_number(object, "processes", facts->process_count);
	json_add_number(object, "failed_requests", facts->incident_count);
	json_add_number(object, "device_peak_bytes", facts_device_peak(facts));
	json_add_number(object, "host_peak_bytes", facts_host_peak(facts));
	json_add(object, "cause", cause_object(facts->cause));
	json_add_live(object, facts->judgement);
	json_add(object, "files", files_of(facts));
	fputs(first ? "\n" : ",\n", out);
	print_object(out, object);
}

void runs_json_end(FILE *out)
{
	fputs("\n]}\n", out);
}
