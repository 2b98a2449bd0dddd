/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parent exports a block by IPC, and a second process opens it. The memory is the parent's; the
 * other process has an import.
 */
#include <sys/wait.h>

#include "tests/victims/doors.h"

#define BLOCK (24 * MiB)

static int importer(int argc, char **argv, int in, int out)
{
	CUipcMemHandle handle;
	CUdeviceptr mapped;
	door_open(argc, argv);
	if (read(in, &handle, sizeof handle) != sizeof handle)
		return BROKEN;
	CUdeviceptr own = take(4 * MiB);
	MUST(cu.ipc_open(&mapped, handle, 1));
	say("process pid %d", getpid());
	say("live kind imported bytes %zu count 1", BLOCK);
	say("live kind device bytes %zu count 1", 4 * MiB);
	say("clean incidents");
	say("end state exit 0");
	if (write(out, &own, 1) != 1)
		return BROKEN;
	return 0;
}

int main(int argc, char **argv)
{
	int to[2], from[2], status;
	CUipcMemHandle handle;
	char done;
	if (pipe(to) || pipe(from))
		return BROKEN;
	pid_t child = fork(); /* before CUDA is touched: it does not survive a fork */
	if (!child)
		return importer(argc, argv, to[0], from[1]);
	close(from[1]); /* else the end of the child goes unnoticed */
	door_open(argc, argv);
	take(2 * MiB);
	MUST(cu.ipc_get(&handle, take(BLOCK)));
	if (write(to[1], &handle, sizeof handle) != sizeof handle || read(from[0], &done, 1) != 1)
		fprintf(stderr, "victim: the other process did not answer\n");
	if (waitpid(child, &status, 0) != child || status)
		return WIFEXITED(status) ? WEXITSTATUS(status) : BROKEN;
	say("process pid %d", getpid());
	say("live kind device bytes %zu count 2", BLOCK + 2 * MiB);
	say("live kind imported bytes 0 count 0");
	say("clean incidents");
	say("end state exit 0");
	return 0;
}
