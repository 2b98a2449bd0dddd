/* SPDX-License-Identifier: Apache-2.0 */
/* Did you mean: the nearest of some names to what was typed. Contract: pure; NULL when nothing is near enough. */
#ifndef CMD_SUGGEST_H
#define CMD_SUGGEST_H

#include <stddef.h>

/* Insertions, deletions, replacements and swaps of neighbours between the two; texts beyond 63 bytes count as far. */
unsigned suggest_distance(const char *a, const char *b);
const char *suggest_nearest(const char *typed, const char *const *names, size_t count);

#endif
