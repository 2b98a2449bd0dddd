/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sub-command: its names, its words for help, its options and its function. Everything that shows or parses commands
 * (main, help, man pages, completion, README) reads cmd_table; a new command is a file and a row there.
 *
 * Contract. run gets parsed options (--help and --version are main's) and returns the exit status; results go to stdout,
 * all else to stderr through say.h. main checks afterwards that stdout took everything.
 */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include "analysis/cmd/cli/opts.h"

enum {
	CMD_FINE = 0,
	CMD_FINDINGS = 1,       /* commands that judge */
	CMD_USAGE = 2,          /* usage, or unreadable input */
	CMD_INCONCLUSIVE = 3,
	CMD_RUN_FAILED = 125,   /* run's own failures, as in env(1) */
	CMD_RUN_CANNOT = 126,   /* found, cannot be executed */
	CMD_RUN_MISSING = 127   /* not found */
};

struct cmd {
	const char *name;
	const char *summary;    /* one line */
	const char *usage;      /* what follows "cuflight NAME" */
	const char *about;      /* a paragraph for --help */
	const char *examples;   /* lines, each "COMMAND\tWHAT FOR\n" */
	const struct opt_group *groups[OPTS_GROUPS_MAX + 1];
	bool takes_command;     /* operands are the user's own command line */
	int usage_exit;         /* status of a usage error, or of a result that could not be written */
	int (*run)(const struct opts *opts);
};

extern const struct cmd cmd_run, cmd_report, cmd_doctor, cmd_env, cmd_help;
extern const struct cmd *const cmd_table[]; /* NULL-terminated */

const struct cmd *cmd_find(const char *name); /* NULL: none */
const char *cmd_nearest(const char *typed);   /* NULL: none near */

#endif
