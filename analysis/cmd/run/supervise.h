/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a command and waits for its end. Signals that another process sends to us are forwarded.
 * Signals of the terminal go to the whole foreground group, so the command already has them, and
 * they are not forwarded. As process 1 of a container, orphans are reaped.
 *
 * Contract: one command at a time, in one thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct supervised {
	int error;        /* 0: started; else the errno of the start */
	pid_t pid;
	int wait_status;  /* as from waitpid */
};

/*
 * Called every every_ms milliseconds while the command runs, with signals blocked; it must return
 * soon. False: do not call again.
 */
struct supervise_tick {
	long every_ms;
	bool (*tick)(void *context);
	void *context;
};

/*
 * argv as for execvp, in our environment. tick may be NULL. Returns when the command has ended, or
 * could not be started.
 */
void supervise(struct supervised *supervised, char **argv, const struct supervise_tick *tick);

/* The exit status as a shell reports it: the command's, or 128 + the number of the signal. */
int supervise_exit(const struct supervised *supervised);
