/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the library and of the output directory. The last one records this executable there. */
#include "analysis/cmd/target/checks.h"

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
#include "analysis/base/units.h"
#include "analysis/cmd/target/ask.h"
#include "analysis/cmd/target/embedded.h"

/* library.why is the reason in the words that `run` prints. */
static void look_library(const struct check_context *context, struct check_result *result)
{
	if (context->library_found) {
		check_report(result, CHECK_FINE, "%s", context->library.path);
		return;
	}
	check_report(result, CHECK_PROBLEM, "%s", context->library.why);
	check_advise(result, "build it ('make' creates build/libcuflight.so) or install it, "
		     "or use --library=PATH");
}

/* The longest part of the output directory that exists; run creates the rest. The root always
 * exists. */
static void find_existing_part(const struct check_context *context, char *out, size_t bytes)
{
	struct stat st;
	char *slash;

	snprintf(out, bytes, "%s", context->destination.directory);
	while (stat(out, &st) && (errno == ENOENT || errno == ENOTDIR)) {
		slash = strrchr(out, '/');
		if (!slash || slash == out)
			break;
		*slash = 0;
	}
	if (stat(out, &st))
		snprintf(out, bytes, "/");
}

/* The directory itself need not exist: run creates it. */
static void look_directory(const struct check_context *context, struct check_result *result)
{
	char there[PATH_MAX];
	struct stat st;
	int error = 0;

	find_existing_part(context, there, sizeof there);
	if (stat(there, &st))
		error = errno;
	else if (!S_ISDIR(st.st_mode))
		error = ENOTDIR;
	else if (access(there, W_OK | X_OK))
		error = errno;
	if (!error) {
		check_report(result, CHECK_FINE, "%s", context->destination.directory);
		return;
	}
	check_report(result, CHECK_PROBLEM, "cannot write to %s: %s", there, strerror(error));
	check_advise(result, "choose another directory with -o or CUFLIGHT_OUTPUT");
}

/* A recording reserves its space at the start, so a full disk shows here and not later. f_bavail
 * counts what users without privileges may use. */
static void look_space(const struct check_context *context, struct check_result *result)
{
	char there[PATH_MAX];
	struct statfs fs;
	uint64_t free_bytes;

	find_existing_part(context, there, sizeof there);
	if (statfs(there, &fs)) {
		check_report(result, CHECK_INFO, "cannot read the free space of %s: %s", there,
			     strerror(errno));
		return;
	}
	free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
	if (free_bytes >= context->recording_bytes) {
		check_report(result, CHECK_FINE, "%s free; each process needs %s",
			     units_bytes(free_bytes).s, units_bytes(context->recording_bytes).s);
		return;
	}
	check_report(result, CHECK_PROBLEM,
		     "%s free in %s; each recording reserves %s at its start",
		     units_bytes(free_bytes).s, there, units_bytes(context->recording_bytes).s);
	check_advise(result, "free space there, choose another directory with -o, or use a smaller "
		     "--size");
}

/* ---- the trial ---- */

/* Removes what the trial created. Returns how many recordings were among it. The directory is a new
 * one of ours, so everything in it may be removed. */
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

/* The first line of what the trial printed. Reads until the end, or until the buffer is full. */
static void read_line(int from, char *line, size_t bytes)
{
	size_t length = 0;
	ssize_t got = 1;

	while (length + 1 < bytes && got > 0) {
		got = read(from, line + length, bytes - 1 - length);
		if (got > 0)
			length += (size_t)got;
	}
	line[length] = 0;
	line[strcspn(line, "\n")] = 0;
}

/* Runs a program of ours with the library, and with no other environment: not this one, which may
 * be static. Returns 0 or an errno, ECHILD when it failed; message receives the first line of its
 * stderr. The pipe is read until its end before the wait, so a trial that prints much cannot
 * block. */
static int spawn_trial(const struct check_context *context, const char *directory, char *message,
		       size_t bytes)
{
	char preload[PATH_MAX + 16], output[PATH_MAX + 64];
	char *argv[] = { "cuflight-trial", "nothing", NULL };
	char program_path[32];
	int program = embedded_file("cuflight-trial", asker_image, asker_image_end);
	char *envp[] = { preload, output, "CUFLIGHT_OPTIONS=start=1:size=4MiB", NULL };
	posix_spawn_file_actions_t actions;
	int pipes[2], error, status;
	pid_t pid;

	snprintf(preload, sizeof preload, "LD_PRELOAD=%s", context->library.path);
	snprintf(output, sizeof output, "CUFLIGHT_OUTPUT=%s/", directory);
	snprintf(program_path, sizeof program_path, "/proc/self/fd/%d", program);
	if (program < 0 || pipe2(pipes, O_CLOEXEC)) {
		error = errno;
		close(program);
		return error;
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], 2);
	error = posix_spawn(&pid, program_path, &actions, NULL, argv, envp);
	posix_spawn_file_actions_destroy(&actions);
	close(program);
	close(pipes[1]);
	if (!error)
		read_line(pipes[0], message, bytes);
	close(pipes[0]);
	if (!error && waitpid(pid, &status, 0) == pid && status)
		error = ECHILD;
	return error;
}

/* The recorder's message is the best reason. It is the first line that the trial printed. message
 * is empty when the trial printed nothing. */
static void report_failed_trial(struct check_result *result, unsigned count, int error,
				const char *message)
{
	char reason[128] = "";

	if (error == ECHILD)
		snprintf(reason, sizeof reason, "; it failed with the library loaded");
	else if (error)
		snprintf(reason, sizeof reason, "; %s", strerror(error));
	check_report(result, CHECK_PROBLEM, "recorded a program of its own: %u recordings%s%s%s",
		     count, reason, *message ? "; it printed: " : "", message);
}

/* What the other checks cannot foresee shows when the library is really loaded and writes there.
 * The directory is created below the output directory: a file system that refuses mmap or fallocate
 * then fails here as it would later. */
static void look_trial(const struct check_context *context, struct check_result *result)
{
	char there[PATH_MAX], directory[PATH_MAX + 32], message[400] = "";
	unsigned count;
	int error;

	find_existing_part(context, there, sizeof there);
	snprintf(directory, sizeof directory, "%s/.cuflight-trial.XXXXXX", there);
	if (!context->library_found || !mkdtemp(directory)) {
		check_report(result, CHECK_INFO, "not run: see 'library' and 'directory'");
		return;
	}
	error = spawn_trial(context, directory, message, sizeof message);
	count = clear_directory(directory);
	if (!error && count == 1 && !*message) {
		check_report(result, CHECK_FINE,
			     "recorded a program of its own there and removed it");
		return;
	}
	report_failed_trial(result, count, error, message);
	check_advise(result, "the message is the reason; without one, run "
		     "LD_DEBUG=libs LD_PRELOAD=%s true", context->library.path);
}

/* Order matters to the reader: the trial's result is understood with the three above it. */
const struct check checks_of_place[] = {
	{ "library", look_library },
	{ "directory", look_directory },
	{ "space", look_space },
	{ "trial", look_trial },
	{ NULL, NULL },
};
