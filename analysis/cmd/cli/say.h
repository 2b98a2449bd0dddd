/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the command tells people beside its results: always on stderr, always "cuflight: ...". Errors say what, why and
 * what to do. Contract: one thread; the text is printf's; say_quiet silences say_info alone, never errors.
 */
#ifndef CMD_SAY_H
#define CMD_SAY_H

#include <stdbool.h>

void say_quiet(bool quiet);
void say_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
