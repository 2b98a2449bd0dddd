/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight what-if`: plays the requests of a recording again under other settings. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/reading/new_run.h"
#include "analysis/cmd/run/open_facts.h"
#include "analysis/explain/facts_build.h"
#include "analysis/explain/replayed.h"
#include "analysis/recording/cut_guard.h"
#include "analysis/symbols/symbols.h"
#include "analysis/view/commands/what_if_view.h"

/* What is open while the answer is made. */
struct question {
	const struct opts *opts;
	const char *path;
	struct symbols *symbols;
	struct facts *facts;
	struct replayed about;
	struct what_if answer;
};

/* ---- progress ---- */

struct progress { time_t since; int shown; };

/* One line on a terminal that is written again and again, from the second second on. */
static void show_progress(void *argument, double share)
{
	struct progress *progress = argument;
	int percent = (int)(share * 100);

	if (time(NULL) - progress->since < 1 || percent == progress->shown ||
	    !isatty(STDERR_FILENO))
		return;
	progress->shown = percent;
	fprintf(stderr, "\rcuflight: replayed %d%%", percent);
}

static void end_progress(const struct progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
}

/* ---- the answer ---- */

static int close_output(struct output *output)
{
	if (cut_guard_seen()) {
		output_abandon(output);
		say_error("the recording was truncated while it was read; use a copy of it");
		return CMD_USAGE;
	}
	return output_close(output) ? CMD_USAGE : CMD_FINE;
}

/* No setting and no other allocator closes the gaps that the request failed by. */
static bool would_pack(const struct question *question)
{
	const struct fact_incident *incident = question->about.incident;

	for (size_t i = 0; i < question->answer.count; i++) {
		const struct what_if_row *row = &question->answer.rows[i];

		if (row->result.fits && row->trial.kind != TRIAL_WORK)
			return false;
	}
	return incident && incident->fits_if_packed == FACT_YES;
}

static int write_answer(const struct question *question)
{
	const struct run *run = question->facts->run;
	const struct run_process *process = &run->processes[question->about.process];
	struct what_if_view view = { .path = question->path,
				     .pid = process->reader->header.pid,
				     .what_if = &question->answer,
				     .start_ns = process->reader->header.start_ns,
				     .would_pack = would_pack(question),
				     .all = opts_has(question->opts, "all") };
	struct output output;

	if (output_open(&output, question->opts))
		return CMD_USAGE;
	view.style = &output.style;
	if (output.format == OUTPUT_JSON)
		what_if_json(output.file, &view);
	else
		what_if_text(output.file, &view);
	return close_output(&output);
}

static int answer(struct question *question)
{
	struct progress progress = { .since = time(NULL) };
	struct what_if_options options = { .all = opts_has(question->opts, "all"),
					   .set = opts_text(question->opts, "set"),
					   .progress = show_progress,
					   .argument = &progress };
	struct trace *trace;
	const char *why = NULL;
	bool done;

	trace = facts_trace(question->facts, &question->about);
	if (!trace) {
		say_error("cannot replay '%s': no request for device memory is recorded",
			  question->path);
		return CMD_USAGE;
	}
	done = what_if_run(trace, &options, question->facts->run->arena, &question->answer,
			   &why);
	end_progress(&progress);
	if (!done) {
		say_error("cannot try --set=%s: %s; cuflight what-if --all lists settings",
			  options.set, why);
		return CMD_USAGE;
	}
	return write_answer(question);
}

static int read_recording(struct question *question)
{
	/* names of functions tell what blocks are for */
	struct facts_options options = { .whole_replay = true, .symbols = question->symbols };
	struct reader_error error = { 0 };

	if (facts_build(question->path, &options, &question->facts, &error)) {
		refuse_recording(question->path, &error);
		return CMD_USAGE;
	}
	return answer(question);
}

/* ---- the command ---- */

static int run_what_if(const struct opts *opts, const struct cmd *const *commands)
{
	struct question question = { .opts = opts };
	char newest[PATH_MAX];
	int status;

	if (opts->operand_count > 1) {
		say_error("too many arguments: '%s'; what-if takes one recording or directory",
			  opts->operands[1]);
		return CMD_USAGE;
	}
	question.path = opts->operands[0];
	if (!opts->operand_count) {
		if (newest_run(newest, sizeof newest))
			return CMD_USAGE;
		question.path = newest;
	}
	question.symbols = symbols_new(&(struct symbols_options){ 0 });
	status = read_recording(&question);
	facts_free(question.facts);
	symbols_free(question.symbols);
	return status;
}

static const struct opt options[] = {
	{ "set", 0, OPT_TEXT, "NAME=VALUE", 0, 0, NULL,
	  "try only this, as PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:256 or "
	  "max_split_size_mb=256; or less work: weights=60%, kv=50%, largest=50%, tenant=0%, "
	  "requests=4, context=1000, batch=8, kept=100, cache=2GiB" },
	{ "all", 0, OPT_FLAG, NULL, 0, 0, NULL, "also try what is seldom of use" },
};
static const struct opt_group option_group = {
	"Options", options, sizeof options / sizeof *options, { NULL },
};

const struct cmd cmd_what_if = {
	.name = "what-if",
	.summary = "replay a recording under other settings: which would have fitted",
	.usage = "[OPTIONS] [RECORDING|DIRECTORY]",
	.manual = "cuflight-what-if",
	.about = "Plays the recorded requests again on a model of the allocator, once for each "
		 "setting that is worth trying, up to and including the request that failed. "
		 "Settings that fit come first, the smallest change on top, each with the room "
		 "that it leaves. Exit status: 0 fine, whatever fits; 2 usage error, unreadable "
		 "input, or nothing to replay.",
	.examples = "cuflight what-if server.cuf\twhat would have fitted\n"
		    "cuflight what-if --set max_split_size_mb=256 server.cuf\ttry one setting\n"
		    "cuflight what-if --json --all -o what-if.json server.cuf\tfor a script\n",
	.groups = { &option_group, &opts_result, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_what_if,
};
