/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the name nearest to what was typed. Contract: pure; NULL when none is near. */
#pragma once

#include <stddef.h>

/*
 * The number of insertions, deletions, replacements and swaps of neighbours between two texts.
 * A text longer than 63 bytes is far from everything.
 */
unsigned suggest_distance(const char *a, const char *b);

const char *suggest_nearest(const char *typed, const char *const *names, size_t count);
