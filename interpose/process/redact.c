/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a text once from left to right: URLs, token shapes, names and what follows them. */
#include "interpose/process/redact.h"

#include <string.h>
#include "interpose/abi/secrets.h"
#include "interpose/platform/laws.h"

#define HIDDEN "***"

static int lower(int c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }
static bool is_digit(int c) { return c >= '0' && c <= '9'; }
static bool is_letter(int c) { return lower(c) >= 'a' && lower(c) <= 'z'; }

/* What names are made of, and tokens. */
static bool is_name_part(int c)
{
	return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.';
}

static bool is_token_part(int c)
{
	return is_name_part(c) || c == '/' || c == '+' || c == '=';
}

/* Ignores case; the word is in lower case. */
static bool starts_with(const char *text, size_t bytes, const char *word)
{
	size_t length = strlen(word);

	for (size_t i = 0; i < length; i++)
		if (i == bytes || lower(text[i]) != word[i])
			return false;
	return true;
}

/* ---- names ---- */

/* Part of a name that is enough by itself. */
static bool contains_secret_word(const char *name, size_t bytes)
{
	static const char *const words[] = { CUF_SECRET_NAMES };

	for (size_t from = 0; from < bytes; from++)
		for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
			if (starts_with(name + from, bytes - from, words[i]))
				return true;
	return false;
}

/* Short words count only between separators: "key" is in "keyboard". */
static bool is_secret_piece(const char *piece, size_t bytes)
{
	static const char *const words[] = { CUF_SECRET_PIECES };

	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		if (bytes == strlen(words[i]) && starts_with(piece, bytes, words[i]))
			return true;
	return false;
}

bool cuf_redact_is_secret_name(const char *name, size_t bytes)
{
	size_t start = 0;

	if (contains_secret_word(name, bytes))
		return true;
	for (size_t i = 0; i <= bytes; i++) {
		if (i < bytes && (is_letter(name[i]) || is_digit(name[i])))
			continue;
		if (is_secret_piece(name + start, i - start))
			return true;
		start = i + 1;
	}
	return false;
}

/* ---- parts of a text: each returns how many bytes it handled, 0: none ---- */

/* A token that its issuer gave a recognisable beginning. */
static size_t hide_token(struct cuf_text *line, const char *text, size_t bytes)
{
	static const char *const heads[] = { CUF_SECRET_HEADS };

	for (unsigned i = 0; i < sizeof heads / sizeof *heads; i++) {
		size_t head = strlen(heads[i]), end = head;

		if (!starts_with(text, bytes, heads[i]))
			continue;
		if (*text == '-') /* a key in PEM form: all of it */
			end = bytes;
		while (end < bytes && is_token_part(text[end]))
			end++;
		if (end - head < CUF_SECRET_LEAST_AFTER_HEAD)
			continue;
		cuf_text_add(line, HIDDEN);
		return end;
	}
	return 0;
}

/* The user information of a URL, at "://". A password may contain '/' and '@'. */
static size_t hide_user_information(struct cuf_text *line, const char *text, size_t bytes)
{
	size_t end = 3, at = 0, colon = 0;

	if (!starts_with(text, bytes, "://"))
		return 0;
	for (; end < bytes && !strchr(" \t\n\"'<>`", text[end]); end++) {
		if (text[end] == '@')
			at = end;
		if (text[end] == ':' && !colon)
			colon = end + 1;
	}
	if (!at)
		return 0;
	cuf_text_bytes(line, text, colon && colon < at ? colon : 3);
	cuf_text_add(line, HIDDEN);
	return at;
}

/* A name, and all that follows it where the name is a secret's: "password": ..., Cookie: ... */
static size_t copy_name(struct cuf_text *line, const char *text, size_t bytes)
{
	size_t end = 0, value;

	while (end < bytes && is_name_part(text[end]))
		end++;
	if (!end)
		return 0;
	for (value = end; value < bytes && strchr("\"' \t:=", text[value]); value++)
		;
	if (value == end || value == bytes || !cuf_redact_is_secret_name(text, end)) {
		cuf_text_bytes(line, text, end);
		return end;
	}
	cuf_text_bytes(line, text, value);
	cuf_text_add(line, HIDDEN);
	return bytes;
}

void cuf_redact_text(struct cuf_text *line, const char *text, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		size_t done = hide_token(line, text + at, bytes - at);

		if (!done)
			done = hide_user_information(line, text + at, bytes - at);
		if (!done)
			done = copy_name(line, text + at, bytes - at);
		if (!done) {
			cuf_text_bytes(line, text + at, 1);
			done = 1;
		}
		at += done;
	}
}

/* ---- arguments ---- */

/* Long enough, and of more than one sort of characters: no word, no number, no path. */
static bool looks_like_password(const char *text, size_t bytes)
{
	enum { LEAST = 6 };
	bool has_letter = false, has_digit_or_capital = false;

	for (size_t i = 0; i < bytes; i++) {
		has_letter |= is_letter(text[i]);
		has_digit_or_capital |= is_digit(text[i]) || (text[i] >= 'A' && text[i] <= 'Z');
		if (text[i] == '/' || text[i] == '.')
			return false;
	}
	return bytes >= LEAST && has_letter && has_digit_or_capital;
}

/* Compares a text that has no terminator. */
static bool is_word(const char *text, size_t bytes, const char *word)
{
	return bytes == strlen(word) && !memcmp(text, word, bytes);
}

static enum cuf_redact_next next_after(const char *argument, size_t bytes)
{
	if (bytes < 2 || *argument != '-' || memchr(argument, '=', bytes))
		return CUF_REDACT_NOTHING;
	if (is_word(argument, bytes, "-u") || is_word(argument, bytes, "--user"))
		return CUF_REDACT_USER;
	if (is_word(argument, bytes, "-p"))
		return CUF_REDACT_IF_PASSWORD;
	return cuf_redact_is_secret_name(argument, bytes) ? CUF_REDACT_VALUE : CUF_REDACT_NOTHING;
}

/* True when the argument before this one tells that it is a secret. "--next" is an option. */
static bool is_hidden(enum cuf_redact_next why, const char *argument, size_t bytes)
{
	if (why == CUF_REDACT_IF_PASSWORD)
		return looks_like_password(argument, bytes);
	return why == CUF_REDACT_VALUE && bytes && !starts_with(argument, bytes, "--");
}

void cuf_redact_argument(struct cuf_text *line, const char *argument, size_t bytes,
			 enum cuf_redact_next *next)
{
	enum cuf_redact_next why = *next;
	const char *colon = memchr(argument, ':', bytes);

	*next = CUF_REDACT_NOTHING;
	if (is_hidden(why, argument, bytes)) {
		cuf_text_add(line, HIDDEN);
	} else if (why == CUF_REDACT_USER && colon) {
		cuf_text_bytes(line, argument, (size_t)(colon + 1 - argument));
		cuf_text_add(line, HIDDEN);
	} else if (bytes > 2 && starts_with(argument, bytes, "-p") &&
		   looks_like_password(argument + 2, bytes - 2)) {
		cuf_text_add(line, "-p" HIDDEN);
	} else {
		cuf_redact_text(line, argument, bytes);
		*next = next_after(argument, bytes);
	}
}
