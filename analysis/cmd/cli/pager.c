/* SPDX-License-Identifier: Apache-2.0 */
/* popen and its end. */
#include "analysis/cmd/cli/pager.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

FILE *pager_open(void)
{
	const char *pager = getenv("PAGER"), *term = getenv("TERM");
	FILE *to;

	if (!isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb"))
		return NULL;
	if (!pager)
		pager = "less -FRX";
	if (!*pager || !strcmp(pager, "cat"))
		return NULL;
	fflush(stdout);
	to = popen(pager, "we");
	/* leaving the pager closes the pipe: what is written then is not missed */
	if (to)
		signal(SIGPIPE, SIG_IGN);
	return to;
}

void pager_close(FILE *pager)
{
	pclose(pager);
}
