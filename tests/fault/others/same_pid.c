/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first process of a pid namespace makes a child in another one, as a container's entry point does: both are number 1. The
 * child allocates. Run it with unshare --pid --fork.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void pair(size_t bytes)
{
	void *volatile block = malloc(bytes);

	free(block);
}

int main(void)
{
	int status = 0;
	pid_t child;

	pair(200000);
	if (unshare(CLONE_NEWPID))
		return 77;
	child = fork();
	if (!child) {
		for (int i = 0; i < 100; i++)
			pair(200000);
		_exit(getpid() == 1 ? 5 : 6);
	}
	waitpid(child, &status, 0);
	printf("process %d, child's status %d\n", (int)getpid(), WEXITSTATUS(status));
	return 0;
}
