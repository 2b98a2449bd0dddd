/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of foreign origin (paths, command lines, symbol names) made fit to print: valid
 * UTF-8, no control characters. Contract: pure; never allocates; out is always
 * NUL-terminated and never ends inside a character.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * For a terminal: what is not valid, not printable or not visible becomes '?'; with ascii, so
 * does every other character.
 */
void clean_terminal(char *out, size_t bytes, const char *text, bool ascii);
/*
 * For JSON: what is not valid UTF-8 becomes U+FFFD, and so do DEL and the C1 controls; those of C0
 * stay (the writer escapes them).
 */
void clean_utf8(char *out, size_t bytes, const char *text);
/* Length in bytes of the valid UTF-8 character at text; 0: none. */
size_t clean_character(const char *text);
/* Columns that a clean text takes on a terminal: one a character. */
size_t clean_columns(const char *text);
