/* SPDX-License-Identifier: Apache-2.0 */
/* posix_spawn of /proc/self/exe, and a pipe with a deadline. */
#include "analysis/what_if/host/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HISTORY_FD = 3, ANSWER_FD = 4, NUMBER_CHARACTERS = 24 };

extern char **environ;

/* Ours is not the child's: it would be recorded, or have our caller's allocator. */
static bool is_passed_on(const char *variable)
{
	static const char *const kept_back[] = { "LD_PRELOAD=", "MALLOC_", "GLIBC_TUNABLES=",
						 "MIMALLOC_", "TCMALLOC_", "CUFLIGHT_",
						 "_RJEM_MALLOC_CONF=" };
	for (size_t i = 0; i < sizeof kept_back / sizeof *kept_back; i++)
		if (!strncmp(variable, kept_back[i], strlen(kept_back[i])))
			return false;
	return true;
}

/* Freed by the caller with its `preload`. */
static char **environment_for(const struct host_setting *setting, char **preload)
{
	size_t count = 0, own = 0;
	char **list;

	while (environ && environ[count])
		count++;
	list = xalloc_zeroed(count + SETTING_WORDS_MAX + 2, sizeof *list);
	for (size_t i = 0; i < count; i++)
		if (is_passed_on(environ[i]))
			list[own++] = environ[i];
	for (size_t i = 0; setting->words[i]; i++)
		list[own++] = (char *)(uintptr_t)setting->words[i];
	*preload = NULL;
	if (setting->library && asprintf(preload, "LD_PRELOAD=%s", setting->library) > 0)
		list[own++] = *preload;
	return list;
}

static int spawn_player(pid_t *pid, int history_fd, int answer_fd,
			const struct host_setting *setting, const struct play_limits *limits)
{
	char resident[NUMBER_CHARACTERS], touched[NUMBER_CHARACTERS], seconds[NUMBER_CHARACTERS];
	char *argv[] = { "cuflight", PLAY_WORD, "3", "4", resident, touched, seconds, NULL };
	posix_spawn_file_actions_t actions;
	char *preload, **environment = environment_for(setting, &preload);
	int error;

	snprintf(resident, sizeof resident, "%llu", (unsigned long long)limits->resident_bytes);
	snprintf(touched, sizeof touched, "%u", limits->touched_1024th);
	snprintf(seconds, sizeof seconds, "%u", limits->seconds);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, history_fd, HISTORY_FD);
	posix_spawn_file_actions_adddup2(&actions, answer_fd, ANSWER_FD);
	posix_spawn_file_actions_addclosefrom_np(&actions, ANSWER_FD + 1);
	error = posix_spawn(pid, "/proc/self/exe", &actions, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	free(preload);
	free(environment);
	return error;
}

static long milliseconds_left(const struct timespec *deadline)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (deadline->tv_sec - now.tv_sec) * 1000 + (deadline->tv_nsec - now.tv_nsec) / 1000000;
}

static void await_answer(int fd, unsigned seconds, struct play_answer *answer)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	struct timespec deadline;
	struct play_answer got;
	long left;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += seconds;
	do {
		left = milliseconds_left(&deadline);
	} while (left > 0 && poll(&wait, 1, (int)left) < 0 && errno == EINTR);
	/* less than a pipe's unit of writing, so it is there as a whole or not at all */
	if (left > 0 && read(fd, &got, sizeof got) == (ssize_t)sizeof got)
		*answer = got;
}

/* A descriptor above those that the child has: a duplicate must not close it there. */
static int moved_up(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, ANSWER_FD + 1);

	close(fd);
	return moved;
}

struct play_answer child_play(int history_fd, const struct host_setting *setting,
			      const struct play_limits *limits)
{
	struct play_answer answer = { .status = PLAY_BROKEN };
	int history = fcntl(history_fd, F_DUPFD_CLOEXEC, ANSWER_FD + 1), ends[2] = { -1, -1 };
	pid_t pid;

	if (history < 0 || pipe2(ends, O_CLOEXEC)) {
		close(history);
		return answer;
	}
	ends[1] = moved_up(ends[1]);
	if (!spawn_player(&pid, history, ends[1], setting, limits)) {
		answer.status = PLAY_NOT_ENDED;
		close(ends[1]);
		ends[1] = -1;
		await_answer(ends[0], limits->seconds, &answer);
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(history);
	close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
	return answer;
}
