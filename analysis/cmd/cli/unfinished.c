/* SPDX-License-Identifier: Apache-2.0 */
/* A table of paths, and a handler that may do nothing but system calls. */
#include "analysis/cmd/cli/unfinished.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* `used` is set last and cleared first: a signal may come between any two lines. */
static struct { atomic_bool used; enum unfinished_kind kind; char path[PATH_MAX]; }
	things[UNFINISHED_MAX];
static pid_t owner;

/* One reading of the directory: whether a file was removed. getdents64, since readdir allocates. */
static bool remove_some(int directory)
{
	_Alignas(struct dirent) char entries[4096];
	long bytes = syscall(SYS_getdents64, directory, entries, sizeof entries);
	bool any = false;

	for (long at = 0; at < bytes;) {
		const struct dirent *entry = (const void *)(entries + at);

		any |= !unlinkat(directory, entry->d_name, 0);
		at += entry->d_reclen;
	}
	return any;
}

static void remove_files(const char *path)
{
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (directory < 0)
		return;
	while (remove_some(directory))
		lseek(directory, 0, SEEK_SET);
	close(directory);
}

static void remove_thing(const char *path, enum unfinished_kind kind)
{
	if (kind == UNFINISHED_FILE) {
		unlink(path);
		return;
	}
	if (kind == UNFINISHED_FILES)
		remove_files(path);
	rmdir(path);
}

/* What was added last goes first: it may lie in what was added before. */
static void remove_all(void)
{
	if (getpid() != owner)
		return;
	for (size_t i = UNFINISHED_MAX; i--;)
		if (atomic_exchange(&things[i].used, false))
			remove_thing(things[i].path, things[i].kind);
}

/* SA_RESETHAND: raised again, the signal ends the process when the handler returns. */
static void on_signal(int number)
{
	remove_all();
	raise(number);
}

static void watch_ends(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGALRM,
				       SIGXCPU, SIGXFSZ, SIGUSR1, SIGUSR2, SIGABRT };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND }, old;

	owner = getpid();
	atexit(remove_all);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (!sigaction(numbers[i], NULL, &old) && old.sa_handler == SIG_DFL)
			sigaction(numbers[i], &action, NULL);
}

void unfinished_add(const char *path, enum unfinished_kind kind)
{
	if (!owner)
		watch_ends();
	if (strlen(path) >= PATH_MAX)
		return;
	for (size_t i = 0; i < UNFINISHED_MAX; i++) {
		if (things[i].used)
			continue;
		strcpy(things[i].path, path);
		things[i].kind = kind;
		things[i].used = true;
		return;
	}
}

/* Its name is known only when it is there, so signals wait meanwhile. */
char *unfinished_make_directory(char *template)
{
	sigset_t all, before;
	char *made;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	made = mkdtemp(template);
	if (made)
		unfinished_add(template, UNFINISHED_FILES);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return made;
}

void unfinished_forget(const char *path)
{
	for (size_t i = 0; i < UNFINISHED_MAX; i++)
		if (things[i].used && !strcmp(things[i].path, path))
			things[i].used = false;
}

void unfinished_remove(const char *path, enum unfinished_kind kind)
{
	remove_thing(path, kind);
	unfinished_forget(path);
}
