/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the reader's screen can show: colour, UTF-8, width. Nothing depends on colour.
 * Contract: style_init looks at the stream and the environment once; texts returned are
 * static, "" where there is no colour.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum { STYLE_COLUMNS = 80 /* what is laid out for, where nothing else is known */,
	STYLE_COLUMNS_MIN = 40, STYLE_COLUMNS_MAX = 1000 };
enum style_colour { STYLE_AUTO, STYLE_ALWAYS, STYLE_NEVER };
enum style_tone { STYLE_PLAIN, STYLE_BAD, STYLE_GOOD, STYLE_WARN, STYLE_HEAD, STYLE_DIM,
	STYLE_TONES };

struct style {
	bool colour, utf8;
	unsigned columns; /* at least 40 */
};

/*
 * colour: --color. NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, TERM=dumb and whether out is a
 * terminal decide on AUTO. The locale must have been set (LC_CTYPE).
 */
void style_init(struct style *style, FILE *out, enum style_colour colour);
const char *style_on(const struct style *style, enum style_tone tone);
const char *style_off(const struct style *style);
