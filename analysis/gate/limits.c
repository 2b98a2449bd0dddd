/* SPDX-License-Identifier: Apache-2.0 */
/* The table of measures, one limit as it is typed, and cuflight.ini. */
#include "analysis/gate/limits.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "analysis/base/regular_file.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"
#include "interpose/abi/format.h"

const char *const gate_group_names[GROUP_MAX] = {
	"device", "pinned", "managed", "framework", "host", "python",
};

#define FLOOR_BYTES ((uint64_t)1 << 20)
/* Rounding to pages of 2 MiB changes by up to a page with each block. */
#define FLOOR_OF_PAGES ((uint64_t)8 << 20)
#define FLOOR_OF_REQUEST ((uint64_t)64 << 10)
#define PERCENT 3.0
#define PERCENT_OF_PAGES 10.0

#define PEAK(GROUP, name, memory, which)                                                           \
	[MEASURE_##GROUP##_PEAK] = { name ".peak", GATE_BYTES,  GROUP_##GROUP,                     \
				     PERCENT,      FLOOR_BYTES, "peak " memory,                    \
				     "highest live bytes " which }
#define END(GROUP, name, memory, which)                                                            \
	[MEASURE_##GROUP##_END] = { name ".end", GATE_BYTES,  GROUP_##GROUP,                       \
				    PERCENT,     FLOOR_BYTES, memory " at the end",                \
				    "live bytes at the end " which }

const struct gate_measure gate_measures[MEASURE_MAX] = {
	PEAK(DEVICE, "device", "GPU memory", "of all GPUs"),
	PEAK(PINNED, "pinned", "page-locked memory", "of page-locked host memory"),
	PEAK(MANAGED, "managed", "managed memory", "of managed memory"),
	PEAK(FRAMEWORK, "framework", "memory of the framework",
	     "that a framework allocated in its segments"),
	PEAK(HOST, "host", "host memory", "of host memory (malloc and maps)"),
	PEAK(PYTHON, "python", "host memory of Python code",
	     "of host memory that Python code allocated"),
	END(DEVICE, "device", "GPU memory", "of all GPUs"),
	END(PINNED, "pinned", "page-locked memory", "of page-locked host memory"),
	END(MANAGED, "managed", "managed memory", "of managed memory"),
	END(FRAMEWORK, "framework", "memory of the framework",
	    "that a framework allocated in its segments"),
	END(HOST, "host", "host memory", "of host memory (malloc and maps)"),
	END(PYTHON, "python", "host memory of Python code",
	    "of host memory that Python code allocated"),
	[MEASURE_DEVICE_LEAK] = { "device.leak", GATE_BYTES, GROUP_DEVICE, PERCENT, FLOOR_BYTES,
				  "leaked GPU memory", "bytes of proven leaks of GPU memory" },
	[MEASURE_HOST_LEAK] = { "host.leak", GATE_BYTES, GROUP_HOST, PERCENT, FLOOR_BYTES,
				"leaked host memory",
				"bytes of proven leaks of host and page-locked memory" },
	[MEASURE_REQUEST_GROWTH] = { "request.growth", GATE_BYTES, GROUP_DEVICE,
				     PERCENT, FLOOR_OF_REQUEST,
				     "GPU memory that stays after each request",
				     "bytes that stay after each marked request" },
	[MEASURE_DEVICE_UNUSED] = { "device.unused", GATE_BYTES, GROUP_DEVICE,
				    PERCENT_OF_PAGES, FLOOR_OF_PAGES,
				    "GPU memory that is reserved but unused",
				    "reserved but unused bytes in pages, pools and segments, at "
				    "the peak or at the end" },
	[MEASURE_DEVICE_HOLE] = { "device.hole", GATE_BYTES, GROUP_DEVICE, 0, 0,
				  "largest hole between blocks of GPU memory",
				  "largest hole in pages, pools and segments, at the peak or at "
				  "the end" },
	[MEASURE_INCIDENTS_FATAL] = { "incidents.fatal", GATE_COUNT, GROUP_MAX, 0, 0,
				      "fatal failures",
				      "failed requests that ended the program, and kills by the "
				      "kernel because memory ran out" },
	[MEASURE_INCIDENTS_RECOVERED] = { "incidents.recovered", GATE_COUNT, GROUP_MAX, 0, 0,
					  "requests that failed and were survived",
					  "failed requests that the program survived" },
	[MEASURE_DEVICE_ALLOCATIONS] = { "device.allocations", GATE_COUNT, GROUP_MAX, 0, 0,
					 "allocations of GPU memory",
					 "allocations of GPU and page-locked memory" },
	[MEASURE_HOST_ALLOCATIONS] = { "host.allocations", GATE_COUNT, GROUP_MAX, 0, 0,
				       "allocations of host memory",
				       "calls that allocated host memory (--host=full)" },
};

struct unit_text gate_amount(const struct gate_measure *measure, uint64_t value)
{
	return measure->unit == GATE_BYTES ? units_bytes(value) : units_count(value);
}

const struct gate_measure *gate_measure_find(const char *name, size_t length)
{
	for (size_t i = 0; i < MEASURE_MAX; i++)
		if (strlen(gate_measures[i].name) == length &&
		    !strncmp(gate_measures[i].name, name, length))
			return &gate_measures[i];
	return NULL;
}

/* ---- limits ---- */

enum { WORD_MAX = 64, TEXT_MAX = 400 };

const char *const gate_operator_names[] = { "<=", "<", "=", ">=" };

static const char *skip_blanks(const char *at)
{
	while (isblank((unsigned char)*at))
		at++;
	return at;
}

