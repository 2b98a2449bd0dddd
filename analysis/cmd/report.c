/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight report`: a recording, or a directory of them, explained. It is 0 even over a disaster: only readers fail. */
#include "analysis/cmd/cmd.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/cmd/target/destination.h"
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/run/recordings.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/explain/facts_build.h"
#include "analysis/symbols/symbols.h"
#include "analysis/view/report.h"
#include "analysis/view/units.h"

/* The newest run in the directory of CUFLIGHT_OUTPUT, or here. -1 after saying why there is none. */
static int find_newest(char *path, size_t bytes)
{
	struct destination destination;
	struct recordings list = { 0 };
	const struct recording_file *best;
	char shown[PATH_MAX];
	size_t processes;
	if (destination_set(&destination, NULL)) {
		say_error("cannot tell the current directory: %s", strerror(errno));
		return -1;
	}
	recordings_scan(&list, destination.directory, 0, 0);
	processes = recordings_mark_newest_run(&list);
	best = recordings_best(&list);
	if (!best) {
		say_error("no recording in %s; record one with 'cuflight run -- COMMAND', or name a file or directory", destination.directory);
		recordings_free(&list);
		return -1;
	}
	snprintf(path, bytes, "%s", processes == list.count && processes > 1 ? destination.directory : best->path);
	recordings_show_path(path, shown, sizeof shown);
	snprintf(path, bytes, "%s", shown);
	if (processes > 1 && processes != list.count)
		say_info("%s, one of %zu processes of the newest run here", shown, processes);
	else
		say_info("%s, the newest run here", shown);
	recordings_free(&list);
	return 0;
}

/* now, peak, the number of an incident (#3), or a time since the start (12.5s). */
static int parse_at(const char *text, struct facts_options *options)
{
	char *end;
	double seconds;
	if (!strcmp(text, "now")) {
		options->at = FACTS_AT_NOW;
	} else if (!strcmp(text, "peak")) {
		options->at = FACTS_AT_PEAK;
	} else if (*text == '#') {
		options->at = FACTS_AT_INCIDENT;
		return units_parse_count(text + 1, &options->at_value) && options->at_value ? 0 : -1;
	} else {
		seconds = strtod(text, &end);
		if (end == text || strcmp(end, "s") != 0 || !(seconds >= 0 && seconds < 1e9))
			return -1;
		options->at = FACTS_AT_TIME;
		options->at_value = (uint64_t)(seconds * 1e9);
	}
	return 0;
}

static void say_unreadable(const char *path, const struct reader_error *error)
{
	char detail[128] = "";
	if (error->system)
		snprintf(detail, sizeof detail, ": %s", strerror(error->system));
	else if (error->offset)
		snprintf(detail, sizeof detail, " (at byte %llu)", (unsigned long long)error->offset);
	say_error("cannot report on '%s': %s%s", *error->path ? error->path : path, reader_error_sentence(error->code), detail);
}

/* With -v: the files of the first screen's process whose names of functions could not be had. */
static void say_nameless(const struct facts *facts, struct symbols *symbols)
{
	const struct fact_process *process = &facts->processes[facts->focus];
	for (size_t i = 0; i < process->module_count; i++) {
		const struct fact_module *module = &process->modules[i];
		const char *reason = symbols_module_reason(symbols_module(symbols, module->path, module->build_id, module->build_id_bytes));
		if (reason && *module->path == '/') /* the kernel's own object has no file */
			say_info("without names: %s", reason);
	}
}

static int write_report(const struct opts *opts, const struct facts *facts, struct symbols *symbols)
{
	struct output output;
	struct frames *frames;
	if (output_open(&output, opts))
		return CMD_USAGE;
	frames = frames_new(facts, symbols);
	if (output.format == OUTPUT_JSON)
		report_json(output.file, facts, frames);
	else
		report_text(output.file, facts, frames, &output.style);
	frames_free(frames);
	return output_close(&output) ? CMD_USAGE : CMD_FINE;
}

static int run_report(const struct opts *opts)
{
	struct facts_options options = { 0 };
	struct symbols_options symbols_options = { .sysroot = opts_text(opts, "sysroot"), .debuginfod = opts_has(opts, "debuginfod") };
	struct reader_error error = { 0 };
	struct facts *facts;
	struct symbols *symbols;
	char path[PATH_MAX];
	int status;
	if (opts->operand_count > 1) {
		say_error("report takes one recording or one directory; '%s' is too many", opts->operands[1]);
		return CMD_USAGE;
	}
	if (opts_has(opts, "at") && parse_at(opts_text(opts, "at"), &options)) {
		say_error("--at=%s: wanted now, peak, #N (a failed request) or Ns (seconds since the start)", opts_text(opts, "at"));
		return CMD_USAGE;
	}
	if (opts->operand_count)
		snprintf(path, sizeof path, "%s", opts->operands[0]);
	else if (find_newest(path, sizeof path))
		return CMD_USAGE;
	symbols = options.symbols = symbols_new(&symbols_options);
	if (facts_build(path, &options, &facts, &error)) {
		say_unreadable(path, &error);
		symbols_free(symbols);
		return CMD_USAGE;
	}
	if (options.at == FACTS_AT_INCIDENT && options.at_value > facts->incident_count) {
		say_error("--at=%s: %s in it", opts_text(opts, "at"), facts->incident_count == 0 ? "no failed request is" :
			facts->incident_count == 1 ? "one failed request, #1, is" : "there are fewer failed requests");
		status = CMD_USAGE;
	} else {
		status = write_report(opts, facts, symbols);
	}
	if (opts_has(opts, "verbose"))
		say_nameless(facts, symbols);
	symbols_free(symbols);
	facts_free(facts);
	return status;
}

static const struct opt own[] = {
	{ "at", 0, OPT_TEXT, "WHEN", 0, 0, NULL, "the moment to show: now, peak, #N for a failed request, Ns for seconds since the start; "
	  "without it, the last fatal failure, else the end" },
	{ "sysroot", 0, OPT_TEXT, "DIR", 0, 0, NULL, "where the files of the recorded machine are, for names of functions" },
	{ "debuginfod", 0, OPT_FLAG, NULL, 0, 0, NULL, "ask the servers of DEBUGINFOD_URLS for names; slow, and over the network" },
};
static const struct opt_group own_group = { "Options", own, sizeof own / sizeof *own, { NULL } };

const struct cmd cmd_report = {
	.name = "report",
	.summary = "explain a recording: why memory ran out, who holds it",
	.usage = "[OPTIONS] [RECORDING|DIRECTORY]",
	.about = "Says what died, where and when; the failed request and the largest free block by layer; who holds every byte of the device; "
		 "what grew and what leaks; the host; and what the recorder did not see. A directory is one run of several processes. Without an "
		 "argument it takes the newest run in the current directory, or in that of CUFLIGHT_OUTPUT. Exit status: 0, also over a disaster; 2 when "
		 "nothing could be read or written.",
	.examples = "cuflight report\tthe newest run here\n"
		    "cuflight report --json -o report.json rec/\tfor a script, all processes\n"
		    "cuflight report --at=peak server.cuf\tat the fullest moment\n",
	.groups = { &own_group, &opts_result, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_report,
};
