/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a command and stays with it: signals that are meant for it are passed on, its end is told as a shell would.
 * Contract: one command at a time in one thread. Signals that the terminal sends to the whole foreground group are not
 * passed on (the command has them already); those sent to us alone are. As process 1, orphans are reaped.
 */
#ifndef CMD_SUPERVISE_H
#define CMD_SUPERVISE_H

#include <stdbool.h>
#include <sys/types.h>

struct supervised {
	int error;        /* errno of the start; 0 started */
	pid_t pid;
	int wait_status;  /* of waitpid */
};

/* Called every so many milliseconds while the command runs, signals blocked; it returns soon. False: not again. */
struct supervise_tick { long every_ms; bool (*tick)(void *context); void *context; };

/* argv as for execvp, in our environment. tick: NULL for none. Returns when the command has ended, or could not be started. */
void supervise(struct supervised *supervised, char **argv, const struct supervise_tick *tick);
/* Exit status as a shell gives it: the command's own, or 128 + signal. */
int supervise_exit(const struct supervised *supervised);

#endif
