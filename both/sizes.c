/* SPDX-License-Identifier: Apache-2.0 */
#include "both/sizes.h"

enum { DECIMAL_ONE = 1000000 }; /* part * unit has 60 bits at most */

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Bytes of a unit; 0: no such unit. */
static uint64_t read_unit(const char *text, size_t bytes)
{
	static const char letters[] = "kmgt";
	bool is_binary = bytes == 1 || (bytes && lower(text[1]) == 'i');
	uint64_t unit = 1;

	if (!bytes || (bytes == 1 && lower(*text) == 'b'))
		return 1;
	if (bytes > 3 || (bytes == 2 && !is_binary && lower(text[1]) != 'b') ||
	    (bytes == 3 && (!is_binary || lower(text[2]) != 'b')))
		return 0;
	for (size_t i = 0; letters[i]; i++) {
		unit *= is_binary ? 1024 : 1000;
		if (lower(*text) == letters[i])
			return unit;
	}
	return 0;
}

bool sizes_read(const char *text, size_t bytes, uint64_t *out)
{
	uint64_t whole = 0, part = 0, unit;
	uint32_t place = DECIMAL_ONE;
	size_t i = 0;
	bool has_decimals;

	for (; i < bytes && is_digit(text[i]); i++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(text[i] - '0'), &whole))
			return false;
	if (!i)
		return false;
	has_decimals = i + 1 < bytes && text[i] == '.' && is_digit(text[i + 1]);
	for (i += has_decimals; has_decimals && i < bytes && is_digit(text[i]); i++) {
		place /= 10;
		part += place * (uint64_t)(text[i] - '0');
	}
	while (i < bytes && (text[i] == ' ' || text[i] == '\t'))
		i++;
	unit = read_unit(text + i, bytes - i);
	if (!unit || (has_decimals && unit == 1) || __builtin_mul_overflow(whole, unit, &whole) ||
	    __builtin_add_overflow(whole, part * unit / DECIMAL_ONE, &whole))
		return false;
	*out = whole;
	return true;
}
