/* SPDX-License-Identifier: Apache-2.0 */
/* When, which program, how it ended; peaks and cause. */
#include "analysis/view/commands/runs.h"

#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/base/paths.h"
#include "analysis/base/units.h"
#include "analysis/facts/cause.h"
#include "analysis/facts/kinds.h"
#include "analysis/facts/totals.h"
#include "analysis/view/json/shapes.h"
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

/* ---- JSON; keys as in the report where they mean the same ---- */

#define OF struct fact_cause
static const struct field cause_fields[] = {
	{ "id", TEXT(id) },
	{ "name_id", TEXT(name_id), .meaning = "a word of 'cuflight help causes'" },
	{ "name", TEXT(name) },
	{ "summary", TEXT(summary) },
	{ "confidence", REAL(confidence), .meaning = "from 0 to 1" },
};
static const struct shape run_cause_shape = SHAPE("cause", cause_fields);
#undef OF

static struct json_object *start_ns(const struct fields *fields, const void *object)
{
	return json_number(fields->facts->processes[0].start_ns);
}

static struct json_object *duration_ns(const struct fields *fields, const void *object)
{
	return json_number(facts_duration_ns(object));
}

static struct json_object *program(const struct fields *fields, const void *object)
{
	const struct fact_process *process = &fields->facts->processes[fields->facts->focus];
	char name[96];

	program_name(process->exe, process->cmdline, name, sizeof name);
	return json_text(name);
}

static const void *in_focus(const struct fields *fields, const void *object)
{
	return &fields->facts->processes[fields->facts->focus];
}

static struct json_object *device_peak(const struct fields *fields, const void *object)
{
	return json_number(facts_device_peak(object));
}

static struct json_object *host_peak(const struct fields *fields, const void *object)
{
	return json_number(facts_host_peak(object));
}

static const void *named_cause(const struct fields *fields, const void *object)
{
	const struct fact_cause *cause = fields->facts->cause;

	return cause && *cause->id ? cause : NULL;
}

static const void *full_first(const struct fields *fields, const void *object)
{
	return live_judged_first(fields->facts->judgement);
}

static size_t write_files(struct fields *fields, const struct field *field, const void *object)
{
	const struct facts *facts = object;

	for (size_t i = 0; i < facts->process_count; i++)
		json_stream_value(fields->stream, NULL, json_text(facts->processes[i].path));
	return facts->process_count;
}

#define OF struct facts
static const struct field run_fields[] = {
	{ "run", NUMBER(run_number), .meaning = "its number, from 1, for --run" },
	{ "start_ns", VALUE_OR_NULL(NUMBER, start_ns),
	  .meaning = "of its first process, since 1970" },
	{ "duration_ns", VALUE_OR_NULL(NUMBER, duration_ns) },
	{ "program", VALUE(TEXT, program),
	  .meaning = "what people call it: the script of an interpreter, else the executable" },
#undef OF
#define OF struct fact_process
	{ "pid", .base = in_focus, NUMBER(pid),
	  .meaning = "of the process that the report is about" },
	{ "end_state", .base = in_focus, NAME(end, end_words), .meaning = "how it ended" },
	{ "end_status", .base = in_focus, NUMBER(end_status),
	  .meaning = "exit status, or number of the signal" },
#undef OF
#define OF struct facts
	{ "processes", NUMBER(process_count), .meaning = "how many the run had" },
	{ "failed_requests", NUMBER(incident_count),
	  .meaning = "each with its retries" },
	{ "device_peak_bytes", VALUE_OR_NULL(NUMBER, device_peak),
	  .meaning = "the most that was live on its devices" },
	{ "host_peak_bytes", VALUE_OR_NULL(NUMBER, host_peak),
	  .meaning = "the most resident memory of one process" },
	{ "cause", FOUND(run_cause_shape, named_cause),
	  .meaning = "why memory ran out, or what grows; null: nothing wrong was found" },
#undef OF
#define OF struct judgement
	{ "too_early", VIA(struct facts, judgement), FIELD(FLAG, true, is_too_early),
	  .meaning = "it runs too short to tell whether it grows; null: it has ended" },
#undef OF
#define OF struct live_resource
	{ "seconds_to_oom", .base = full_first, REAL(oom_s[LIVE_EXPECTED]),
	  .meaning = "at the present rate; null: nothing is proven to grow" },
	{ "files", .type = FIELD_TEXTS, .rows = write_files, .size = 0,
	  .meaning = "the recordings of the run" },
};
#undef OF
#define OF struct facts
static const struct shape run_shape = SHAPE(NULL, run_fields);
#undef OF

static size_t write_runs(struct fields *fields, const struct field *field, const void *object)
{
	const struct runs *runs = object;
	size_t count = 0;

	for (; (fields->facts = runs->next(runs->context)); count++)
		fields_row(fields, NULL, field->shape, fields->facts);
	return count;
}

#define OF struct runs
static const struct field runs_fields[] = {
	{ "directory", TEXT(directory), .meaning = "as it was named" },
	{ "runs", ROWS(run_shape, write_runs), A_LINE_EACH, "oldest first" },
};
const struct shape runs_shape = SHAPE("list", runs_fields,
	.meaning = "What cuflight list --json prints. Keys may be added.");
#undef OF

void runs_json(FILE *out, const struct runs *runs)
{
	struct fields fields = { .document = runs };

	fields_print_as(out, JSON_C_TO_STRING_PLAIN, &fields, &runs_shape, runs);
}
