/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files of rules, line by line. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "analysis/base/regular_file.h"
#include "analysis/base/xalloc.h"
#include "analysis/gate/suppress_rules.h"

enum { FILE_BYTES_MAX = 16 << 20, SHOWN = 120, DATE_LENGTH = 10 };
#define PRAGMA "#cuflight"

/* One file while it is read. A date and a reason wait for the next rule. */
struct parse {
	struct suppressions *suppressions;
	const char *name;
	unsigned line;
	const char *until, *reason;
	char *error;
	size_t error_bytes;
};

static int fail(struct parse *parse, const char *what, const char *text)
{
	snprintf(parse->error, parse->error_bytes, "%s:%u: %s '%.*s'", parse->name, parse->line,
		 what, SHOWN, text);
	return -1;
}

static bool is_date(const char *text, size_t length)
{
	static const char form[] = "0000-00-00";

	if (length != DATE_LENGTH)
		return false;
	for (size_t i = 0; i < length; i++)
		if (form[i] == '-' ? text[i] != '-' : !isdigit((unsigned char)text[i]))
			return false;
	return atoi(text + 5) >= 1 && atoi(text + 5) <= 12 && atoi(text + 8) >= 1 &&
	       atoi(text + 8) <= 31;
}

/* "kind:pattern"; the pattern is everything after the colon, as LeakSanitizer takes it. */
static int add_rule(struct parse *parse, const char *text)
{
	struct suppressions *list = parse->suppressions;
	size_t length = strcspn(text, ":");
	struct suppress_rule rule = { .reason = parse->reason, .until = parse->until };

	if (!text[length])
		return fail(parse, "expected KIND:PATTERN, not", text);
	rule.kind = arena_text(list->arena, text, length);
	rule.text = text;
	rule.pattern = text + length + 1;
	if (!suppress_kind_find(rule.kind))
		return fail(parse, "unknown kind of rule (expected leak, once, growth, incident, "
				   "device, framework, pinned, managed, host or python):",
			    rule.kind);
	if (!*rule.pattern)
		return fail(parse, "the rule has no pattern:", text);
	rule.origin = "";
	if (*parse->name)
		rule.origin = arena_format(list->arena, "%s:%u", parse->name, parse->line);
	rule.expired = *rule.until && strcmp(list->today, rule.until) > 0;
	xalloc_grow(&list->rules, list->count, &list->room, sizeof rule);
	list->rules[list->count++] = rule;
	parse->until = parse->reason = "";
	return 0;
}

/* key=value or key="value with blanks" at text; *after: what follows it. */
static int take_setting(struct parse *parse, const char *text, const char **after)
{
	size_t key = strcspn(text, "="), length;
	const char *value = text + key + 1;
	const char *end = value + strcspn(value, " \t");
	struct arena *arena = parse->suppressions->arena;

	if (*value == '"') {
		end = strchr(++value, '"');
		if (!end)
			return fail(parse, "a quotation mark is missing after", text);
	}
	length = (size_t)(end - value);
	*after = *end == '"' ? end + 1 : end;
	if (key == strlen("reason") && !strncmp(text, "reason", key)) {
		parse->reason = arena_text(arena, value, length);
	} else if (key == strlen("until") && !strncmp(text, "until", key)) {
		if (!is_date(value, length))
			return fail(parse, "expected until=YYYY-MM-DD, not", text);
		parse->until = arena_text(arena, value, length);
	} else {
		return fail(parse, "expected until=DATE, reason=\"TEXT\" or KIND:PATTERN, not",
			    text);
	}
	return 0;
}

/* What follows "#cuflight": settings, then perhaps a rule. */
static int take_pragma(struct parse *parse, const char *text)
{
	for (;;) {
		text += strspn(text, " \t");
		if (!*text)
			return 0;
		if (text[strcspn(text, "=:")] != '=')
			return add_rule(parse, text);
		if (take_setting(parse, text, &text))
			return -1;
	}
}

static bool is_pragma(const char *line)
{
	size_t length = strlen(PRAGMA);

	return !strncmp(line, PRAGMA, length) && strchr(": \t", line[length]);
}

/* Blanks at both ends were removed. "#cuflight:" may have a colon. */
static int take_line(struct parse *parse, const char *line)
{
	if (is_pragma(line)) {
		line += strlen(PRAGMA);
		return take_pragma(parse, line + (*line == ':'));
	}
	if (!*line || *line == '#')
		return 0;
	return add_rule(parse, line);
}

/* Trailing blanks are removed. A NUL ends the line early. */
static const char *line_text(struct arena *arena, const char *at, size_t length)
{
	while (length && strchr(" \t\r", at[length - 1]) && at[length - 1])
		length--;
	while (length && (*at == ' ' || *at == '\t')) {
		at++;
		length--;
	}
	return arena_text(arena, at, length);
}

int suppressions_parse(struct suppressions *suppressions, const char *text, size_t bytes,
		       const char *name, char *error, size_t error_bytes)
{
	struct parse parse = { .suppressions = suppressions, .until = "", .reason = "",
			       .error = error, .error_bytes = error_bytes };
	const char *end = text + bytes;
	size_t before = suppressions->count;

	parse.name = arena_text(suppressions->arena, name, strlen(name));
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((stop ? stop : end) - text);

		parse.line++;
		if (take_line(&parse, line_text(suppressions->arena, text, length))) {
			suppressions->count = before;
			return -1;
		}
		text += length + 1;
	}
	return 0;
}

/* The whole file on the heap; NULL with errno set. */
static char *read_file(int fd, size_t *bytes)
{
	char *text = xalloc_bytes(FILE_BYTES_MAX);
	ssize_t got = 0;

	*bytes = 0;
	do {
		*bytes += (size_t)got;
		got = read(fd, text + *bytes, FILE_BYTES_MAX - *bytes);
	} while (got > 0);
	if (!got && *bytes < FILE_BYTES_MAX)
		return text;
	errno = got ? errno : EFBIG;
	free(text);
	return NULL;
}

int suppressions_read(struct suppressions *suppressions, const char *path, char *error,
		      size_t error_bytes)
{
	const char *why;
	int fd = regular_file_open(path, 0, &why), status;
	size_t bytes;
	char *text;

	if (fd < 0) {
		snprintf(error, error_bytes, "cannot open '%s': %s", path, why);
		return -1;
	}
	text = read_file(fd, &bytes);
	close(fd);
	if (!text) {
		snprintf(error, error_bytes, "cannot read '%s': %s", path, strerror(errno));
		return -1;
	}
	status = suppressions_parse(suppressions, text, bytes, path, error, error_bytes);
	free(text);
	return status;
}
