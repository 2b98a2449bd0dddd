/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 checked character by character: lengths, overlong forms, surrogates, the end of Unicode. */
#include "analysis/base/clean.h"

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

/* The code point of a character that clean_character accepted. */
static uint32_t code_point(const char *text, size_t length)
{
	uint32_t point = (unsigned char)*text;

	if (length > 1)
		point &= 0x7fu >> length;
	for (size_t i = 1; i < length; i++)
		point = point << 6 | ((unsigned char)text[i] & 0x3f);
	return point;
}

size_t clean_character(const char *text)
{
	/* by length: shorter forms of a smaller code point are not valid */
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *bytes = (const unsigned char *)text;
	size_t length = announced_length(bytes[0]);
	uint32_t point;

	if (!length)
		return 0;
	for (size_t i = 1; i < length; i++)
		if (bytes[i] >> 6 != 2)
			return 0;
	point = code_point(text, length);
	if (point < least[length] || point > 0x10ffff)
		return 0;
	if (point >= 0xd800 && point < 0xe000)
		return 0; /* surrogates */
	return length;
}

/* DEL and C1: terminals act on them, and a JSON writer does not escape them. */
static bool is_control_unescaped(uint32_t point)
{
	return point >= 0x7f && point < 0xa0;
}

/*
 * Characters without a glyph that change what stands around them: zero-width ones, marks that turn
 * the direction of a line (U+202E), separators of lines, tags. A path could look like another one.
 */
static bool is_invisible(uint32_t point)
{
	static const struct { uint32_t first, last; } ranges[] = {
		{ 0xad, 0xad },     { 0x34f, 0x34f },   { 0x61c, 0x61c },
		{ 0x115f, 0x1160 }, { 0x17b4, 0x17b5 }, { 0x180b, 0x180f },
		{ 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f },
		{ 0x3164, 0x3164 }, { 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff },
		{ 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb }, { 0xe0000, 0xe0fff },
	};
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		if (point >= ranges[i].first && point <= ranges[i].last)
			return true;
	return false;
}

static bool is_printable(const char *text, size_t length)
{
	uint32_t point;

	if (!length)
		return false;
	point = code_point(text, length);
	return point >= 0x20 && !is_control_unescaped(point) && !is_invisible(point);
}

/* Decoding resumes at the next byte after one that begins no character. */
static size_t step_over(size_t length)
{
	if (!length)
		return 1;
	return length;
}

/* Copies the characters that are fit, the replacement for others, and never half of one. */
static void copy_fit(char *out, size_t bytes, const char *text,
		     bool (*is_fit)(const char *character, size_t length), const char *replacement)
{
	size_t used = 0;

	while (*text) {
		size_t length = clean_character(text), take = length;
		const char *from = text;
		if (!is_fit(text, length)) {
			from = replacement;
			take = strlen(replacement);
		}
		if (used + take >= bytes)
			break;
		memcpy(out + used, from, take);
		used += take;
		text += step_over(length);
	}
	out[used] = 0;
}

static bool is_printable_ascii(const char *text, size_t length)
{
	return length == 1 && is_printable(text, length);
}

static bool is_for_json(const char *text, size_t length)
{
	return length && !is_control_unescaped(code_point(text, length));
}

void clean_terminal(char *out, size_t bytes, const char *text, bool ascii)
{
	copy_fit(out, bytes, text, ascii ? is_printable_ascii : is_printable, "?");
}

void clean_utf8(char *out, size_t bytes, const char *text)
{
	copy_fit(out, bytes, text, is_for_json, "\xef\xbf\xbd");
}

size_t clean_columns(const char *text)
{
	size_t columns = 0;
	for (; *text; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}
