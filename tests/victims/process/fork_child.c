/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks with CUDA in use. The driver does not work in the child. What the child does must not touch
 * the parent's statistics.
 */
#include <sys/wait.h>

#include "tests/victims/doors.h"

static int in_child(void)
{
	CUdeviceptr ptr;
	CUresult result = cu.alloc(&ptr, 4 * MiB);
	char *host = malloc(8 * MiB);
	if (host)
		memset(host, 1, 8 * MiB);
	free(host);
	return result ? 0 : BROKEN;
}

int main(int argc, char **argv)
{
	int status;
	door_open(argc, argv);
	take(10 * MiB);
	pid_t child = fork();
	if (!child)
		_exit(in_child());
	take(6 * MiB);
	if (waitpid(child, &status, 0) != child || status) {
		fprintf(stderr, "victim: CUDA worked in a forked child\n");
		return BROKEN;
	}
	say("live kind device bytes %zu count 2", 16 * MiB);
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
