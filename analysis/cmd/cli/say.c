/* SPDX-License-Identifier: Apache-2.0 */
/* Lines on stderr, each written at once so that they do not mix with the lines of a program that we watch. */
#include "analysis/cmd/cli/say.h"

#include <stdarg.h>
#include <stdio.h>

static bool quiet;

void say_quiet(bool on) { quiet = on; }

static void say(const char *format, va_list args)
{
	char line[4096];
	vsnprintf(line, sizeof line, format, args);
	fprintf(stderr, "cuflight: %s\n", line);
}

void say_info(const char *format, ...)
{
	va_list args;
	if (quiet)
		return;
	va_start(args, format);
	say(format, args);
	va_end(args);
}

void say_error(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	say(format, args);
	va_end(args);
}
