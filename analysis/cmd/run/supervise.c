/* SPDX-License-Identifier: Apache-2.0 */
/* posix_spawn, then a loop over blocked signals: without handlers there are no races. */
#include "analysis/cmd/run/supervise.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };

/* SIGCHLD, and the signals that are forwarded. Signals of the terminal reach the command directly,
 * because it is in the same process group. */
static void fill_watched(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
		sigaddset(set, forwarded[i]);
}

/* mask: the signals that are blocked in the command. 0 or an errno. */
static int spawn(pid_t *pid, char **argv, const sigset_t *mask)
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

/* Reaps all children that have ended. True when the command is one of them. */
static bool reap_children(struct supervised *supervised)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == supervised->pid) {
			supervised->wait_status = status;
			return true;
		}
	return false;
}

/* Waits for a signal, or for one interval of the tick. -1: no signal came. */
static int next_signal(const sigset_t *watched, siginfo_t *info, const struct supervise_tick **tick)
{
	struct timespec pause;
	int number;

	if (!*tick)
		return sigwaitinfo(watched, info);
	pause.tv_sec = (*tick)->every_ms / 1000;
	pause.tv_nsec = (*tick)->every_ms % 1000 * 1000000;
	number = sigtimedwait(watched, info, &pause);
	if (number < 0 && errno == EAGAIN && !(*tick)->tick((*tick)->context))
		*tick = NULL;
	return number;
}

/* Signals are blocked before the command starts and restored for it by the spawn. So none is lost
 * in between, and the command sees the mask that we inherited. */
void supervise(struct supervised *supervised, char **argv, const struct supervise_tick *tick)
{
	sigset_t watched, before;
	siginfo_t info;

	fill_watched(&watched);
	signal(SIGCHLD, SIG_DFL); /* with an inherited SIG_IGN there would be no status */
	sigprocmask(SIG_BLOCK, &watched, &before);
	supervised->wait_status = 0;
	supervised->error = spawn(&supervised->pid, argv, &before);
	while (!supervised->error && !reap_children(supervised)) {
		if (next_signal(&watched, &info, &tick) < 0 || info.si_signo == SIGCHLD)
			continue;
		if (info.si_code <= 0) /* sent by a process, not by the terminal */
			kill(supervised->pid, info.si_signo);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* As a shell reports it. */
int supervise_exit(const struct supervised *supervised)
{
	int status = supervised->wait_status;

	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
