/* SPDX-License-Identifier: Apache-2.0 */
/* From command line and cuflight.ini to a result. */
#include "analysis/cmd/run/judge_run.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "analysis/base/paths.h"
#include "analysis/base/xalloc.h"
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/run/open_facts.h"
#include "analysis/explain/facts_build.h"
#include "analysis/gate/limits.h"
#include "analysis/gate/suppress.h"
#include "analysis/view/commands/baseline_file.h"
#include "analysis/view/commands/gate_writers.h"

enum { SENTENCE_BYTES = 1024, WORDS_LOOKED_AT = 3, DATE_BYTES = 16 };

/* ---- limits ---- */

static int take_operands(const struct judge_request *request, struct judged *out)
{
	char error[SENTENCE_BYTES];

	for (size_t i = 0; i < request->limit_count; i++) {
		struct gate_limit limit;
		if (gate_limit_parse(request->limits[i], out->arena, &limit, error, sizeof error)) {
			say_error("%s", error);
			return -1;
		}
		gate_limits_add(&out->limits, &limit);
	}
	return 0;
}

/* The script of an interpreter: the first of the next words that is a file with a suffix. */
static const char *script_of(const struct fact_process *process, struct arena *arena)
{
	const char *at = process->cmdline;

	for (int i = 0; i < WORDS_LOOKED_AT; i++) {
		size_t length = strcspn(at, " ");
		const char *word = path_base_name(arena_text(arena, at, length));
		if (i && strchr(word, '.') && *word != '-')
			return word;
		at += length + strspn(at + length, " ");
	}
	return "";
}

/* The names that a section may have: of the programs of all processes, and of their scripts. */
static void name_programs(const struct judged *out, struct limits_file *file)
{
	size_t count = out->facts ? out->facts->process_count : 0;
	const char **names = arena_zeroed(out->arena, 2 * count, sizeof *names);

	for (size_t i = 0; i < count; i++) {
		const struct fact_process *process = &out->facts->processes[i];
		const char *script = script_of(process, out->arena);
		names[file->program_count++] = path_base_name(process->exe);
		if (*script)
			names[file->program_count++] = script;
	}
	file->programs = names;
}

/* Whoever writes "[limits]" has written a program's name, and nothing is judged by what follows. */
static void note_sections(struct judged *out, const struct limits_file *file)
{
	const struct facts *facts = out->facts;

	if (!facts || file->has_own_section || !*file->sections || file->limits != &out->limits)
		return;
	out->unused_sections = arena_format(
		out->arena, "%s has no section for %s, only %s: a section is a program's name",
		path_base_name(file->path), path_base_name(facts->processes[facts->focus].exe),
		file->sections);
	out->nothing_asked = !out->limits.count && !file->baseline;
}

/* Limits of the command line replace those of the file; its baseline holds in any case. */
static int take_file(const struct judge_request *request, struct judged *out,
		     const char **baseline)
{
	char path[PATH_MAX], error[SENTENCE_BYTES];
	struct gate_limits ignored = { 0 };
	struct limits_file file = { .path = request->config, .arena = out->arena,
				    .limits = out->limits.count ? &ignored : &out->limits };
	int status;

	if (!file.path && (request->no_config || !limits_file_find(path, sizeof path)))
		return 0;
	if (!file.path)
		file.path = path;
	name_programs(out, &file);
	status = limits_file_read(&file, error, sizeof error);
	if (status)
		say_error("%s", error);
	else
		note_sections(out, &file);
	*baseline = file.baseline;
	free(ignored.items);
	return status;
}

/* A relative limit without a baseline is a mistake of the command line, not of the run. */
static int require_baseline(const struct judged *out, const char *baseline)
{
	for (size_t i = 0; i < out->limits.count; i++) {
		const struct gate_limit *limit = &out->limits.items[i];
		if (!limit->relative || baseline)
			continue;
		say_error("limit '%s' is relative and needs a baseline: --baseline=FILE, or "
			  "'baseline = FILE' in " LIMITS_FILE_NAME, limit->text);
		return -1;
	}
	return 0;
}

static int take_limits(const struct judge_request *request, struct judged *out)
{
	const char *from_file = NULL, *baseline;
	char error[SENTENCE_BYTES];

	if (take_operands(request, out) || take_file(request, out, &from_file))
		return -1;
	baseline = request->baseline ? request->baseline : from_file;
	if (require_baseline(out, baseline))
		return -1;
	if (baseline && baseline_read(&out->baseline, baseline, error, sizeof error)) {
		say_error("%s", error);
		return -1;
	}
	if (baseline)
		out->result.baseline = arena_text(out->arena, baseline, strlen(baseline));
	return 0;
}

int judge_check_limits(const struct judge_request *request)
{
	struct judged scratch = { .arena = arena_new() };
	int status = take_limits(request, &scratch);

	judge_free(&scratch);
	return status;
}

/* ---- judging ---- */

