/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash_handler HOW [refuse]: a handler of SIGSEGV on an alternate stack of 8 KiB, with a page
 * below it that nobody may touch, ends the process: abort, exit, _exit, malloc, big (80 MiB), fork.
 * refuse: a request was refused before.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_BYTES = 8192, PAGE = 4096, STATUS = 7, MiB = 1 << 20 };
static const char *how;

static void end_after_fork(void)
{
	int status;
	pid_t child = fork();
	if (!child) {
		void *volatile block = malloc(100000);
		free(block);
		_exit(0);
	}
	waitpid(child, &status, 0);
	_exit(status ? 8 : STATUS);
}

static void crashed(int number)
{
	void *volatile block;
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "exit"))
		exit(STATUS);
	if (!strcmp(how, "fork"))
		end_after_fork();
	if (!strcmp(how, "malloc")) {
		block = malloc(100000);
		free(block);
	}
	for (int i = 0; i < 80 && !strcmp(how, "big"); i++)
		*(volatile char *)malloc(MiB) = 1;
	_exit(STATUS);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = crashed, .sa_flags = SA_ONSTACK | SA_RESETHAND };
	char *area = mmap(NULL, PAGE + STACK_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = area + PAGE, .ss_size = STACK_BYTES };
	void *volatile refused;
	how = argv[1];
	if (area == MAP_FAILED || mprotect(area, PAGE, PROT_NONE) || sigaltstack(&stack, NULL) ||
	    sigaction(SIGSEGV, &action, NULL))
		return 2;
	if (argc > 2)
		refused = malloc((size_t)1 << 46);
	puts(how);
	fflush(stdout);
	*(volatile int *)8 = 1;
	return 1;
}
