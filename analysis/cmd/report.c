/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight report`: explains a recording, or a directory of them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "analysis/base/paths.h"
#include "analysis/base/units.h"
#include "analysis/cmd/cli/html_place.h"
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/reading/moment_option.h"
#include "analysis/cmd/reading/new_run.h"
#include "analysis/cmd/run/conclusion.h"
#include "analysis/cmd/run/open_facts.h"
#include "analysis/cmd/run/recordings.h"
#include "analysis/explain/facts_build.h"
#include "analysis/facts/history/timeline.h"
#include "analysis/facts/totals.h"
#include "analysis/recording/cut_guard.h"
#include "analysis/symbols/symbols.h"
#include "analysis/view/html/html_page.h"
#include "analysis/view/json/report_json.h"
#include "analysis/view/text/report_text.h"

/*
 * A pager for long results, as in git: $PAGER, else `less -FRX`. Contract: pager_open returns a
 * stream to write to, or NULL when stdout is no terminal, PAGER is empty or "cat", or the pager
 * cannot be started. pager_close waits until the reader has left. Leaving early is no error.
 */
FILE *pager_open(void);

/* The command of the pager; NULL: there shall be none. */
static const char *pager_command(void)
{
	const char *pager = getenv("PAGER"), *term = getenv("TERM");

	if (!isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb"))
		return NULL;
	if (!pager)
		return "less -FRX";
	if (!*pager || !strcmp(pager, "cat"))
		return NULL;
	return pager;
}

/* NULL when stdout is no terminal, or the user has switched it off. */
FILE *pager_open(void)
{
	const char *command = pager_command();
	FILE *pager;

	if (!command)
		return NULL;
	fflush(stdout);
	pager = popen(command, "we");
	/* a reader who leaves closes the pipe, and the rest need not be written */
	if (pager)
		signal(SIGPIPE, SIG_IGN);
	return pager;
}

static void pager_close(FILE *pager)
{
	pclose(pager);
}

enum { TERMINATION_LOG_BYTES = 4096 }; /* Kubernetes shows no more */

/* With -v: modules of the first screen's process without function names, and why. */
static void print_nameless_modules(const struct facts *facts, struct symbols *symbols)
{
	const struct fact_process *process = &facts->processes[facts->focus];

	for (size_t i = 0; i < process->module_count; i++) {
		const struct fact_module *module = &process->modules[i];
		const char *reason = symbols_module_reason(symbols_module(
			symbols, module->path, module->build_id, module->build_id_bytes));
		if (reason && *module->path == '/') /* the kernel's vdso has no file */
			say_info("no function names: %s", reason);
	}
}

/* The operand as a shell takes it; NULL: none was given. */
static const char *quoted_operand(const struct opts *opts, char *out, size_t bytes)
{
	if (!opts->operand_count)
		return NULL;
	path_quote_shell(opts->operands[0], out, bytes);
	return out;
}

/* One screen, or with --full the long report, which a terminal gets through a pager. */
static void write_text(const struct opts *opts, const struct output *output,
		       const struct facts *facts, struct frames *frames)
{
	struct report_text_options options = {
		.full = opts_has(opts, "full"),
		.verbose = opts_has(opts, "verbose"),
		.rows = opts_number(opts, "top", 0),
	};
	char operand[PATH_MAX];
	FILE *pager = NULL;

	options.operand = quoted_operand(opts, operand, sizeof operand);
	if (options.full && !output->path && !opts_has(opts, "no-pager"))
		pager = pager_open();
	report_text(pager ? pager : output->file, facts, frames, &output->style, &options);
	if (pager)
		pager_close(pager);
}

/* What kubectl describe shows: the first screen, in place, as the file is a mount of its own. What
 * cannot be written changes no exit status: the report is what was asked for. */
static void write_termination_log(const struct opts *opts, const struct facts *facts,
				  struct frames *frames)
{
	const char *path = opts_text(opts, "termination-log");
	char *text = NULL, operand[PATH_MAX];
	struct report_text_options options = {
		.operand = quoted_operand(opts, operand, sizeof operand)
	};
	struct style plain;
	size_t bytes = 0;
	FILE *memory = open_memstream(&text, &bytes);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0644);

	if (memory) {
		style_init(&plain, memory, STYLE_NEVER);
		report_text(memory, facts, frames, &plain, &options);
		fclose(memory);
	}
	if (bytes > TERMINATION_LOG_BYTES)
		bytes = TERMINATION_LOG_BYTES;
	if (fd < 0 || write(fd, text, bytes) != (ssize_t)bytes)
		say_info("cannot write '%s': %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	free(text);
}

/* False: nothing was written; why not was printed. */
static bool write_html(const struct opts *opts, const struct output *output,
		       const struct facts *facts, struct frames *frames)
{
	struct timeline *timeline = timeline_build(facts, facts->run, 0);
	char operand[PATH_MAX];
	enum html_result result =
		html_report(output->file, facts, frames, timeline,
			    quoted_operand(opts, operand, sizeof operand));

	timeline_free(timeline);
	if (result == HTML_TOO_LARGE)
		say_error("the page would be larger than %s; the recording repeats long names, so "
			  "do not trust it. Read it as text, without --html",
			  units_bytes(HTML_BYTES_MOST).s);
	return result == HTML_WRITTEN;
}

static enum output_format format_of(const struct opts *opts)
{
	if (opts_has(opts, "html"))
		return OUTPUT_HTML;
	if (opts_has(opts, "json"))
		return OUTPUT_JSON;
	return (enum output_format)opts_number(opts, "format", OUTPUT_TEXT);
}

/* -o, or stdout where that is no terminal; else a file next to the recording. */
static int open_html(const struct opts *opts, const char *recording, struct output *output,
		     struct html_place *place)
{
	const char *path = opts_text(opts, "output");

	if (!html_has_page()) {
		say_error("this build of cuflight has no HTML page, which needs npm: install it, "
			  "run 'scripts/setup build' and make in the source, or take a release; "
			  "use --full or --json");
		return -1;
	}
	if (!path && html_place_choose(place, recording))
		path = place->path;
	if (output_open_path(output, path, opts_has(opts, "force")))
		return -1;
	output->format = OUTPUT_HTML;
	return 0;
}

/* Where the report goes. It is opened first, so that a place that cannot be written, or that has a
 * file already, is reported before the work. */
struct report_place { struct output output; struct html_place html; };

static int open_place(const struct opts *opts, const char *recording, struct report_place *place)
{
	if (format_of(opts) == OUTPUT_HTML)
		return open_html(opts, recording, &place->output, &place->html);
	return output_open(&place->output, opts);
}

/* A recording that another process truncates under us is noticed at the end: what was written may
 * be wrong then. */
static int write_report(const struct opts *opts, const struct facts *facts, struct symbols *symbols,
			struct report_place *place)
{
	struct output *output = &place->output;
	struct frames *frames;
	bool whole = true, written = true;

	frames = frames_new(facts, symbols);
	if (output->format == OUTPUT_HTML)
		written = write_html(opts, output, facts, frames);
	else if (output->format == OUTPUT_JSON)
		whole = report_json(output->file, facts, frames);
	else
		write_text(opts, output, facts, frames);
	if (opts_has(opts, "termination-log"))
		write_termination_log(opts, facts, frames);
	frames_free(frames);
	if (!written) {
		output_abandon(output);
		return CMD_USAGE;
	}
	if (cut_guard_seen()) {
		output_abandon(output);
		say_error("the recording was truncated while it was read; report on a copy of it");
		return CMD_USAGE;
	}
	if (!whole) {
		output_abandon(output);
		say_error("the document would be longer than %s, 64 times its recording; "
			  "the recording repeats long names, so do not trust it. "
			  "Read it as text, without --json",
			  units_bytes(report_json_limit(facts)).s);
		return CMD_USAGE;
	}
	if (output_close(output))
		return CMD_USAGE;
	html_place_show(&place->html);
	return CMD_FINE;
}

/* Restarts of a pod are runs of their own: only one of them is explained. */
static void note_other_runs(const char *path, const struct facts *facts, const struct opts *opts)
{
	char shown[PATH_MAX];

	if (facts->run_number < facts->run_count || facts->run_count < 2 ||
	    opts_has(opts, "run"))
		return;
	recordings_show_path(path, shown, sizeof shown);
	say_info("this is the newest of %zu runs; all: cuflight list %s", facts->run_count, shown);
}

/*
 * A finished program whose fullest moment tells more than its end is shown at that moment, as text;
 * JSON and the page have the end. What grew up to the peak and is gone is no finding.
 */
static struct facts *at_peak_if_asked(const char *path, struct facts_options *options,
				      struct facts *facts)
{
	struct facts_options at_peak = *options;
	struct facts *peak;

	if (options->at != FACTS_AT_AUTO || !facts_ask_for_peak(facts))
		return facts;
	at_peak.at = FACTS_AT_PEAK;
	if (facts_build(path, &at_peak, &peak, NULL))
		return facts;
	if (peak->cause || peak->process_count != facts->process_count) {
		facts_free(peak);
		return facts;
	}
	facts_free(facts);
	return peak;
}

/* Builds the facts, checks that they contain the requested moment, and writes the report. */
static int report_path(const char *path, const struct opts *opts, struct facts_options *options)
{
	struct symbols_options symbols_options = {
		.sysroot = opts_text(opts, "sysroot"),
		.debuginfod = opts_has(opts, "debuginfod"),
	};
	struct symbols *symbols;
	struct reader_error error = { 0 };
	struct facts *facts = NULL;
	struct report_place place = { 0 };
	int status = CMD_USAGE;

	if (open_place(opts, path, &place))
		return CMD_USAGE;
	options->symbols = symbols = symbols_new(&symbols_options);
	if (facts_build(path, options, &facts, &error)) {
		output_abandon(&place.output);
		refuse_recording(path, &error);
	} else if (moment_option_check(options, facts, opts_text(opts, "at"))) {
		output_abandon(&place.output);
	} else {
		if (format_of(opts) == OUTPUT_TEXT)
			facts = at_peak_if_asked(path, options, facts);
		note_other_runs(path, facts, opts);
		status = write_report(opts, facts, symbols, &place);
		if (opts_has(opts, "verbose"))
			print_nameless_modules(facts, symbols);
	}
	facts_free(facts);
	symbols_free(symbols);
	conclusion_trim_directory(path); /* a file is none */
	return status;
}

/* For the start of a pod, which must not fail because an old recording cannot be read. */
static int report_new(const char *directory, const struct opts *opts, struct facts_options *options)
{
	options->run = new_run(directory);
	if (options->run)
		report_path(directory, opts, options);
	else
		say_info("no run in '%s' has ended since the last report", directory);
	return CMD_FINE;
}

/* The argument of --at is checked before any file is opened, and against the recording
 * afterwards. */
static int run_report(const struct opts *opts, const struct cmd *const *commands)
{
	struct facts_options options = { .run = opts_number(opts, "run", 0),
					 .pid = (uint32_t)opts_number(opts, "pid", 0),
					 .warm_up_s = (double)opts_number(opts, "warm-up", 0) };
	const char *at = opts_text(opts, "at");
	char path[PATH_MAX];

	if (opts->operand_count > 1) {
		say_error("too many arguments: '%s'; report reads one recording or one directory",
			  opts->operands[1]);
		return CMD_USAGE;
	}
	if (at && moment_option_parse(at, &options))
		return CMD_USAGE;
	if (opts_has(opts, "new") && (!opts->operand_count || opts_has(opts, "run"))) {
		say_error("--new chooses the run of a directory: name one, without --run");
		return CMD_USAGE;
	}
	if (opts_has(opts, "new"))
		return report_new(opts->operands[0], opts, &options);
	if (opts->operand_count)
		snprintf(path, sizeof path, "%s", opts->operands[0]);
	else if (newest_run(path, sizeof path))
		return CMD_USAGE;
	return report_path(path, opts, &options);
}

static const struct opt options[] = {
	{ "format", 0, OPT_CHOICE, "text|json|html", 0, 0, "text", "format of the output" },
	{ "html", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "the same as --format=html: one file with pictures, for a browser; on a terminal it is "
	  "written next to the recording, and a desktop's browser opens it" },
	{ "at", 0, OPT_TEXT, "WHEN", 0, 0, NULL,
	  "the moment to show: now, end (before exit handlers), peak, #N for a failed request, "
	  "Ns for seconds since the start; without it, the last fatal failure, else the end; "
	  "as text, a program that finished and had freed half by then is shown at its peak" },
	{ "run", 0, OPT_COUNT, "N", 1, 1000000, NULL,
	  "which run of a directory, as 'cuflight list' numbers them; without it, the newest" },
	{ "new", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "the run of a directory that ended last, unless --new has reported it before; for the "
	  "start of a pod: the exit status is 0 whatever the recordings are" },
	{ "termination-log", 0, OPT_TEXT, "FILE", 0, 0, NULL,
	  "write the first screen into FILE, too, as /dev/termination-log, which kubectl describe "
	  "shows" },
	{ "pid", 0, OPT_COUNT, "N", 1, UINT32_MAX, NULL, "only this process of the run" },
	{ "warm-up", 0, OPT_COUNT, "SECONDS", 1, 86400, "300",
	  "of a program that still runs: how long memory must rise before it is a finding" },
	{ "full", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "print the long report: evidence, all call sites, phases; in a pager on a terminal "
	  "(PAGER, else less -FRX)" },
	{ "top", 0, OPT_COUNT, "N", 1, 1000000, "10", "rows of each table of the long report" },
	{ "no-pager", 0, OPT_FLAG, NULL, 0, 0, NULL, "print the long report without a pager" },
	{ "sysroot", 0, OPT_TEXT, "DIR", 0, 0, NULL,
	  "get function names from the recorded machine's files below DIR, not from here" },
	{ "debuginfod", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "get function names from the servers in DEBUGINFOD_URLS (slow, over the network)" },
};
static const struct opt_group option_group = {
	"Options", options, sizeof options / sizeof *options, { NULL },
};

const struct cmd cmd_report = {
	.name = "report",
	.summary = "explain a recording: why memory ran out, who held it",
	.usage = "[OPTIONS] [RECORDING|DIRECTORY]",
	.manual = "cuflight-report",
	.about = "Prints one screen: what happened, the likely cause, what to do, and who held the "
		 "memory; --full prints more. A directory is one run of several processes. Without "
		 "an argument, reads the newest run in the directory of CUFLIGHT_OUTPUT, else in "
		 "the current one. Exit status: 0 a report was written, whatever it reports; 2 it "
		 "was not.",
	.examples = "cuflight report\tthe newest run here\n"
		    "cuflight report --json -o report.json rec/\tfor a script, all processes\n"
		    "cuflight report --at=peak server.cuf\twhen memory use was highest\n"
		    "cuflight report --html -o oom.html server.cuf\tpictures, in one file\n"
		    "cuflight report --new /recordings\tat the next start: why the last one "
		    "ended\n",
	.groups = { &option_group, &opts_result, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_report,
};
