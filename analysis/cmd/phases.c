/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight phases`: what each phase, request or test needed. */
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/run/open_facts.h"
#include "analysis/explain/facts_build.h"
#include "analysis/gate/phase_use.h"
#include "analysis/recording/cut_guard.h"
#include "analysis/symbols/symbols.h"
#include "analysis/view/commands/phases_view.h"

/* What is open while the answer is made. facts: only where call sites are named. */
struct phases_reading {
	const struct opts *opts;
	const char *path;
	struct run run;
	struct symbols *symbols;
	struct facts *facts;
	struct phase_uses uses;
};

static int write_result(const struct phases_reading *reading)
{
	struct phases_view view = { .path = reading->path, .uses = &reading->uses };
	struct output output;

	if (output_open(&output, reading->opts))
		return CMD_USAGE;
	if (reading->facts) {
		view.frames = frames_new(reading->facts, reading->symbols);
		view.places = places_new(reading->facts, view.frames);
	}
	if (output.format == OUTPUT_JSON)
		phases_json(output.file, &view);
	else
		phases_text(output.file, &view);
	if (reading->facts) {
		places_free(view.places);
		frames_free(view.frames);
	}
	if (cut_guard_seen()) {
		output_abandon(&output);
		say_error("the recording was truncated while it was read; use a copy of it");
		return CMD_USAGE;
	}
	return output_close(&output) ? CMD_USAGE : CMD_FINE;
}

static int read_phases(struct phases_reading *reading, uint64_t id)
{
	struct facts_options options = { 0 }; /* without function names: only modules are needed */
	struct reader_error error = { 0 };
	int status;

	if (run_open(&reading->run, reading->path, &error)) {
		refuse_recording(reading->path, &error);
		return CMD_USAGE;
	}
	if (opts_has(reading->opts, "sites") &&
	    facts_build(reading->path, &options, &reading->facts, &error)) {
		refuse_recording(reading->path, &error);
		return CMD_USAGE;
	}
	reading->run.symbols = reading->symbols;
	if (reading->facts)
		run_merge_call_sites(&reading->run);
	phase_uses_read(&reading->uses, &reading->run, id, reading->facts);
	if (id && !reading->uses.count) {
		say_error("no phase of '%s' has the id %s", reading->path,
			  opts_text(reading->opts, "id"));
		status = CMD_USAGE;
	} else {
		status = write_result(reading);
	}
	phase_uses_free(&reading->uses);
	return status;
}

static int run_phases(const struct opts *opts, const struct cmd *const *commands)
{
	struct symbols_options options = { .sysroot = opts_text(opts, "sysroot") };
	struct phases_reading reading = { .opts = opts };
	int status;

	if (opts->operand_count != 1) {
		say_error("expected one recording or directory: cuflight phases RECORDING");
		return CMD_USAGE;
	}
	if (opts_has(opts, "sites") && !opts_has(opts, "id")) {
		say_error("--sites needs --id=N: the call sites of one phase");
		return CMD_USAGE;
	}
	reading.path = opts->operands[0];
	reading.symbols = symbols_new(&options);
	status = read_phases(&reading, opts_number(opts, "id", 0));
	facts_free(reading.facts);
	run_fini(&reading.run);
	symbols_free(reading.symbols);
	return status;
}

static const struct opt options[] = {
	{ "id", 0, OPT_COUNT, "N", 1, UINT64_MAX, NULL,
	  "only the phase or request with this id, which cuflight_phase_start or "
	  "cuflight_request_begin returned" },
	{ "sites", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "with --id: also the call sites that held its peak, and those of what stayed" },
	{ "sysroot", 0, OPT_TEXT, "DIR", 0, 0, NULL,
	  "get function names from the recorded machine's files below DIR, not from here" },
};
static const struct opt_group option_group = {
	"Options", options, sizeof options / sizeof *options, { NULL },
};

const struct cmd cmd_phases = {
	.name = "phases",
	.summary = "list what each phase, request or test needed, and what stayed",
	.usage = "[OPTIONS] RECORDING|DIRECTORY",
	.manual = "cuflight-phases",
	.about = "One row for each phase or request that the program marked (cuflight.h, NVTX, "
		 "the plugins for pytest, GoogleTest and Catch2), by kind of memory: how far live "
		 "bytes rose above those at its begin, and how many of them stayed. The recording "
		 "may be of a process that still runs. Host memory is exact with --host=full, else "
		 "estimated. Exit status: 0 fine; 2 usage error or unreadable input.",
	.examples = "cuflight phases server.cuf\tthe memory of each phase or test\n"
		    "cuflight phases --json -o phases.json rec/\tfor a script, all processes\n",
	.groups = { &option_group, &opts_result, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_phases,
};
