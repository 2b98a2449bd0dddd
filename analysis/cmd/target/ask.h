/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a program inside the command (asker/asker.c) for what only the system's loader and its
 * libraries know. A static command has no loader, and a driver may hang or crash.
 *
 * Contract. The answer is one write that fits into a pipe; at most two seconds. Where the program
 * cannot run (another C library, memory files that may not be executed) there is no answer. The
 * caller has one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct question {
	const char *words[2]; /* the program's arguments; the second may be NULL */
	const void *data;     /* its input, less than a pipe holds */
	size_t bytes;
};

/* Bytes of the answer; 0: none; -1: it takes too long. */
ssize_t ask(const struct question *question, void *answer, size_t room);

/* The path at which the loader finds a library; false: it finds none, or nobody can say. */
bool ask_library(const char *soname, char *path, size_t bytes);

extern const char asker_image[], asker_image_end[]; /* images.c */