/* The longest operator at this place; -1: none. */
static int operator_at(const char *at, size_t *length)
{
	int found = -1;

	*length = 0;
	for (int i = 0; i <= GATE_AT_LEAST; i++) {
		size_t bytes = strlen(gate_operator_names[i]);
		if (!strncmp(at, gate_operator_names[i], bytes) && bytes > *length) {
			*length = bytes;
			found = i;
		}
	}
	return found;
}

/* "+3%" or "+16MiB" without the sign, one word. False: neither. */
static bool take_excess(struct gate_limit *limit, const char *word, bool *has_floor)
{
	char *end;
	size_t length = strlen(word);

	if (length && word[length - 1] == '%') {
		limit->percent = strtod(word, &end);
		return end == word + length - 1 && isdigit((unsigned char)*word) &&
		       limit->percent < 1e6;
	}
	*has_floor = true;
	if (limit->measure->unit == GATE_COUNT)
		return units_parse_count(word, &limit->value);
	return units_parse_bytes(word, &limit->value);
}

/* Copies one value without the blanks around it. False: there is none, or it is too long. */
static bool copy_value(char out[WORD_MAX], const char *at, size_t length)
{
	while (length && isblank((unsigned char)*at)) {
		at++;
		length--;
	}
	while (length && isblank((unsigned char)at[length - 1]))
		length--;
	if (!length || length >= WORD_MAX)
		return false;
	memcpy(out, at, length);
	out[length] = 0;
	return true;
}

/* Values until the end, each with a plus. */
static bool take_relative(struct gate_limit *limit, const char *at)
{
	char value[WORD_MAX];
	bool has_floor = false;
	size_t length;

	limit->relative = true;
	for (; *at; at += length) {
		at++; /* the plus */
		length = strcspn(at, "+");
		if (!copy_value(value, at, length) || !take_excess(limit, value, &has_floor))
			return false;
	}
	if (!has_floor && limit->measure->unit == GATE_BYTES)
		limit->value = GATE_FLOOR_BYTES;
	return true;
}

/* A number, with a unit if the measure is in bytes. */
static bool take_absolute(struct gate_limit *limit, const char *at)
{
	char value[WORD_MAX];

	if (!copy_value(value, at, strlen(at)))
		return false;
	if (limit->measure->unit == GATE_COUNT)
		return units_parse_count(value, &limit->value);
	return units_parse_bytes(value, &limit->value);
}

/* The phase ends where the operator begins. */
static const char *take_phase(struct gate_limit *limit, const char *at, struct arena *arena)
{
	size_t length, room;

	if (*at != '@')
		return at;
	at = skip_blanks(at + 1);
	room = strcspn(at, "<>=");
	for (length = room; length && isblank((unsigned char)at[length - 1]);)
		length--;
	limit->phase = arena_text(arena, at, length);
	return at + room;
}

static const char *example_of(const struct gate_measure *measure)
{
	return measure->unit == GATE_BYTES ? "1.5GiB, 2GB or +3%" : "10 or +3%";
}

/* As typed, for messages: one blank at each side of the operator. */
static const char *limit_text(const struct gate_limit *limit, const char *value,
			      struct arena *arena)
{
	size_t length = strlen(value);

	while (length && isblank((unsigned char)value[length - 1]))
		length--;
	return arena_format(arena, "%s%s%s %s %.*s", limit->measure->name,
			    limit->phase ? "@" : "", limit->phase ? limit->phase : "",
			    gate_operator_names[limit->operator], (int)length, value);
}

int gate_limit_parse(const char *text, struct arena *arena, struct gate_limit *out, char *error,
		     size_t error_bytes)
{
	const char *at = skip_blanks(text);
	size_t name = strcspn(at, "@<>= \t"), length;
	int operator;
	bool good;

	*out = (struct gate_limit){ .measure = gate_measure_find(at, name), .origin = "" };
	if (!out->measure) {
		snprintf(error, error_bytes, "no measure '%.*s'; see 'cuflight check --help'",
			 (int)(name < WORD_MAX ? name : WORD_MAX), at);
		return -1;
	}
	at = skip_blanks(take_phase(out, skip_blanks(at + name), arena));
	operator = operator_at(at, &length);
	if (operator < 0 || (out->phase && !*out->phase)) {
		snprintf(error, error_bytes, "limit '%.*s' has no %s; expected '%s <= %s'",
			 TEXT_MAX / 2, text, operator < 0 ? "operator" : "name of a phase",
			 out->measure->name, example_of(out->measure));
		return -1;
	}
	out->operator = (enum gate_operator)operator;
	if (out->phase && out->measure > &gate_measures[MEASURE_PYTHON_END]) {
		snprintf(error, error_bytes, "limit '%.*s': phases have only peaks and ends",
			 TEXT_MAX / 2, text);
		return -1;
	}
	at = skip_blanks(at + length);
	if (*at == '+')
		good = out->operator <= GATE_BELOW && !out->phase && take_relative(out, at);
	else
		good = take_absolute(out, at);
	if (!good) {
		snprintf(error, error_bytes,
			 "cannot read the value of limit '%.*s'; expected '%s <= %s'", TEXT_MAX / 2,
			 text, out->measure->name, example_of(out->measure));
		return -1;
	}
	out->text = limit_text(out, at, arena);
	return 0;
}

void gate_limits_add(struct gate_limits *limits, const struct gate_limit *limit)
{
	xalloc_grow(&limits->items, limits->count, &limits->room, sizeof *limit);
	limits->items[limits->count++] = *limit;
}

/* Reads cuflight.ini. An INI library would cut "a <= b" at the equals sign, so lines are read
 * here. */
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
static char *trim_blanks(char *text)
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
	line = trim_blanks(line + key);
	return *line == '=' ? trim_blanks(line + 1) : NULL;
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
	line = trim_blanks(line + 1);
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
		text = trim_blanks(line);
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
