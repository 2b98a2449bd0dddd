/* SPDX-License-Identifier: Apache-2.0 */
/* Commands by name: the overview, --help of each, and the command `help`. */
#include "analysis/cmd/help.h"

#include <assert.h>
#include <string.h>
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cli/suggest.h"
#include "analysis/base/terminal.h"

enum { HELP_COLUMNS = 80, HELP_INDENT = 30, COMMANDS_MAX = 32 };

/* Names are compared in full. An abbreviation would become ambiguous with the next command. */
const struct cmd *cmd_find(const struct cmd *const *commands, const char *name)
{
	for (; *commands; commands++)
		if (!strcmp((*commands)->name, name))
			return *commands;
	return NULL;
}

/* The command that the user probably meant, for an error message. */
const char *cmd_nearest(const struct cmd *const *commands, const char *typed)
{
	const char *names[COMMANDS_MAX];
	size_t count = 0;

	for (; commands[count]; count++) {
		assert(count < COMMANDS_MAX);
		names[count] = commands[count]->name;
	}
	return suggest_nearest(typed, names, count);
}

/* Short on purpose: options are printed by `help COMMAND`. */
void help_overview(FILE *out, const struct cmd *const *commands)
{
	fputs("cuflight: a flight recorder for GPU and host memory\n\n"
	      "usage: cuflight COMMAND [OPTIONS] [ARGUMENTS]\n\n", out);
	for (; *commands; commands++)
		fprintf(out, "  %-8s %s\n", (*commands)->name, (*commands)->summary);
	fputs("\nexample:\n"
	      "  cuflight run -- python3 server.py      record it\n"
	      "  cuflight report                        explain the newest recording\n\n"
	      "'cuflight help COMMAND' prints the options of a command.\n", out);
}

/* "  -o, --output=FILE   help [default]"; a long spelling has a line of its own. */
static void print_option(FILE *out, const struct opts_row *row)
{
	char spelled[160], text[512], fallback[64];
	int used;

	opts_spell(row, spelled, sizeof spelled);
	used = fprintf(out, "  %s", spelled);
	if (used >= HELP_INDENT - 1) {
		fputc('\n', out);
		used = 0;
	}
	fprintf(out, "%*s", HELP_INDENT - used, "");
	opts_default(&row->opt, fallback, sizeof fallback);
	if (*fallback)
		snprintf(text, sizeof text, "%s [%s]", row->opt.help, fallback);
	else
		snprintf(text, sizeof text, "%s", row->opt.help);
	flow_text(out, text, HELP_INDENT, HELP_INDENT, HELP_COLUMNS);
}

/* The examples are one text, "COMMAND\tWHAT FOR\n" each. The text ends with a newline, so the loop
 * needs no other end. */
static void print_examples(FILE *out, const char *examples)
{
	fputs("\nExamples:\n", out);
	while (*examples) {
		int command = (int)strcspn(examples, "\t");
		const char *what = examples + command + 1;
		int what_bytes = (int)strcspn(what, "\n");
		fprintf(out, "  %.*s\n      %.*s\n", command, examples, what_bytes, what);
		examples = what + what_bytes + 1;
	}
}

/* Options are printed in the order of the tables, under the title of their group. */
void help_command(FILE *out, const struct cmd *cmd)
{
	struct opts opts;
	const struct opt_group *group = NULL;

	opts_init(&opts, cmd->groups);
	fprintf(out, "usage: cuflight %s %s\n\n", cmd->name, cmd->usage);
	flow_text(out, cmd->about, 0, 0, HELP_COLUMNS);
	for (size_t i = 0; i < opts.count; i++) {
		if (opts.rows[i].group != group)
			fprintf(out, "\n%s:\n", opts.rows[i].group->title);
		group = opts.rows[i].group;
		print_option(out, &opts.rows[i]);
	}
	print_examples(out, cmd->examples);
	fprintf(out, "\nMore: man %s\n", cmd->manual);
}

/* ---- the command ---- */

/* A mistyped command is more likely than a mistyped cause. */
static int reject_topic(const char *topic, const struct cmd *const *commands)
{
	const char *near = cmd_nearest(commands, topic);
	char causes[512];

	if (!near)
		near = help_causes_nearest(topic);
	if (!near && help_causes_mentioning(topic, causes, sizeof causes))
		say_error("no help on '%s', which is mentioned in the help on: %s", topic, causes);
	else if (near)
		say_error("no help on '%s'; did you mean 'cuflight help %s'?", topic, near);
	else
		say_error("no help on '%s'; 'cuflight help' lists the commands, "
			  "'cuflight help causes' the causes", topic);
	return CMD_USAGE;
}

/* A command and a cause never have the same name; --rule is only about causes. */
static int print_topic(const char *topic, bool rule, const struct cmd *const *commands)
{
	const struct cmd *cmd = cmd_find(commands, topic);

	if (rule && help_cause_rules(stdout, topic))
		return CMD_FINE;
	if (cmd && !rule) {
		help_command(stdout, cmd);
		return CMD_FINE;
	}
	if (!rule && help_causes(stdout, topic))
		return CMD_FINE;
	return reject_topic(topic, commands);
}

/* --json excludes a topic, because its document always contains everything. */
static int run_help(const struct opts *opts, const struct cmd *const *commands)
{
	const char *topic = opts->operands[0]; /* NULL: none */
	bool rule = opts_has(opts, "rule"), json = opts_has(opts, "json");

	if (opts->operand_count > 1 || (json && topic)) {
		say_error("too many arguments: '%s'", opts->operands[json ? 0 : 1]);
		return CMD_USAGE;
	}
	if (rule && !topic) {
		say_error("--rule needs a cause; 'cuflight help causes' lists them");
		return CMD_USAGE;
	}
	if (json)
		help_json(stdout, commands);
	else if (!topic)
		help_overview(stdout, commands);
	else
		return print_topic(topic, rule, commands);
	return CMD_FINE;
}

static const struct opt options[] = {
	{ "rule", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "print how a cause is decided: requirements, weights and their source" },
	{ "json", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "print all commands, options and causes as JSON, for programs that make documents" },
};
static const struct opt_group option_group = {
	"Options", options, sizeof options / sizeof *options, { NULL },
};

const struct cmd cmd_help = {
	.name = "help",
	.summary = "explain a command, or a cause that a report names",
	.usage = "[OPTIONS] [COMMAND | CAUSE]",
	.manual = "cuflight",
	.about = "Explains a command, or a cause that a report names: what it is, how to recognise "
		 "it, an example, and how to fix it. The beginning of a name lists the causes that "
		 "begin with it; 'causes' lists all. Without an argument, lists the commands.",
	.examples = "cuflight help report\tthe options of report\n"
		    "cuflight help gpu-leak\twhat a leak is, and what to do\n"
		    "cuflight help --rule gpu-leak\thow a report decides that it is one\n",
	.groups = { &option_group, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_help,
};
