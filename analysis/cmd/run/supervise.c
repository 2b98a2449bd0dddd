/* SPDX-License-Identifier: Apache-2.0 */
/* posix_spawn, then one loop over signals that are blocked and taken in turn: no handlers, no races. */
#include "analysis/cmd/run/supervise.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };

static void watched_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
		sigaddset(set, forwarded[i]);
}

static int start(pid_t *pid, char **argv, const sigset_t *mask)
{
	posix_spawnattr_t attributes;
	int error;
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attributes, mask);
	error = posix_spawnp(pid, argv[0], NULL, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	return error;
}

/* True when our command is among those that ended. */
static int reap(struct supervised *supervised)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == supervised->pid) {
			supervised->wait_status = status;
			return 1;
		}
	return 0;
}

/* The next signal; while there is a tick, no signal for that long is one. -1: a tick, or nothing. */
static int next_signal(const sigset_t *watched, siginfo_t *info, const struct supervise_tick **tick)
{
	struct timespec pause;
	int number;
	if (!*tick)
		return sigwaitinfo(watched, info);
	pause = (struct timespec){ .tv_sec = (*tick)->every_ms / 1000, .tv_nsec = (*tick)->every_ms % 1000 * 1000000 };
	number = sigtimedwait(watched, info, &pause);
	if (number < 0 && errno == EAGAIN && !(*tick)->tick((*tick)->context))
		*tick = NULL;
	return number;
}

void supervise(struct supervised *supervised, char **argv, const struct supervise_tick *tick)
{
	sigset_t watched, before;
	siginfo_t info;
	watched_set(&watched);
	signal(SIGCHLD, SIG_DFL); /* an inherited SIG_IGN would take the status away */
	sigprocmask(SIG_BLOCK, &watched, &before);
	supervised->wait_status = 0;
	supervised->error = start(&supervised->pid, argv, &before);
	while (!supervised->error && !reap(supervised)) {
		if (next_signal(&watched, &info, &tick) < 0 || info.si_signo == SIGCHLD)
			continue;
		if (info.si_code <= 0) /* by a process, not by the terminal */
			kill(supervised->pid, info.si_signo);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int supervise_exit(const struct supervised *supervised)
{
	int status = supervised->wait_status;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
