/* SPDX-License-Identifier: Apache-2.0 */
/* posix_spawn, and a file in memory for what the command prints. */
#include "analysis/cmd/top/snapshot.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "analysis/base/clean.h"
#include "analysis/cmd/cli/say.h"

extern char **environ;

void snapshot_init(struct snapshot *snapshot) { *snapshot = (struct snapshot){ 0, -1, -1 }; }

/* In a group of its own: the terminal's keys are not for it. */
static int spawn(pid_t *pid, char *const *argv, int output)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int error;

	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, output, 1);
	posix_spawn_file_actions_adddup2(&actions, output, 2);
	error = posix_spawn(pid, "/proc/self/exe", &actions, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return error;
}

bool snapshot_start(struct snapshot *snapshot, const char *recording, unsigned pid)
{
	char stamp[32], option[96];
	const char *const argv[] = { "cuflight", "pack", option, "--", recording, NULL };
	time_t now = time(NULL);
	struct tm local;

	if (snapshot->pid > 0)
		return false;
	strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
	snprintf(option, sizeof option, "--output=cuflight-%u-%s.cufpack", pid, stamp);
	snapshot->output = memfd_create("cuflight-snapshot", MFD_CLOEXEC);
	if (snapshot->output < 0)
		return false;
	if (spawn(&snapshot->pid, (char *const *)argv, snapshot->output)) {
		close(snapshot->output);
		snapshot_init(snapshot);
		return false;
	}
	snapshot->fd = (int)syscall(SYS_pidfd_open, snapshot->pid, 0);
	return true;
}

bool snapshot_take(struct snapshot *snapshot, char *sentence, size_t bytes)
{
	char line[1024];

	if (snapshot->pid <= 0 || waitpid(snapshot->pid, NULL, WNOHANG) != snapshot->pid)
		return false;
	say_last_line(snapshot->output, line, sizeof line);
	clean_terminal(sentence, bytes, *line ? line : "the snapshot failed", false);
	if (snapshot->fd >= 0)
		close(snapshot->fd);
	close(snapshot->output);
	snapshot_init(snapshot);
	return true;
}
