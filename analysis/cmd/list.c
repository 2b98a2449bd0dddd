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
struct reading {
	const char *directory;
	struct run_catalog catalog;
	struct facts_options options; /* of the present one */
	struct facts *newest, *present;
	bool failed;
};

static void close_present(struct reading *reading)
{
	if (reading->present != reading->newest)
		facts_free(reading->present);
	reading->present = NULL;
}

/* The facts of the next run; NULL: there is none, or it cannot be read. */
static const struct facts *next_run(void *context)
{
	struct reading *reading = context;

	close_present(reading);
	if (reading->options.run == reading->newest->run_count)
		return NULL;
	if (++reading->options.run == reading->newest->run_count)
		reading->present = reading->newest;
	else
		reading->present = open_run(reading->directory, &reading->options);
	reading->failed = !reading->present;
	return reading->present;
}

static void write_text(struct output *output, struct reading *reading)
{
	const struct facts *facts;
	struct runs_text text;

	runs_text_begin(&text, output->file, &output->style, reading->directory,
			reading->newest->run_count);
	while ((facts = next_run(reading)))
		runs_text_row(&text, facts);
	runs_text_end(&text);
}

static int write_list(struct reading *reading, const struct opts *opts)
{
	struct output output;

	if (output_open(&output, opts))
		return CMD_USAGE;
	if (output.format == OUTPUT_JSON)
		runs_json(output.file, &(struct runs){ reading->directory, next_run, reading });
	else
		write_text(&output, reading);
	close_present(reading);
	if (!reading->failed)
		return output_close(&output) ? CMD_USAGE : CMD_FINE;
	output_abandon(&output);
	return CMD_USAGE;
}

static int list_directory(const char *directory, const struct opts *opts)
{
	struct reading reading = { .directory = directory };
	struct symbols *symbols = symbols_new(NULL);
	int status;

	reading.options.symbols = symbols;
	reading.newest = open_run(directory, &reading.options);
	if (!reading.newest) {
		symbols_free(symbols);
		return CMD_USAGE;
	}
	run_catalog_read(&reading.catalog, directory);
	if (reading.catalog.run_count)
		reading.options.catalog = &reading.catalog;
	status = write_list(&reading, opts);
	run_catalog_fini(&reading.catalog);
	facts_free(reading.newest);
	symbols_free(symbols);
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
