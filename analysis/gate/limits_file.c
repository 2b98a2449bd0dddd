/* SPDX-License-Identifier: Apache-2.0 */
/* Reads cuflight.ini. An INI library would cut "a <= b" at the equals sign, so lines are read
 * here. */
#include "analysis/gate/limits_file.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "analysis/base/regular_file.h"
#include "analysis/base/xalloc.h"

bool limits_file_find(char *path, size_t bytes)
{
	char directory[PATH_MAX], *slash;

	if (!getcwd(directory, sizeof directory))
		return false;
	for (;;) {
		snprintf(path, bytes, "%s/%s", strcmp(directory, "/") ? directory : "",
			 LIMITS_FILE_NAME);
		if (!access(path, R_OK))
			return true;
		slash = strrchr(directory, '/');
		if (!slash || !slash[1])
			return false;
		slash[slash == directory] = 0;
	}
}

/* Without blanks at both ends, in place. */
static char *trim(char *text)
{
	size_t length;

	while (isspace((unsigned char)*text))
		text++;
	for (length = strlen(text); length && isspace((unsigned char)text[length - 1]);)
		text[--length] = 0;
	return text;
}

/* A comment is a line of its own, or follows a blank. */
static void drop_comment(char *line)
{
	for (char *at = line; *at; at++)
		if ((*at == '#' || *at == ';') && (at == line || isblank((unsigned char)at[-1]))) {
			*at = 0;
			return;
		}
}

/* The value of "baseline = FILE"; NULL: it is another line. */
static char *baseline_value(char *line)
{
	size_t key = strlen("baseline");

	if (strncmp(line, "baseline", key) != 0)
		return NULL;
	line = trim(line + key);
	return *line == '=' ? trim(line + 1) : NULL;
}

/* A relative path is relative to the directory of the file. */
static const char *beside(const struct limits_file *file, const char *path)
{
	const char *slash = strrchr(file->path, '/');

	if (*path == '/' || !slash)
		return arena_text(file->arena, path, strlen(path));
	return arena_format(file->arena, "%.*s/%s", (int)(slash - file->path), file->path, path);
}

static int take_limit(struct limits_file *file, const char *line, unsigned number, char *error,
		      size_t error_bytes)
{
	struct gate_limit limit;
	char reason[512];

	if (gate_limit_parse(line, file->arena, &limit, reason, sizeof reason)) {
		snprintf(error, error_bytes, "%s:%u: %s", file->path, number, reason);
		return -1;
	}
	limit.origin = arena_format(file->arena, "%s:%u", file->path, number);
	gate_limits_add(file->limits, &limit);
	return 0;
}

static bool was_recorded(const struct limits_file *file, const char *name)
{
	for (size_t i = 0; i < file->program_count; i++)
		if (!strcmp(file->programs[i], name))
			return true;
	return false;
}

/* "[server.py]": whether what follows is for a recorded program. -1: no such line can be read. */
static int take_section(struct limits_file *file, char *line, unsigned number, char *error,
			size_t error_bytes)
{
	bool ours;
	size_t length = strlen(line);

	if (line[length - 1] != ']' || length < 3) {
		snprintf(error, error_bytes, "%s:%u: expected [PROGRAM]", file->path, number);
		return -1;
	}
	line[length - 1] = 0;
	line = trim(line + 1);
	ours = was_recorded(file, line);
	file->has_own_section |= ours;
	if (!ours)
		file->sections = arena_format(file->arena, "%s%s[%s]", file->sections,
					      *file->sections ? ", " : "", line);
	return ours;
}

static int read_lines(struct limits_file *file, FILE *in, char *error, size_t error_bytes)
{
	char *line = NULL, *text, *baseline;
	size_t room = 0;
	unsigned number = 0;
	int ours = 1, status = 0;

	while (status >= 0 && getline(&line, &room, in) >= 0) {
		number++;
		drop_comment(line);
		text = trim(line);
		if (*text == '[')
			status = ours = take_section(file, text, number, error, error_bytes);
		else if ((baseline = baseline_value(text)) && ours)
			file->baseline = beside(file, baseline);
		else if (*text && !baseline && ours)
			status = take_limit(file, text, number, error, error_bytes);
	}
	free(line);
	return status < 0 ? -1 : 0;
}

int limits_file_read(struct limits_file *file, char *error, size_t error_bytes)
{
	const char *why;
	int descriptor = regular_file_open(file->path, 0, &why), status;
	FILE *in;

	file->sections = "";
	if (descriptor < 0) {
		snprintf(error, error_bytes, "cannot read '%s': %s", file->path, why);
		return -1;
	}
	in = fdopen(descriptor, "r");
	if (!in) {
		snprintf(error, error_bytes, "cannot read '%s': %s", file->path, strerror(errno));
		close(descriptor);
		return -1;
	}
	status = read_lines(file, in, error, error_bytes);
	fclose(in);
	return status;
}
