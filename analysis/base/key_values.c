/* SPDX-License-Identifier: Apache-2.0 */
/* Searches line by line. The texts have a few hundred bytes, so no index is worth its cost. */
#include "analysis/base/key_values.h"

#include <stdlib.h>
#include <string.h>
#include "interpose/abi/format.h"

static const char *next_line(const char *text)
{
	const char *end = strchr(text, '\n');
	return end ? end + 1 : NULL;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

const char *key_value(const char *text, const char *key, size_t *bytes)
{
	size_t length = strlen(key);
	for (; text; text = next_line(text))
		if (!strncmp(text, key, length) && text[length] == '=') {
			*bytes = strcspn(text + length + 1, "\n");
			return text + length + 1;
		}
	return NULL;
}

/* Digits only: strtoull itself would accept a sign, blanks and what follows them. */
uint64_t key_number(const char *text, const char *key)
{
	size_t bytes;
	const char *value = key_value(text, key, &bytes);
	if (!value || !is_digit(*value))
		return CUF_UNKNOWN;
	return strtoull(value, NULL, 10);
}

bool key_is(const char *text, const char *key, const char *value)
{
	size_t bytes;
	const char *found = key_value(text, key, &bytes);
	return found && bytes == strlen(value) && !memcmp(found, value, bytes);
}

/* Skips lines of the family that are malformed; a later line may be fine. */
bool key_next_class(const char **at, const char *family, struct key_class *out)
{
	size_t length = strlen(family);
	for (const char *line = *at; line; line = next_line(line)) {
		char *end;
		if (strncmp(line, family, length) || line[length] != '.' ||
		    !is_digit(line[length + 1]))
			continue;
		out->class = strtoull(line + length + 1, &end, 10);
		if (*end != '=' || !is_digit(end[1]))
			continue;
		out->first = strtoull(end + 1, &end, 10);
		if (*end != ',' || !is_digit(end[1]))
			continue;
		out->second = strtoull(end + 1, &end, 10);
		*at = next_line(line);
		return true;
	}
	*at = NULL;
	return false;
}
