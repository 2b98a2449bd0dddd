/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the library and of the place recordings go to, ended by a trial: this executable, recorded. */
#include "analysis/cmd/doctor/checks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include "analysis/view/units.h"

static void look_library(const struct check_context *context, struct check_result *result)
{
	if (context->library_found) {
		check_say(result, CHECK_FINE, "%s", context->library.path);
		return;
	}
	check_say(result, CHECK_PROBLEM, "%s", context->library.why);
	check_todo(result, "build or install it ('make' leaves build/libcuflight.so), or give --library=PATH");
}

/* The nearest directory that exists: what is missing below it will be created. */
static void existing_part(const struct check_context *context, char *out, size_t bytes)
{
	struct stat st;
	char *slash;
	snprintf(out, bytes, "%s", context->destination.directory);
	while (stat(out, &st) && (errno == ENOENT || errno == ENOTDIR) && (slash = strrchr(out, '/')) && slash != out)
		*slash = 0;
	if (stat(out, &st))
		snprintf(out, bytes, "/");
}

static void look_directory(const struct check_context *context, struct check_result *result)
{
	char there[PATH_MAX];
	struct stat st;
	existing_part(context, there, sizeof there);
	if (stat(there, &st) || !S_ISDIR(st.st_mode) || access(there, W_OK | X_OK)) {
		check_say(result, CHECK_PROBLEM, "cannot write in %s: %s", there, S_ISDIR(st.st_mode) ? strerror(errno) : strerror(ENOTDIR));
		check_todo(result, "choose another with -o or CUFLIGHT_OUTPUT");
		return;
	}
	check_say(result, CHECK_FINE, "%s", context->destination.directory);
}

static void look_space(const struct check_context *context, struct check_result *result)
{
	char there[PATH_MAX];
	struct statfs fs;
	existing_part(context, there, sizeof there);
	if (statfs(there, &fs)) {
		check_say(result, CHECK_INFO, "cannot ask %s: %s", there, strerror(errno));
		return;
	}
	uint64_t free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
	if (free_bytes >= context->recording_bytes) {
		check_say(result, CHECK_FINE, "%s free; each process takes %s", units_bytes(free_bytes).s, units_bytes(context->recording_bytes).s);
		return;
	}
	check_say(result, CHECK_PROBLEM, "%s free in %s; a recording takes %s, reserved at its start", units_bytes(free_bytes).s, there,
		  units_bytes(context->recording_bytes).s);
	check_todo(result, "make room, choose another place with -o, or a smaller --size");
}

/* Removes what the trial left; returns the number of recordings it removed. */
static unsigned clear_directory(const char *directory)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	unsigned count = 0;
	while (dir && (entry = readdir(dir))) {
		const char *dot = strrchr(entry->d_name, '.');
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		count += dot && !strcmp(dot, ".cuf");
		unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
	rmdir(directory);
	return count;
}

/* Starts this executable's --version under the library, its stderr in words. 0, or an errno. */
static int spawn_trial(const struct check_context *context, const char *directory, char *words, size_t bytes)
{
	char preload[PATH_MAX + 16], output[PATH_MAX + 64];
	char *argv[] = { "cuflight", "--version", NULL };
	char *envp[] = { preload, output, "CUFLIGHT_OPTIONS=start=1:size=4MiB", NULL };
	posix_spawn_file_actions_t actions;
	int pipes[2], error, status;
	ssize_t length = 0, got;
	pid_t pid;
	snprintf(preload, sizeof preload, "LD_PRELOAD=%s", context->library.path);
	snprintf(output, sizeof output, "CUFLIGHT_OUTPUT=%s/", directory);
	if (pipe2(pipes, O_CLOEXEC))
		return errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], 2);
	error = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, envp);
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[1]);
	while (!error && (size_t)length + 1 < bytes && (got = read(pipes[0], words + length, bytes - 1 - (size_t)length)) > 0)
		length += got;
	words[length] = 0;
	words[strcspn(words, "\n")] = 0;
	close(pipes[0]);
	if (!error && waitpid(pid, &status, 0) == pid && status)
		error = ECHILD;
	return error;
}

static void look_trial(const struct check_context *context, struct check_result *result)
{
	char there[PATH_MAX], directory[PATH_MAX + 32], words[400] = "";
	unsigned count;
	int error;
	existing_part(context, there, sizeof there);
	snprintf(directory, sizeof directory, "%s/.cuflight-trial.XXXXXX", there);
	if (!context->library_found || !mkdtemp(directory)) {
		check_say(result, CHECK_INFO, "not tried: see above");
		return;
	}
	error = spawn_trial(context, directory, words, sizeof words);
	count = clear_directory(directory);
	if (!error && count == 1 && !*words) {
		check_say(result, CHECK_FINE, "recorded 'cuflight --version' there, and removed it");
		return;
	}
	check_say(result, CHECK_PROBLEM, "recorded 'cuflight --version': %u recordings%s%s%s%s", count, error ? "; " : "",
		  error == ECHILD ? "it failed under the library" : error ? strerror(error) : "", *words ? "; it said: " : "", words);
	check_todo(result, "what it said is the reason; without words, try LD_DEBUG=libs LD_PRELOAD=%s true", context->library.path);
}

const struct check checks_of_place[] = {
	{ "library", look_library },
	{ "directory", look_directory },
	{ "space", look_space },
	{ "trial", look_trial },
	{ NULL, NULL },
};
