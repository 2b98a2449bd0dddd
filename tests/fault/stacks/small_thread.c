/* SPDX-License-Identifier: Apache-2.0 */
/*
 * small_thread WHAT USED: a thread of 16 KiB, USED of which are in use, does what makes a recorder
 * work: handover (80 MiB of blocks), refused (a request that cannot be granted), dlopen, fork (the
 * child allocates), malloc. Prints what it did.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_BYTES = 16384, MiB = 1 << 20 };
static const char *what;
static size_t used_bytes;

static void hold_memory(void)
{
	for (int i = 0; i < 80; i++)
		*(volatile char *)malloc(MiB) = 1;
}

static void let_child_allocate(void)
{
	int status;
	pid_t child = fork();
	if (!child) {
		void *volatile block = malloc(100000);
		free(block);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		exit(1);
}

__attribute__((noinline)) static void act(void)
{
	void *volatile block;
	if (!strcmp(what, "handover"))
		hold_memory();
	else if (!strcmp(what, "refused"))
		block = malloc((size_t)1 << 46);
	else if (!strcmp(what, "dlopen"))
		block = dlopen("libz.so.1", RTLD_NOW);
	else if (!strcmp(what, "fork"))
		let_child_allocate();
	else
		for (int i = 0; i < 1000; i++) {
			block = malloc(3000);
			free(block);
		}
}

static void *run(void *unused)
{
	char *used = alloca(used_bytes);
	memset(used, 1, used_bytes);
	__asm__ volatile("" : : "r"(used) : "memory");
	act();
	__asm__ volatile("" : : "r"(used) : "memory");
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t attributes;
	pthread_t thread;
	what = argv[1];
	used_bytes = (size_t)atol(argv[2]);
	pthread_attr_init(&attributes);
	if (pthread_attr_setstacksize(&attributes, STACK_BYTES) ||
	    pthread_create(&thread, &attributes, run, NULL) || pthread_join(thread, NULL))
		return 2;
	puts(what);
	return 0;
}
