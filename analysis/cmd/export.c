/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight export`: a recording in the format of another tool. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/base/paths.h"
#include "analysis/base/units.h"
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/progress.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cli/suggest.h"
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/reading/export_tables.h"
#include "analysis/cmd/reading/moment_option.h"
#include "analysis/cmd/reading/new_run.h"
#include "analysis/cmd/run/open_facts.h"
#include "analysis/explain/facts_build.h"
#include "analysis/recording/cut_guard.h"
#include "analysis/symbols/symbols.h"
#include "analysis/view/export/formats.h"
#include "analysis/facts/kinds.h"

enum { FORMATS_MAX = 64 };

/* What was asked for. */
struct request {
	const struct opts *opts;
	const struct export_format *format; /* NULL: tables */
	const char *path;
	char newest[PATH_MAX]; /* path, when no operand names it */
	struct facts_options facts;
	struct rows_filter filter;
	struct export_tables tables;
};

/* ---- options ---- */

/* typed: NULL when there is none. */
static void refuse_format(const char *typed, const char *const *names, size_t count)
{
	const char *near = typed ? suggest_nearest(typed, names, count) : NULL;
	char list[400] = "";

	for (size_t i = 0, used = 0; i < count && used < sizeof list; i++)
		used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
					 i ? ", " : "", names[i]);
	if (near)
		say_error("unknown format '%s' for --to; did you mean '%s'?", typed, near);
	else if (typed)
		say_error("unknown format '%s' for --to; the formats are %s", typed, list);
	else
		say_error("--to=FORMAT is missing; the formats are %s", list);
}

static int choose_format(struct request *request)
{
	const char *names[FORMATS_MAX], *typed = opts_text(request->opts, "to");
	size_t count = 0;

	if (typed) {
		request->format = export_format_find(typed);
		request->tables.places.format = place_format_find(typed);
	}
	if (request->format || request->tables.places.format)
		return 0;
	for (; export_formats[count]; count++)
		names[count] = export_formats[count]->name;
	for (size_t i = 0; place_formats[i].name; i++)
		names[count++] = place_formats[i].name;
	refuse_format(typed, names, count);
	return -1;
}

/* One word of --kind, of this length. */
static int add_kind(struct request *request, const char *word, size_t bytes)
{
	const uint32_t all = rows_filter_all().kinds;
	const char *names[CUF_KIND_MAX], *near;
	char typed[64];
	size_t count = 0;

	for (unsigned kind = 0; kind < CUF_KIND_MAX; kind++) {
		if (!(all >> kind & 1))
			continue;
		names[count++] = kind_name(kind);
		if (strlen(kind_name(kind)) != bytes || strncmp(kind_name(kind), word, bytes) != 0)
			continue;
		request->filter.kinds |= 1u << kind;
		return 0;
	}
	snprintf(typed, sizeof typed, "%.*s", (int)bytes, word);
	near = suggest_nearest(typed, names, count);
	if (near)
		say_error("unknown kind '%s' for --kind; did you mean '%s'?", typed, near);
	else
		say_error("unknown kind '%s' for --kind; expected device, managed, pinned, "
			  "registered, async, vmm, array, imported, host or framework", typed);
	return -1;
}

/* Without --kind: all, except what would be counted twice. */
static int choose_kinds(struct request *request)
{
	const char *text = opts_text(request->opts, "kind");

	if (!text) {
		request->filter.kinds = rows_filter_all().kinds;
		if (request->format && request->format->sums)
			request->filter.kinds &= ~(1u << CUF_KIND_FRAMEWORK);
		return 0;
	}
	for (;;) {
		size_t bytes = strcspn(text, ",");

		if (add_kind(request, text, bytes))
			return -1;
		if (!text[bytes])
			return 0;
		text += bytes + 1;
	}
}

static int choose_moment(struct request *request)
{
	const char *at = opts_text(request->opts, "at");

	if (!at)
		return 0;
	if (request->format && !request->format->takes_moment) {
		say_error("--at does not go with --to=%s, which has the whole history",
			  request->format->name);
		return -1;
	}
	return moment_option_parse(at, &request->facts);
}

/* Tables are of any number of recordings, each by itself. */
static int read_tables(struct request *request)
{
	const struct opts *opts = request->opts;
	const char *name = request->tables.places.format->name;

	if (!opts->operand_count) {
		say_error("expected recordings or directories: "
			  "cuflight export --to=%s -o PATH RECORDING...", name);
		return -1;
	}
	if (opts_has(opts, "run")) {
		say_error("--run does not go with --to=%s, which has every recording that is "
			  "named", name);
		return -1;
	}
	request->tables.facts = request->facts;
	request->tables.filter = request->filter;
	request->tables.device = opts_number(opts, "device", CUF_UNKNOWN);
	return export_tables_read(&request->tables, opts);
}

static int read_request(struct request *request, const struct opts *opts)
{
	*request = (struct request){ .opts = opts, .filter = { .device = FACT_NONE } };
	request->facts.run = opts_number(opts, "run", 0);
	request->filter.pid = (uint32_t)opts_number(opts, "pid", 0);
	request->filter.interpreter = opts_has(opts, "interpreter");
	if (choose_format(request) || choose_kinds(request) || choose_moment(request))
		return -1;
	if (!request->format)
		return read_tables(request);
	if (opts_has(opts, "table")) {
		say_error("--table does not go with --to=%s, which is no table",
			  request->format->name);
		return -1;
	}
	if (opts->operand_count > 1) {
		say_error("too many arguments: '%s'; --to=%s takes one recording or directory",
			  opts->operands[1], request->format->name);
		return -1;
	}
	request->path = opts->operands[0];
	if (opts->operand_count)
		return 0;
	request->path = request->newest;
	return newest_run(request->newest, sizeof request->newest);
}

/* ---- what the recording has of it ---- */

static int check_device(struct request *request, const struct facts *facts)
{
	uint64_t ordinal = opts_number(request->opts, "device", UINT64_MAX);

	if (ordinal == UINT64_MAX)
		return 0;
	for (uint32_t d = 0; d < facts->device_count; d++)
		if (facts->devices[d].ordinal == ordinal) {
			request->filter.device = d;
			return 0;
		}
	say_error("cannot export --device=%llu: the recording has %zu device%s",
		  (unsigned long long)ordinal, facts->device_count,
		  facts->device_count == 1 ? "" : "s");
	return -1;
}

/* How many recorded processes were asked for. */
static size_t wanted_processes(const struct request *request, const struct facts *facts)
{
	size_t count = 0;

	for (size_t p = 0; p < facts->process_count; p++)
		count += !request->filter.pid || facts->processes[p].pid == request->filter.pid;
	return count;
}

static int check_facts(struct request *request, const struct facts *facts)
{
	size_t wanted = wanted_processes(request, facts);

	if (moment_option_check(&request->facts, facts, opts_text(request->opts, "at")) ||
	    check_device(request, facts))
		return -1;
	if (!wanted) {
		say_error("cannot export --pid=%u: the recording has no such process",
			  request->filter.pid);
		return -1;
	}
	if (request->format->one_process && wanted > 1) {
		say_error("--to=%s has one process and this run has %zu: choose one with --pid=N",
			  request->format->name, wanted);
		return -1;
	}
	return 0;
}

/* What is missing from the result, or may be misread in it. */
static void note_gaps(const struct request *request, const struct facts *facts)
{
	bool has_framework = false;

	for (size_t i = 0; i < facts->leak_count; i++)
		has_framework |= facts->leaks[i].kind == CUF_KIND_FRAMEWORK;
	if (request->format->sums && has_framework && !opts_text(request->opts, "kind"))
		say_info("blocks of a framework lie inside device blocks and are left out; "
			 "--kind=framework exports them");
	if (!request->format->takes_moment && facts->events_overwritten)
		say_info("%s of %s events were overwritten: blocks that died before the oldest "
			 "event left are missing",
			 units_count(facts->events_overwritten).s,
			 units_count(facts->events_recorded).s);
	if (facts->events_lost)
		say_info("%s events were lost: totals may be too low",
			 units_count(facts->events_lost).s);
	for (size_t p = 0; p < facts->process_count; p++)
		if (!facts->processes[p].complete)
			say_info("the recording of process %u is cut: what follows the cut is "
				 "missing", facts->processes[p].pid);
}

/* ---- the result ---- */

/* -o, or a file in it when it is a directory: the name of the recording with the ending. */
static const char *output_path(const struct request *request, char *path, size_t bytes)
{
	const char *asked = opts_text(request->opts, "output");
	char whole[PATH_MAX], *end;
	struct stat st;

	if (!asked || stat(asked, &st) || !S_ISDIR(st.st_mode) ||
	    !realpath(request->path, whole))
		return asked;
	end = strrchr(whole, '.');
	if (end && !strcmp(end, ".cuf"))
		*end = 0;
	snprintf(path, bytes, "%.2000s/%.1900s%s", asked, path_base_name(whole),
		 request->format->ending);
	return path;
}

static int open_output(const struct request *request, struct output *output, char *path,
		       size_t bytes)
{
	const char *place = output_path(request, path, bytes);

	if (request->format->binary && (!place || !strcmp(place, "-")) && isatty(STDOUT_FILENO)) {
		say_error("--to=%s is binary and stdout is a terminal: "
			  "name a file with -o FILE%s", request->format->name,
			  request->format->ending);
		return -1;
	}
	return output_open_path(output, place, opts_has(request->opts, "force"));
}

static int write_rows(const struct request *request, struct output *output,
		      const struct facts *facts, struct symbols *symbols)
{
	struct export_target target = { .file = output->file };
	struct frames *frames = frames_new(facts, symbols);
	struct rows *rows = rows_new(facts, frames, &request->filter);
	struct progress progress;
	int result;

	progress_begin(&progress, opts_has(request->opts, "quiet"));
	rows_on_progress(rows, progress_step, &progress);
	result = request->format->write(&target, rows);
	progress_end(&progress);
	rows_free(rows);
	frames_free(frames);
	if (result)
		say_error("cannot export to %s: %s", request->format->name, target.error);
	return result;
}

/* Nothing is left of the output unless it is complete. */
static int export_facts(struct request *request, const struct facts *facts,
			struct symbols *symbols, struct output *output)
{
	if (!facts || check_facts(request, facts) ||
	    write_rows(request, output, facts, symbols)) {
		output_abandon(output);
		return CMD_USAGE;
	}
	if (cut_guard_seen()) {
		output_abandon(output);
		say_error("the recording was truncated while it was read; export a copy of it");
		return CMD_USAGE;
	}
	if (output_close(output))
		return CMD_USAGE;
	note_gaps(request, facts);
	return CMD_FINE;
}

/* The output is opened first, so that its errors are reported before minutes of reading. */
static int export_blocks(struct request *request, struct symbols *symbols)
{
	char path[PATH_MAX];
	struct output output;
	struct facts *facts;
	int status;

	if (open_output(request, &output, path, sizeof path))
		return CMD_USAGE;
	facts = open_facts(request->path, symbols, &request->facts);
	status = export_facts(request, facts, symbols, &output);
	facts_free(facts);
	return status;
}

static int run_export(const struct opts *opts, const struct cmd *const *commands)
{
	struct symbols_options options = { .sysroot = opts_text(opts, "sysroot"),
					   .debuginfod = opts_has(opts, "debuginfod") };
	struct request request;
	struct symbols *symbols;
	int status;

	(void)commands;
	if (read_request(&request, opts))
		return CMD_USAGE;
	symbols = symbols_new(&options);
	if (request.format) {
		status = export_blocks(&request, symbols);
	} else {
		request.tables.symbols = symbols;
		status = export_tables(&request.tables);
	}
	symbols_free(symbols);
	return status;
}

static const struct opt options[] = {
	{ "to", 0, OPT_TEXT, "FORMAT", 0, 0, NULL, "the format; see above" },
	{ "output", 'o', OPT_TEXT, "FILE", 0, 0, "stdout",
	  "write to FILE, which appears only when it is complete; in a directory, to a file named "
	  "after the recording" },
	{ "force", 'f', OPT_FLAG, NULL, 0, 0, NULL, "overwrite an existing file" },
	{ "table", 0, OPT_LIST, "NAME", 0, 0, "all",
	  "of csv, ndjson, sqlite and parquet: this table; may be repeated; cuflight-tables(7) "
	  "lists them" },
	{ "at", 0, OPT_TEXT, "WHEN", 0, 0, NULL,
	  "the moment whose live blocks are exported: now, end, peak, #N for a failed request, "
	  "Ns for seconds since the start; without it, the last fatal failure, else the end" },
	{ "kind", 0, OPT_TEXT, "KIND,...", 0, 0, NULL,
	  "only these kinds of memory: device, managed, pinned, registered, async, vmm, array, "
	  "imported, host, framework" },
	{ "device", 0, OPT_COUNT, "N", 0, 1000000, NULL, "only memory of this GPU" },
	{ "pid", 0, OPT_COUNT, "N", 1, UINT32_MAX, NULL, "only this process" },
	{ "interpreter", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "keep the interpreter's C functions in stacks of Python; of folded, pprof, perfetto, "
	  "torch-snapshot and heaptrack" },
	{ "run", 0, OPT_COUNT, "N", 1, 1000000, NULL,
	  "which run of a directory, as 'cuflight list' numbers them; without it, the newest" },
	{ "sysroot", 0, OPT_TEXT, "DIR", 0, 0, NULL,
	  "get function names from the recorded machine's files below DIR, not from here" },
	{ "debuginfod", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "get function names from the servers in DEBUGINFOD_URLS (slow, over the network)" },
};
static const struct opt_group option_group = {
	"Options", options, sizeof options / sizeof *options, { NULL },
};

const struct cmd cmd_export = {
	.name = "export",
	.summary = "write a recording in the format of another tool",
	.usage = "--to=FORMAT [OPTIONS] [RECORDING|DIRECTORY...]",
	.manual = "cuflight-export",
	.about = "Writes blocks, call sites and figures of a recording for tools that people "
		 "already have. Of the blocks live at one moment: folded (flamegraph.pl, "
		 "inferno, speedscope), pprof, torch-snapshot (PyTorch's memory_viz). Of the whole "
		 "history: perfetto, heaptrack. Tables of any number of recordings: csv, ndjson, "
		 "sqlite, parquet; see cuflight-tables(7). Sums are those of 'cuflight report'; "
		 "sampled blocks count for what they stand for. Exit status: 0 fine; 2 usage "
		 "error, unreadable input, or a result that was not written; 3 tables without some "
		 "recordings, which could not be read.",
	.examples = "cuflight export --to=folded server.cuf\tlive bytes by call stack\n"
		    "cuflight export --to=folded --kind=framework --at=peak -o x.folded x.cuf\t"
		    "tensors at the peak\n"
		    "cuflight export --to=pprof -o heap.pb.gz server.cuf\tfor go tool pprof\n"
		    "cuflight export --to=parquet -o fleet rec/\tany number, for SQL\n",
	.groups = { &option_group, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_export,
};
