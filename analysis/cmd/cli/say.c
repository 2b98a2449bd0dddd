/* SPDX-License-Identifier: Apache-2.0 */
/* Writes each line in one call, so that it does not mix with output of the recorded program. */
#include "analysis/cmd/cli/say.h"

#include <langinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "analysis/base/clean.h"

static bool quiet;

void say_quiet(bool on)
{
	quiet = on;
}

bool say_in_utf8(void) { return !strcmp(nl_langinfo(CODESET), "UTF-8"); }

/* Results are cleaned by the views. This does the same for stderr. */
static void print_line(const char *format, va_list args)
{
	char line[4096], clean[4096];

	vsnprintf(line, sizeof line, format, args);
	clean_terminal(clean, sizeof clean, line, !say_in_utf8());
	fprintf(stderr, "cuflight: %s\n", clean);
}

/* Suppressed by -q. Errors are not. */
void say_info(const char *format, ...)
{
	va_list args;

	if (quiet)
		return;
	va_start(args, format);
	print_line(format, args);
	va_end(args);
}

void say_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(format, args);
	va_end(args);
}

void say_last_line(int file, char *out, size_t bytes)
{
	char text[4096], *line;
	ssize_t got = pread(file, text, sizeof text - 1, 0);
	size_t length = got > 0 ? (size_t)got : 0;

	while (length && text[length - 1] == '\n')
		length--;
	text[length] = 0;
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	if (!strncmp(line, "cuflight: ", 10))
		line += 10;
	snprintf(out, bytes, "%s", line);
}
