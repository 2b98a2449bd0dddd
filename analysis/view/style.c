/* SPDX-License-Identifier: Apache-2.0 */
/* Terminal abilities, from the environment and the stream. */
#include "analysis/view/style.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool is_set(const char *name)
{
	const char *value = getenv(name);
	return value && *value;
}

static bool is_on(const char *name)
{
	return is_set(name) && strcmp(getenv(name), "0") != 0;
}

/* Explicit settings come before the terminal, and NO_COLOR before the others (no-color.org). */
static bool wants_colour(FILE *out)
{
	const char *term = getenv("TERM");
	if (is_set("NO_COLOR"))
		return false;
	if (is_on("FORCE_COLOR") || is_on("CLICOLOR_FORCE"))
		return true;
	return isatty(fileno(out)) && term && strcmp(term, "dumb") != 0;
}

static unsigned columns_of(FILE *out)
{
	const char *value = getenv("COLUMNS");
	struct winsize size;
	long columns = 0;
	if (value)
		columns = atol(value);
	if (columns <= 0 && isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &size))
		columns = size.ws_col;
	if (columns <= 0)
		columns = STYLE_COLUMNS;
	if (columns < STYLE_COLUMNS_MIN)
		return STYLE_COLUMNS_MIN;
	if (columns > STYLE_COLUMNS_MAX)
		return STYLE_COLUMNS_MAX;
	return (unsigned)columns;
}

void style_init(struct style *style, FILE *out, enum style_colour colour)
{
	style->colour = colour == STYLE_ALWAYS || (colour == STYLE_AUTO && wants_colour(out));
	style->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	style->columns = columns_of(out);
}

const char *style_on(const struct style *style, enum style_tone tone)
{
	static const char *const codes[STYLE_TONES] = {
		[STYLE_PLAIN] = "",
		[STYLE_BAD] = "\033[1;31m",
		[STYLE_GOOD] = "\033[32m",
		[STYLE_WARN] = "\033[33m",
		[STYLE_HEAD] = "\033[1m",
		[STYLE_DIM] = "\033[2m",
	};
	return style->colour ? codes[tone] : "";
}

const char *style_off(const struct style *style)
{
	return style->colour ? "\033[0m" : "";
}
