/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ends_twice exec|abort|phase. exec: it exits with 3, and an exit handler calls an exec that fails. abort:
 * it leaves abort() by siglongjmp, goes on, and exits with 4. phase: it exits with 5, and an exit handler
 * begins a phase, which is what first makes a plain preload write a file.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "interpose/cuflight.h"

static sigjmp_buf back;

static void try_exec(void)
{
	char *arguments[] = { (char *)"program", NULL };

	execv("/no/such/program", arguments);
}
static void begin_phase(void) { cuflight_phase_push("after the end"); }
static void leave(int number) { siglongjmp(back, number); }

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "exec")) {
		atexit(try_exec);
		puts("end state exit 3");
		return 3;
	}
	if (argc == 2 && !strcmp(argv[1], "phase")) {
		atexit(begin_phase);
		puts("end state exit 5");
		return 5;
	}
	if (argc != 2 || strcmp(argv[1], "abort"))
		return 2;
	signal(SIGABRT, leave);
	if (!sigsetjmp(back, 1))
		abort();
	for (int i = 0; i < 5; i++)
		memset(malloc(200000), 1, 200000);
	puts("end state exit 4");
	return 4;
}
