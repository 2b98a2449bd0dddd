/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight check`: judges a recording against limits and a baseline. */
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/run/judge_run.h"
#include "analysis/recording/cut_guard.h"
#include "analysis/view/commands/gate_view.h"

static int write_result(const struct opts *opts, const struct gate_result *result)
{
	struct output output;

	if (output_open(&output, opts))
		return CMD_USAGE;
	if (output.format == OUTPUT_JSON)
		gate_json(output.file, result);
	else
		gate_text(output.file, result, &output.style, opts_has(opts, "verbose"));
	if (cut_guard_seen()) {
		output_abandon(&output);
		say_error("the recording was truncated while it was read; check a copy of it");
		return CMD_USAGE;
	}
	return output_close(&output) ? CMD_USAGE : CMD_FINE;
}

/* Writes everything, and returns what the run comes to. */
static int judge_and_write(const struct opts *opts, struct judge_request *request,
			   const struct gate_outputs *outputs)
{
	struct judged judged;
	int status, judgement;

	if (judge_run(request, &judged))
		return CMD_USAGE;
	judgement = gate_exit_status(&judged.result);
	status = write_result(opts, &judged.result);
	if (!status && gate_outputs_write(outputs, &judged.result))
		status = CMD_USAGE;
	judge_free(&judged);
	if (status)
		return status;
	if (judgement == CMD_INCONCLUSIVE && opts_has(opts, "allow-inconclusive"))
		return CMD_FINE;
	return judgement;
}

static int run_check(const struct opts *opts, const struct cmd *const *commands)
{
	struct symbols_options symbols = { .sysroot = opts_text(opts, "sysroot") };
	struct judge_request request = {
		.config = opts_text(opts, "config"),
		.baseline = opts_text(opts, "baseline"),
		.any_environment = opts_has(opts, "any-environment"),
		.symbols = &symbols,
	};
	struct gate_outputs outputs;
	int status;

	if (!opts->operand_count) {
		say_error("no recording given: cuflight check RECORDING [LIMIT...]; see "
			  "'cuflight check --help'");
		return CMD_USAGE;
	}
	request.path = opts->operands[0];
	request.limits = opts->operands + 1;
	request.limit_count = (size_t)opts->operand_count - 1;
	if (gate_outputs_open(&outputs, opts))
		return CMD_USAGE;
	request.suppressions = outputs.suppressions;
	status = judge_and_write(opts, &request, &outputs);
	gate_outputs_close(&outputs);
	return status;
}

static const struct opt options[] = {
	{ "baseline", 'b', OPT_TEXT, "FILE", 0, 0, NULL,
	  "compare with what 'cuflight baseline' wrote" },
	{ "config", 'c', OPT_TEXT, "FILE", 0, 0, "the nearest cuflight.ini",
	  "file with limits; it is used when the command line has none" },
	{ "allow-inconclusive", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "exit with 0 instead of 3 if nothing is exceeded and something cannot be judged" },
	{ "any-environment", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "compare also with a baseline of another GPU, driver or way of recording" },
	{ "sysroot", 0, OPT_TEXT, "DIR", 0, 0, NULL,
	  "get function names from the recorded machine's files below DIR, not from here" },
};
static const struct opt_group option_group = {
	"Options", options, sizeof options / sizeof *options, { NULL },
};

const struct cmd cmd_check = {
	.name = "check",
	.summary = "judge a recording against limits and a baseline, for CI",
	.usage = "[OPTIONS] RECORDING|DIRECTORY [LIMIT...]",
	.manual = "cuflight-check",
	.about = "Exit status: 0 every limit is kept; 1 a limit is exceeded; 2 usage error or "
		 "unreadable input; 3 it cannot be judged: events were lost, nothing was "
		 "recorded, or the baseline is of another GPU. A LIMIT reads 'device.peak <= "
		 "2GiB', 'device.leak = 0' or, with a baseline, 'device.peak <= +3%'. Without any, "
		 "fatal failures, kills by the kernel and proven leaks are judged, and whatever "
		 "the baseline has. "
		 "Measures: device, pinned, managed, framework, host and python, each with .peak "
		 "and .end; device.leak, host.leak, request.growth, device.unused, device.hole, "
		 "incidents.fatal, incidents.recovered, device.allocations, host.allocations.",
	.examples = "cuflight check server.cuf 'device.peak <= 2GiB' 'device.leak = 0'\tbudgets\n"
		    "cuflight check after.cuf --baseline=memory.json\tnothing may get worse\n",
	.groups = { &option_group, &opts_gate, &opts_result, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_check,
};
