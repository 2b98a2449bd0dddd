/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a JSON document while it is written, without keeping it: a stream that takes bytes and
 * remembers where they stopped being one object of RFC 8259 in UTF-8 without control characters.
 * Keys that come twice are not seen.
 *
 * Contract: one document a check; depth at most JSON_CHECK_DEPTH. The caller closes the FILE.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum { JSON_CHECK_DEPTH = 64 };

struct json_check {
	unsigned char open[JSON_CHECK_DEPTH]; /* '{' or '[' */
	unsigned depth;
	int state;                /* what may come next; see json_check.c */
	unsigned hex, tail;       /* digits of \u, and bytes of a character, that are to come */
	unsigned least;           /* of the next byte of a character: no overlong form */
	char word[8]; unsigned word_bytes; /* true, false, null */
	unsigned number;          /* where in a number */
	bool key, broken;
};

FILE *json_check_open(struct json_check *check);
/* After fclose: whether it was one whole document. */
bool json_check_whole(const struct json_check *check);
