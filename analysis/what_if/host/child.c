/* SPDX-License-Identifier: Apache-2.0 */
/* posix_spawn of the player from a memory file, and a pipe with a deadline. */
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
#include "analysis/embedded/embedded.h"
#include "analysis/what_if/host/player_image.h"

enum { HISTORY_FD = 3, ANSWER_FD, PLAYER_FD, FREE_FD, NUMBER_CHARACTERS = 24 }; /* as in player.c */

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

/* A descriptor above those that the child has: a duplicate must not close it there. */
static int moved_up(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, FREE_FD);

	close(fd);
	return moved;
}

/* Descriptors of one play; -1: none. */
struct channel { int player, history, answer[2]; };

static int spawn_player(pid_t *pid, const struct channel *channel,
			const struct host_setting *setting, const struct play_limits *limits)
{
	char resident[NUMBER_CHARACTERS], touched[NUMBER_CHARACTERS], seconds[NUMBER_CHARACTERS];
	char *argv[] = { "cuflight-player", "3", "4", resident, touched, seconds, NULL };
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
	posix_spawn_file_actions_adddup2(&actions, channel->history, HISTORY_FD);
	posix_spawn_file_actions_adddup2(&actions, channel->answer[1], ANSWER_FD);
	posix_spawn_file_actions_adddup2(&actions, channel->player, PLAYER_FD);
	error = posix_spawn(pid, "/proc/self/fd/5", &actions, NULL, argv, environment);
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

static bool channel_open(struct channel *channel, int history_fd)
{
	int player = embedded_file("cuflight-player", player_image, player_image_end);

	*channel = (struct channel){ .player = moved_up(player),
				     .history = fcntl(history_fd, F_DUPFD_CLOEXEC, FREE_FD),
				     .answer = { -1, -1 } };
	if (channel->player < 0 || channel->history < 0 || pipe2(channel->answer, O_CLOEXEC))
		return false;
	channel->answer[1] = moved_up(channel->answer[1]);
	return channel->answer[1] >= 0;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void channel_close(struct channel *channel)
{
	close_end(&channel->player);
	close_end(&channel->history);
	close_end(&channel->answer[0]);
	close_end(&channel->answer[1]);
}

struct play_answer child_play(int history_fd, const struct host_setting *setting,
			      const struct play_limits *limits)
{
	struct play_answer answer = { .status = PLAY_BROKEN };
	struct channel channel;
	pid_t pid;

	if (channel_open(&channel, history_fd) && !spawn_player(&pid, &channel, setting, limits)) {
		answer.status = PLAY_NOT_ENDED;
		close_end(&channel.answer[1]);
		await_answer(channel.answer[0], limits->seconds, &answer);
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	channel_close(&channel);
	return answer;
}
