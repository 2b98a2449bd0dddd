/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork_storm CHILDREN: forks CHILDREN processes, eight at a time, while a second thread allocates
 * without pause. Each child allocates, forks once more, and ends by exit or _exit. Prints how many
 * ended as they should.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_ONCE 8

static bool stop;

static void *churn(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		void *blocks[64];
		for (unsigned i = 0; i < 64; i++)
			blocks[i] = malloc(16 + 97 * i);
		for (unsigned i = 0; i < 64; i++)
			free(blocks[i]);
	}
	return unused;
}

static void allocate(unsigned seed)
{
	for (unsigned i = 0; i < 200; i++) {
		char *block = malloc(64 + seed * 7 + i);
		memset(block, 1, 64);
		free(block);
	}
}

static int child(unsigned number)
{
	int status;
	pid_t pid;

	allocate(number);
	pid = fork();
	if (pid == 0) {
		allocate(number + 1);
		_exit(5);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != 5)
		return 1;
	return 4;
}

int main(int argc, char **argv)
{
	unsigned children = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 40, running = 0,
		 good = 0;
	pthread_t thread;

	pthread_create(&thread, NULL, churn, NULL);
	for (unsigned i = 0; i < children || running;) {
		int status;
		if (i < children && running < AT_ONCE) {
			pid_t pid = fork();
			if (pid == 0)
				exit(child(i));
			running += pid > 0;
			i++;
			continue;
		}
		if (wait(&status) < 0)
			break;
		running--;
		good += WIFEXITED(status) && WEXITSTATUS(status) == 4;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	printf("%u children, %u as they should\n", children, good);
	return good == children ? 0 : 1;
}
