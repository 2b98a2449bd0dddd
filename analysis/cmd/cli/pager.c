/* SPDX-License-Identifier: Apache-2.0 */
/* popen, and waiting for its end. */
#include "analysis/cmd/cli/pager.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The command of the pager; NULL: there shall be none. */
static const char *pager_command(void)
{
	const char *pager = getenv("PAGER"), *term = getenv("TERM");

	if (!isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb"))
		return NULL;
	if (!pager)
		return "less -FRX";
	if (!*pager || !strcmp(pager, "cat"))
		return NULL;
	return pager;
}

/* NULL when stdout is no terminal, or the user has switched it off. */
FILE *pager_open(void)
{
	const char *command = pager_command();
	FILE *pager;

	if (!command)
		return NULL;
	fflush(stdout);
	pager = popen(command, "we");
	/* a reader who leaves closes the pipe, and the rest need not be written */
	if (pager)
		signal(SIGPIPE, SIG_IGN);
	return pager;
}

void pager_close(FILE *pager)
{
	pclose(pager);
}
