/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight list`: the runs of a directory, each with its end and its cause. */
#include <errno.h>
#include <string.h>
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/run/conclusion.h"
#include "analysis/cmd/target/destination.h"
#include "analysis/explain/facts_build.h"
#include "analysis/replay/run.h"
#include "analysis/symbols/symbols.h"
#include "analysis/view/commands/runs.h"

/* One run of a directory; NULL after an error, which is printed. Names of functions decide
 * verdicts, so that the list has them as the report has; what several runs name is read once. */
static struct facts *open_run(const char *directory, const struct facts_options *options)
{
	struct reader_error error = { 0 };
	struct facts *facts = NULL;

	if (!facts_build(directory, options, &facts, &error))
		return facts;
	say_error("cannot list '%s': %s", *error.path ? error.path : directory,
		  error.system ? strerror(error.system) : reader_error_sentence(error.code));
	return NULL;
}

/* Runs are opened one by one: each may be gigabytes. */
static int write_runs(struct output *output, const char *directory,
		      const struct run_catalog *catalog, struct symbols *symbols,
		      struct facts *newest)
{
	struct facts_options options = { .catalog = catalog->run_count ? catalog : NULL,
					 .symbols = symbols };
	size_t count = newest->run_count;
	struct runs_text text;

	if (output->format == OUTPUT_JSON)
		runs_json_begin(output->file, directory);
	else
		runs_text_begin(&text, output->file, &output->style, directory, count);
	for (options.run = 1; options.run <= count; options.run++) {
		bool is_open = options.run == count;
		struct facts *facts = is_open ? newest : open_run(directory, &options);

		if (!facts)
			return -1;
		if (output->format == OUTPUT_JSON)
			runs_json_row(output->file, facts, options.run == 1);
		else
			runs_text_row(&text, facts);
		if (!is_open)
			facts_free(facts);
	}
	if (output->format == OUTPUT_JSON)
		runs_json_end(output->file);
	else
		runs_text_end(&text);
	return 0;
}

static int list_directory(const char *directory, const struct opts *opts)
{
	struct facts_options last = { .symbols = symbols_new(NULL) };
	struct facts *newest = open_run(directory, &last);
	struct run_catalog catalog;
	struct output output;
	int status = CMD_USAGE;

	if (!newest) {
		symbols_free(last.symbols);
		return CMD_USAGE;
	}
	run_catalog_read(&catalog, directory);
	if (!output_open(&output, opts)) {
		if (write_runs(&output, directory, &catalog, last.symbols, newest))
			output_abandon(&output);
		else if (!output_close(&output))
			status = CMD_FINE;
	}
	run_catalog_fini(&catalog);
	facts_free(newest);
	symbols_free(last.symbols);
	conclusion_trim_directory(directory);
	return status;
}

static int run_list(const struct opts *opts, const struct cmd *const *commands)
{
	struct destination destination;

	(void)commands;
	if (opts->operand_count > 1) {
		say_error("too many arguments: '%s'; list reads one directory", opts->operands[1]);
		return CMD_USAGE;
	}
	if (opts->operand_count)
		return list_directory(opts->operands[0], opts);
	if (destination_set(&destination, NULL)) {
		say_error("cannot read the current directory: %s", strerror(errno));
		return CMD_USAGE;
	}
	return list_directory(destination.directory, opts);
}

const struct cmd cmd_list = {
	.name = "list",
	.summary = "list the runs of a directory: when, which program, how it ended, why",
	.usage = "[OPTIONS] [DIRECTORY]",
	.manual = "cuflight-list",
	.about = "Prints the recorded runs of a directory, oldest first. Restarts of a pod that "
		 "write into one directory are runs of their own; the processes of one program, "
		 "its children and its ranks, are one run. Runs of one program that ended "
		 "alike, one after another, are counted in one line. Without an argument, reads "
		 "the directory of CUFLIGHT_OUTPUT, else the current one.",
	.examples = "cuflight list\tthe runs here\n"
		    "cuflight report --run=2 rec/\texplain one that is not the newest\n"
		    "cuflight list --json rec/\tfor a script\n",
	.groups = { &opts_result, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_list,
};
