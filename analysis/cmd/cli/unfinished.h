/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command has made under a temporary name. It is removed when the command ends without it:
 * by exit, or by a signal that ends a process and can be caught (SIGINT, SIGTERM, SIGHUP, SIGPIPE
 * and others, unless they are ignored). The process then still ends by that signal.
 *
 * Contract: the path is copied. unfinished_add comes before the thing is made, so that no signal
 * falls between. At most UNFINISHED_MAX at a time; more are dropped, and a signal leaves them
 * behind. Children of fork remove nothing. One thread adds, forgets and removes.
 */
#pragma once

enum { UNFINISHED_MAX = 64 };

enum unfinished_kind {
	UNFINISHED_FILE,
	UNFINISHED_EMPTY, /* a directory, removed only when it is empty: others may write in it */
	UNFINISHED_FILES  /* a directory of ours with files, removed with them */
};

void unfinished_add(const char *path, enum unfinished_kind kind);
/* mkdtemp, and the directory is one of UNFINISHED_FILES. */
char *unfinished_make_directory(char *template);
/* It is complete, has another name now, or was not made. */
void unfinished_forget(const char *path);
/* Removes it now. It may be gone already. */
void unfinished_remove(const char *path, enum unfinished_kind kind);
