/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the command, parses its options, runs it, and checks that its output was written. */
#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/help.h"
#include "analysis/cmd/cli/version.h"

/* A report that filled the disk must not look like a success. */
static int finish_stdout(int status, int failed)
{
	int bad = ferror(stdout) || fflush(stdout), error = errno;

	/* EBADF: stdout was closed from the start, and nothing was written to it */
	if (fclose(stdout) && !bad && errno != EBADF) {
		bad = 1;
		error = errno;
	}
	if (!bad)
		return status;
	say_error("cannot write the result: %s", error ? strerror(error) : "write error");
	return failed;
}

static int reject_command(const char *typed)
{
	const char *near = cmd_nearest(cmd_table, typed);

	if (*typed == '-')
		say_error("unknown option '%s'; options follow the command: "
			  "cuflight COMMAND [OPTIONS]", typed);
	else if (near)
		say_error("no command '%s'; did you mean '%s'?", typed, near);
	else
		say_error("no command '%s'; 'cuflight help' lists them", typed);
	return CMD_USAGE;
}

static int run_command(const struct cmd *cmd, int argc, char **argv)
{
	static struct opts opts;

	opts_init(&opts, cmd->groups);
	if (opts_parse(&opts, argc, argv, cmd->takes_command)) {
		say_error("%s; see 'cuflight %s --help'", opts.error, cmd->name);
		return cmd->usage_exit;
	}
	if (opts_has(&opts, "help")) {
		help_command(stdout, cmd);
		return CMD_FINE;
	}
	if (opts_has(&opts, "version")) {
		version_print(stdout);
		return CMD_FINE;
	}
	say_quiet(opts_has(&opts, "quiet"));
	return cmd->run(&opts, cmd_table);
}

static int is_either(const char *word, const char *letter, const char *name)
{
	return !strcmp(word, letter) || !strcmp(word, name);
}

/*
 * Recordings of a run are read one after another, and each needs arrays as large as those before.
 * glibc would return them to the kernel each time, and the kernel would clear them each time: a
 * ninth of the time of a report of 64 processes. Larger arrays are rare and are returned.
 */
enum { KEPT_BYTES = 16 << 20 };

static void keep_memory(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	mallopt(M_TRIM_THRESHOLD, 2 * KEPT_BYTES);
#endif
}

int main(int argc, char **argv)
{
	const struct cmd *cmd;

	keep_memory();
	setlocale(LC_CTYPE, "");
	if (argc < 2) {
		help_overview(stderr, cmd_table);
		return CMD_USAGE;
	}
	if (is_either(argv[1], "-h", "--help")) {
		help_overview(stdout, cmd_table);
		return finish_stdout(CMD_FINE, CMD_USAGE);
	}
	if (is_either(argv[1], "-V", "--version")) {
		version_print(stdout);
		return finish_stdout(CMD_FINE, CMD_USAGE);
	}
	cmd = cmd_find(cmd_table, argv[1]);
	if (!cmd)
		return reject_command(argv[1]);
	return finish_stdout(run_command(cmd, argc - 1, argv + 1), cmd->usage_exit);
}
