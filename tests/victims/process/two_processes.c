/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes on one device, each with its own blocks. The parent ends last. */
#include <sys/wait.h>

#include "tests/victims/doors.h"

static int serve(int argc, char **argv, int blocks)
{
	door_open(argc, argv);
	for (int i = 0; i < blocks; i++)
		take(16 * MiB);
	say("process pid %d", getpid());
	say("live kind device bytes %zu count %d", (size_t)blocks * 16 * MiB, blocks);
	say("clean incidents");
	say("end state exit 0");
	return 0;
}

int main(int argc, char **argv)
{
	int status;
	pid_t child = fork();
	if (!child)
		return serve(argc, argv, 3);
	if (waitpid(child, &status, 0) != child || status)
		return WIFEXITED(status) ? WEXITSTATUS(status) : BROKEN;
	return serve(argc, argv, 7);
}
