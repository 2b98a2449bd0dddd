/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 checked character by character: lengths, overlong forms, surrogates, the end of Unicode. */
#include "analysis/view/clean.h"

#include <stdint.h>
#include <string.h>

/* The length that the first byte announces; 0: it begins no character. */
static size_t announced_length(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >> 5 == 6)
		return 2;
	if (first >> 4 == 14)
		return 3;
	if (first >> 3 == 30)
		return 4;
	return 0;
}

size_t clean_character(const char *text)
{
	/* by length: shorter forms of a smaller code point are not valid */
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *bytes = (const unsigned char *)text;
	size_t length = announced_length(bytes[0]);
	uint32_t point = bytes[0];

	if (!length)
		return 0;
	if (length > 1)
		point &= 0x7fu >> length;
	for (size_t i = 1; i < length; i++) {
		if (bytes[i] >> 6 != 2)
			return 0;
		point = point << 6 | (bytes[i] & 0x3f);
	}
	if (point < least[length] || point > 0x10ffff)
		return 0;
	if (point >= 0xd800 && point < 0xe000)
		return 0; /* surrogates */
	return length;
}

/* C0, DEL and C1: terminals act on them. */
static bool is_control(const char *text, size_t length)
{
	const unsigned char *c = (const unsigned char *)text;

	if (length == 1)
		return c[0] < 0x20 || c[0] == 0x7f;
	return length == 2 && c[0] == 0xc2 && c[1] < 0xa0;
}

/* Decoding resumes at the next byte after one that begins no character. */
static size_t step_over(size_t length)
{
	if (!length)
		return 1;
	return length;
}

void clean_terminal(char *out, size_t bytes, const char *text, bool ascii)
{
	size_t used = 0;
	while (*text) {
		size_t length = clean_character(text);
		bool bad = !length || is_control(text, length) || (ascii && length > 1);
		const char *from = text;
		size_t take = length;
		if (bad) {
			from = "?";
			take = 1;
		}
		if (used + take >= bytes)
			break;
		memcpy(out + used, from, take);
		used += take;
		text += step_over(length);
	}
	out[used] = 0;
}

void clean_utf8(char *out, size_t bytes, const char *text)
{
	static const char replacement[] = "\xef\xbf\xbd";
	size_t used = 0;
	while (*text) {
		size_t length = clean_character(text), take = length;
		const char *from = text;
		if (!length) {
			from = replacement;
			take = 3;
		}
		if (used + take >= bytes)
			break;
		memcpy(out + used, from, take);
		used += take;
		text += step_over(length);
	}
	out[used] = 0;
}

size_t clean_columns(const char *text)
{
	size_t columns = 0;
	for (; *text; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}
