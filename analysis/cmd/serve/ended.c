/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of directories, and one child at a time. */
#include "analysis/cmd/serve/ended.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "analysis/base/paths.h"
#include "analysis/base/xalloc.h"

enum { SOON_MS = 50, LATER_MS = 1000 };

static void ask_for(struct ended *ended, const char *directory)
{
	for (size_t i = 0; i < ended->count; i++)
		if (!strcmp(ended->directories[i], directory))
			return;
	xalloc_grow(&ended->directories, ended->count, &ended->room, sizeof(char *));
	ended->directories[ended->count++] = xalloc_string(directory);
}

void ended_init(struct ended *ended, const struct watch *watch, uint64_t memory_bytes,
		const char *log)
{
	*ended = (struct ended){ .memory_bytes = memory_bytes, .log = log };
	for (size_t i = 0; i < watch->finder.count; i++)
		ask_for(ended, watch->finder.directories[i].path);
}

void ended_fini(struct ended *ended)
{
	if (ended->pid) {
		kill(ended->pid, SIGKILL);
		waitpid(ended->pid, NULL, 0);
		close(ended->out);
	}
	while (ended->count)
		free(ended->directories[--ended->count]);
	free(ended->directories);
}

/* Who was gone at the first sight is in the questions of the start, too: they are one. */
static void note_who_ended(struct ended *ended, struct watch *watch)
{
	for (size_t i = 0; i < watch->count; i++) {
		struct watch_process *process = watch->processes[i];
		char directory[PATH_MAX];

		if (watch_runs(process) || process->is_end_noted)
			continue;
		process->is_end_noted = true;
		snprintf(directory, sizeof directory, "%.*s",
			 (int)(path_base_name(process->path) - process->path - 1), process->path);
		ask_for(ended, directory);
	}
}

/* The oldest question. */
static void start_next(struct ended *ended)
{
	char log[PATH_MAX + 32] = "--quiet", *directory = ended->directories[0];
	char *words[] = { (char *)"report", (char *)"--new", log, (char *)"--", directory, NULL };

	memmove(ended->directories, ended->directories + 1, --ended->count * sizeof(char *));
	if (ended->log)
		snprintf(log, sizeof log, "--termination-log=%s", ended->log);
	ended->out = memfd_create("cuflight-ended", MFD_CLOEXEC);
	if (ended->out >= 0)
		ended->pid = child_spawn(words, ended->memory_bytes, ended->out);
	if (ended->out >= 0 && ended->pid < 0)
		close(ended->out);
	if (ended->out < 0 || ended->pid < 0)
		ended->pid = 0;
	ended->started_ns = watch_now_ns();
	free(directory);
}

static void print_result(int from)
{
	char text[4096];
	ssize_t got;

	for (off_t at = 0; (got = pread(from, text, sizeof text, at)) > 0; at += got)
		fwrite(text, 1, (size_t)got, stdout);
	fflush(stdout);
}

static void take_result(struct ended *ended)
{
	if (watch_now_ns() - ended->started_ns > CHILD_SECONDS * 1000000000ull)
		kill(ended->pid, SIGKILL);
	if (waitpid(ended->pid, NULL, WNOHANG) != ended->pid)
		return;
	print_result(ended->out);
	close(ended->out);
	ended->pid = 0;
}

int ended_work(struct ended *ended, struct watch *watch)
{
	note_who_ended(ended, watch);
	if (ended->pid)
		take_result(ended);
	if (!ended->pid && ended->count)
		start_next(ended);
	return ended->pid ? SOON_MS : LATER_MS;
}
