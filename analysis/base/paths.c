/* SPDX-License-Identifier: Apache-2.0 */
/* Last components and shell quoting. */
#include "analysis/base/paths.h"

#include <stdio.h>
#include <string.h>

const char *path_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* True when the shell reads every character as itself. An empty text is no word without quotes. */
static int is_plain_word(const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=.,:/@%^";
	return *text && text[strspn(text, plain)] == 0;
}

void path_quote_shell(const char *path, char *out, size_t bytes)
{
	enum { LONGEST_STEP = 4 /* '\'' */, CLOSING = 2 /* quote and NUL */ };
	size_t used = 0;

	if (is_plain_word(path) || bytes <= CLOSING) {
		snprintf(out, bytes, "%s", path);
		return;
	}
	out[used++] = '\'';
	for (; *path && used + LONGEST_STEP + CLOSING <= bytes; path++) {
		if (*path == '\'') {
			memcpy(out + used, "'\\''", LONGEST_STEP);
			used += LONGEST_STEP;
		} else {
			out[used++] = *path;
		}
	}
	out[used++] = '\'';
	out[used] = 0;
}
