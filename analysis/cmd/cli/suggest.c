/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distance (optimal string alignment), and the nearest name by it. */
#include "analysis/cmd/cli/suggest.h"

#include <stdbool.h>
#include <string.h>

enum { SUGGEST_BYTES = 63, SUGGEST_FAR = 999 };

static unsigned least_of(unsigned a, unsigned b, unsigned c)
{
	if (a <= b && a <= c)
		return a;
	return b < c ? b : c;
}

/* Insertion, deletion, substitution and the swap of two neighbours cost 1 each. */
unsigned suggest_distance(const char *a, const char *b)
{
	unsigned rows[SUGGEST_BYTES + 1][SUGGEST_BYTES + 1];
	size_t a_bytes = strlen(a), b_bytes = strlen(b);

	if (a_bytes > SUGGEST_BYTES || b_bytes > SUGGEST_BYTES)
		return SUGGEST_FAR;
	for (size_t i = 0; i <= a_bytes; i++)
		for (size_t j = 0; j <= b_bytes; j++) {
			if (!i || !j) {
				rows[i][j] = (unsigned)(i + j);
				continue;
			}
			rows[i][j] = least_of(rows[i - 1][j] + 1, rows[i][j - 1] + 1,
					      rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
				       a[i - 2] == b[j - 1];
			if (swapped && rows[i - 2][j - 2] + 1 < rows[i][j])
				rows[i][j] = rows[i - 2][j - 2] + 1;
		}
	return rows[a_bytes][b_bytes];
}

/* NULL when no name is near enough. Of equally near names the first one wins. */
const char *suggest_nearest(const char *typed, const char *const *names, size_t count)
{
	const char *best = NULL;
	size_t bytes = strlen(typed);
	/* a third of the letters may be wrong */
	unsigned best_distance = 1 + (unsigned)(bytes + 1) / 3;

	for (size_t i = 0; i < count; i++) {
		unsigned distance = suggest_distance(typed, names[i]);
		/* the beginning of a name is near it: rep -> report */
		if (bytes >= 2 && !strncmp(typed, names[i], bytes) && distance >= best_distance)
			distance = best_distance - 1;
		if (distance < best_distance) {
			best = names[i];
			best_distance = distance;
		}
	}
	return best;
}
