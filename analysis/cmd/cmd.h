/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sub-command: its name, its texts for help, its options and its function. main, help, the man
 * pages, the completion and README.md are all made from the table in commands.c. A new command is
 * a file and a row there.
 *
 * Contract: run receives parsed options (main handles --help and --version) and the table of
 * commands that it is part of. It returns the exit status. Results go to stdout, everything else
 * goes to stderr through cli/say.h. main checks afterwards that stdout was written completely.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "analysis/cmd/cli/opts.h"

enum {
	CMD_FINE = 0,
	CMD_FINDINGS = 1,       /* doctor found a problem, check an exceeded limit, diff a change */
	CMD_USAGE = 2,          /* usage error, unreadable input, or result not written */
	CMD_INCONCLUSIVE = 3,   /* check cannot judge, baselines cannot be compared */
	CMD_RUN_FAILED = 125,   /* failures of run itself, as in env(1) */
	CMD_RUN_CANNOT = 126,   /* found, but cannot be executed */
	CMD_RUN_MISSING = 127   /* not found */
};

struct cmd {
	const char *name;
	const char *summary;    /* one line */
	const char *usage;      /* what follows "cuflight NAME" */
	const char *manual;     /* its man page */
	const char *about;      /* a paragraph for --help */
	const char *examples;   /* lines, each "COMMAND\tWHAT FOR\n" */
	const struct opt_group *groups[OPTS_GROUPS_MAX + 1];
	bool takes_command;     /* the operands are the user's command line */
	int usage_exit;         /* status of a usage error, and of a result that was not written */
	int (*run)(const struct opts *opts, const struct cmd *const *commands);
};

extern const struct cmd cmd_run, cmd_report, cmd_list, cmd_pack, cmd_clean, cmd_check, cmd_baseline,
	cmd_diff, cmd_phases, cmd_what_if, cmd_export, cmd_doctor, cmd_env,
	cmd_install, cmd_top, cmd_serve, cmd_watch, cmd_rules, cmd_help;

/* All commands in the order of the help, NULL-terminated; in commands.c. */
extern const struct cmd *const cmd_table[];

const struct cmd *cmd_find(const struct cmd *const *commands, const char *name); /* NULL: none */
const char *cmd_nearest(const struct cmd *const *commands, const char *typed);   /* NULL: none */
