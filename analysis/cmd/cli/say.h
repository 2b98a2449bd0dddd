/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to people on stderr, next to the results on stdout. Each line begins with "cuflight: ".
 * An error reads "cannot X: reason" and ends with a hint. Contract: one thread; the text is
 * printf's; control characters in it are replaced, since paths may come from a hostile recording.
 * say_quiet silences say_info, never say_error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

void say_quiet(bool quiet);
void say_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The locale's character set is UTF-8: then a clean text may have more than ASCII. */
bool say_in_utf8(void);
void say_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The last line that such a command wrote to this file, without "cuflight: "; "": none. */
void say_last_line(int file, char *out, size_t bytes);