int judge_run(const struct judge_request *request, struct judged *out)
{
	struct gate_question question = { .any_environment = request->any_environment };
	const char *baseline;

	*out = (struct judged){ .arena = arena_new(), .symbols = symbols_new(request->symbols) };
	out->facts = open_facts(request->path, out->symbols,
				&(struct facts_options){ .all_peaks = true });
	if (!out->facts || take_limits(request, out)) {
		judge_free(out);
		return -1;
	}
	baseline = out->result.baseline;
	question.facts = out->facts;
	question.symbols = out->symbols;
	question.limits = &out->limits;
	question.baseline = baseline ? &out->baseline : NULL;
	question.unused_sections = out->unused_sections;
	question.nothing_asked = out->nothing_asked;
	question.suppress = request->suppressions ? suppressions_match : NULL;
	question.suppress_context = request->suppressions;
	gate_check(&question, &out->result);
	out->result.baseline = baseline;
	return 0;
}

void judge_free(struct judged *judged)
{
	gate_result_free(&judged->result);
	baseline_free(&judged->baseline);
	free(judged->limits.items);
	facts_free(judged->facts);
	symbols_free(judged->symbols);
	arena_free(judged->arena);
	*judged = (struct judged){ 0 };
}

/* ---- documents ---- */

static void say_formats(const char *typed)
{
	char names[200] = "";

	for (const struct gate_writer *writer = gate_writers; writer->name; writer++) {
		size_t used = strlen(names);
		snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", writer->name);
	}
	say_error("invalid value '%s' for --write: expected FORMAT:FILE with a format of %s", typed,
		  names);
}

/* "junit:report.xml": the writer, and the file in *path. NULL after an error. */
static const struct gate_writer *writer_of(const char *typed, const char **path)
{
	const char *colon = strchr(typed, ':');
	const struct gate_writer *writer = NULL;

	if (colon && colon[1])
		writer = gate_writer_find(typed, (size_t)(colon - typed));
	if (!writer)
		say_formats(typed);
	else
		*path = colon + 1;
	return writer;
}

static int check_writers(const struct opts *opts)
{
	size_t count;
	const char *const *list = opts_list(opts, "write", &count), *path;

	for (size_t i = 0; i < count; i++)
		if (!writer_of(list[i], &path))
			return -1;
	return 0;
}

static int write_documents(const struct gate_outputs *outputs, const struct gate_result *result)
{
	size_t count;
	const char *const *list = opts_list(outputs->opts, "write", &count);
	char root[PATH_MAX];
	struct gate_document document = { result, root };

	if (!getcwd(root, sizeof root))
		*root = 0;
	for (size_t i = 0; i < count; i++) {
		struct output output;
		const char *path;
		const struct gate_writer *writer = writer_of(list[i], &path);
		if (!writer || output_open_file(&output, path))
			return -1;
		writer->write(&document, output.file);
		if (output_close(&output))
			return -1;
	}
	return 0;
}

/* ---- rules ---- */

static void today(char *out, size_t bytes)
{
	time_t now = time(NULL);
	struct tm date;

	*out = 0;
	if (localtime_r(&now, &date))
		strftime(out, bytes, "%Y-%m-%d", &date);
}

struct suppressions *gate_rules_open(const struct opts *opts)
{
	char date[DATE_BYTES], error[SENTENCE_BYTES];
	size_t count;
	const char *const *files = opts_list(opts, "suppressions", &count);
	struct suppressions *rules;

	today(date, sizeof date);
	rules = suppressions_new(date, !opts_has(opts, "no-default-suppressions"));
	for (size_t i = 0; i < count; i++) {
		if (!suppressions_read(rules, files[i], error, sizeof error))
			continue;
		say_error("%s", error);
		suppressions_free(rules);
		return NULL;
	}
	return rules;
}

int gate_outputs_open(struct gate_outputs *outputs, const struct opts *opts)
{
	*outputs = (struct gate_outputs){ .opts = opts };
	if (check_writers(opts))
		return -1;
	outputs->suppressions = gate_rules_open(opts);
	return outputs->suppressions ? 0 : -1;
}

static int write_rules(const struct gate_outputs *outputs, const struct gate_result *result)
{
	const char *path = opts_text(outputs->opts, "gen-suppressions");
	struct output output;

	if (!path)
		return 0;
	if (output_open_file(&output, path))
		return -1;
	suppressions_generate(result, output.file);
	return output_close(&output);
}

int gate_outputs_write(const struct gate_outputs *outputs, const struct gate_result *result)
{
	if (write_documents(outputs, result) || write_rules(outputs, result))
		return -1;
	if (!opts_has(outputs->opts, "quiet"))
		suppressions_print_stale(outputs->suppressions, "cuflight: ", stderr);
	return 0;
}

void gate_outputs_close(struct gate_outputs *outputs)
{
	suppressions_free(outputs->suppressions);
	*outputs = (struct gate_outputs){ 0 };
}

static const struct opt options[] = {
	{ "write", 'w', OPT_LIST, "FORMAT:FILE", 0, 0, NULL,
	  "also write the result as junit, sarif, md (Markdown) or github (annotations); "
	  "- is stdout; may be given several times" },
	{ "suppressions", 0, OPT_LIST, "FILE", 0, 0, NULL,
	  "do not count call sites that the rules of this file match, which LeakSanitizer and "
	  "heaptrack read, too; may be given several times" },
	{ "no-default-suppressions", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "also count what drivers, NCCL, cuBLAS and interpreters keep once" },
	{ "gen-suppressions", 0, OPT_TEXT, "FILE", 0, 0, NULL,
	  "write rules for all call sites of exceeded limits; - is stdout" },
};
const struct opt_group opts_gate = {
	"Suppressions and documents", options, sizeof options / sizeof *options, { NULL },
};
