/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight baseline`: what one commit's runs held, for `cuflight check` to compare with. */
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/run/open_facts.h"
#include "analysis/explain/facts_build.h"
#include "analysis/gate/finding.h"
#include "analysis/symbols/symbols.h"
#include "analysis/view/commands/baseline_file.h"

enum { GAPS_MAX = 8, FEW_RUNS = 3 };

/* Why this run cannot be part of the baseline; false: it can. */
static bool is_unfit(const struct gate_baseline *baseline, const struct measured *run,
		     const char *path)
{
	const char *gaps[GAPS_MAX], *difference = NULL;

	if (measure_gaps(run, gaps, GAPS_MAX)) {
		say_error("cannot use '%s': %s", path, gaps[0]);
		return true;
	}
	if (baseline->runs)
		difference = environment_difference(&baseline->environment, &run->environment,
						    run->arena);
	if (difference)
		say_error("cannot put '%s' with the runs before it: %s", path, difference);
	return difference != NULL;
}

/* number: of the run in a directory of several. *count: how many there are. */
static int add_run(struct gate_baseline *baseline, const char *path, size_t number, size_t *count,
		   struct symbols *symbols)
{
	struct facts_options options = { .run = number, .all_peaks = true };
	struct facts *facts = open_facts(path, symbols, &options);
	struct measured run;
	int status = CMD_FINE;

	if (!facts)
		return CMD_USAGE;
	*count = facts->run_count;
	measure_run(&run, facts, symbols);
	if (is_unfit(baseline, &run, path))
		status = CMD_INCONCLUSIVE;
	else
		baseline_add(baseline, &run);
	measured_free(&run);
	facts_free(facts);
	return status;
}

/* A recording, or every run of a directory. */
static int add_runs(struct gate_baseline *baseline, const char *path, struct symbols *symbols)
{
	size_t count = 1;
	int status = CMD_FINE;

	for (size_t number = 1; number <= count && !status; number++)
		status = add_run(baseline, path, number, &count, symbols);
	return status;
}

static int write_baseline(const struct opts *opts, const struct gate_baseline *baseline)
{
	struct output output;

	if (output_open_path(&output, opts_text(opts, "output"), opts_has(opts, "force")))
		return CMD_USAGE;
	baseline_write(baseline, output.file);
	if (output_close(&output))
		return CMD_USAGE;
	if (baseline->runs < FEW_RUNS)
		say_info("the spread of %llu run%s is narrow; 5 runs tell noise from change",
			 (unsigned long long)baseline->runs, baseline->runs == 1 ? "" : "s");
	return CMD_FINE;
}

static int run_baseline(const struct opts *opts, const struct cmd *const *commands)
{
	struct symbols_options options = { .sysroot = opts_text(opts, "sysroot") };
	struct symbols *symbols;
	struct gate_baseline baseline;
	int status = CMD_FINE;

	if (!opts->operand_count) {
		say_error("no recording given: cuflight baseline RECORDING... -o FILE; see "
			  "'cuflight baseline --help'");
		return CMD_USAGE;
	}
	symbols = symbols_new(&options);
	baseline_begin(&baseline);
	for (int i = 0; i < opts->operand_count && !status; i++)
		status = add_runs(&baseline, opts->operands[i], symbols);
	if (!status) {
		baseline_finish(&baseline);
		status = write_baseline(opts, &baseline);
	}
	baseline_free(&baseline);
	symbols_free(symbols);
	return status;
}

static const struct opt options[] = {
	{ "output", 'o', OPT_TEXT, "FILE", 0, 0, NULL, "write the baseline to FILE" },
	{ "force", 'f', OPT_FLAG, NULL, 0, 0, NULL, "overwrite FILE" },
	{ "sysroot", 0, OPT_TEXT, "DIR", 0, 0, NULL,
	  "get function names from the recorded machine's files below DIR, not from here" },
};
static const struct opt_group option_group = {
	"Options", options, sizeof options / sizeof *options, { NULL },
};

const struct cmd cmd_baseline = {
	.name = "baseline",
	.summary = "write what some runs held, for check to compare with",
	.usage = "[OPTIONS] RECORDING|DIRECTORY...",
	.manual = "cuflight-baseline",
	.about = "Writes the median and the spread of each measure and each call site over runs of "
		 "one commit. Each argument is a run, or a directory of runs; five are a good "
		 "number. The file is sorted text, one call site a line, without addresses and "
		 "line numbers, so it can be kept under version control. Exit status: 0 written; "
		 "2 usage error or unreadable input; 3 a run cannot be used: events were lost, or "
		 "it is of another GPU than the first.",
	.examples = "cuflight baseline run-*.cuf -o memory.json\tof several runs\n"
		    "cuflight baseline rec/ -o ranks.json\tof all runs in a directory\n",
	.groups = { &option_group, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_baseline,
};
