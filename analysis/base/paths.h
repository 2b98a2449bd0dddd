/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths as text: the last component, and the form that a shell accepts. How names begin.
 * Contract: pure; no allocation, no system call; out is always NUL-terminated and cut to fit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* What follows the last slash; the whole text when there is none. Points into path. */
const char *path_base_name(const char *path);

/* The text as one word of a shell command: unchanged where that is safe, else in single quotes. */
void path_quote_shell(const char *path, char *out, size_t bytes);

/*
 * What people call a program: of an interpreter the script, module or archive that it runs
 * (agent.py, -m pkg, app.jar), else the executable's base name. Contract: exe and cmdline as
 * recorded, words separated by blanks; neither may be NULL. "?" where both are empty.
 */
void program_name(const char *exe, const char *cmdline, char *out, size_t bytes);

static inline bool text_begins_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/* One of these, of which a NULL ends the list early. The text may be NULL. */
bool text_begins_with_any(const char *text, const char *const *starts, size_t count);
bool text_has_any(const char *text, const char *const *parts, size_t count);
