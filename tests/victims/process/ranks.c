/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launcher and its ranks: rank 2 allocates more than the others until a request fails, and the
 * launcher ends the rest, as torchrun does.
 */
#include <signal.h>
#include <sys/wait.h>

#include "tests/victims/doors.h"

enum { RANKS = 5, GREEDY = 2, READY_FD = 60 };

static int serve(int argc, char **argv, unsigned rank)
{
	CUdeviceptr block;
	door_open(argc, argv);
	take(256 * MiB);
	for (unsigned i = 0; rank == GREEDY && i < 4; i++)
		take(128 * MiB);
	if (write(READY_FD, "r", 1) != 1)
		return BROKEN;
	if (rank != GREEDY) {
		pause();
		return 0;
	}
	if (cu.alloc(&block, free_now() + GPU_PAGE) == 0)
		return BROKEN;
	fprintf(stderr, "rank %u: CUDA error: out of memory\n", rank);
	return 1;
}

static pid_t start(char **argv, unsigned rank)
{
	char number[16];
	pid_t pid = fork();
	if (pid)
		return pid;
	snprintf(number, sizeof number, "%u", rank);
	setenv("RANK", number, 1);
	setenv("RANKS_PART", number, 1);
	execv("/proc/self/exe", argv);
	_exit(BROKEN);
}

int main(int argc, char **argv)
{
	pid_t pids[RANKS];
	int ready[2], status;
	char byte;
	if (getenv("RANKS_PART"))
		return serve(argc, argv, (unsigned)atoi(getenv("RANKS_PART")));
	if (pipe(ready) || dup2(ready[1], READY_FD) < 0)
		return BROKEN;
	for (unsigned i = 0; i < RANKS; i++) {
		/* the greedy rank starts last, because it waits for no other */
		unsigned rank = i < GREEDY ? i : i + 1;
		if (rank >= RANKS)
			rank = GREEDY;
		pids[rank] = start(argv, rank);
		if (read(ready[0], &byte, 1) != 1) {
			/* it reports itself what it could not do */
			waitpid(pids[rank], &status, 0);
			return WEXITSTATUS(status);
		}
	}
	waitpid(pids[GREEDY], &status, 0);
	for (unsigned i = 0; i < RANKS; i++)
		if (i != GREEDY) {
			kill(pids[i], SIGTERM);
			waitpid(pids[i], NULL, 0);
		}
	if (WEXITSTATUS(status) != 1)
		return WEXITSTATUS(status);
	say("run first_failed %d failed 1 ended_by_it %d peers %d median_held_bytes %zu outlier %d",
	    pids[GREEDY], RANKS - 1, RANKS, 256 * MiB, pids[GREEDY]);
	/* all are there when the greedy one fails */
	say("peak bytes %zu", RANKS * 256 * MiB + 4 * 128 * MiB);
	say("process pid %d", pids[GREEDY]);
	say("live kind device bytes %zu count 5", 768 * MiB);
	say("end state exit 1");
	return 1;
}
