/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/recording/pack/secrets.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "interpose/abi/format.h"
#include "interpose/abi/secrets.h"

static bool is_name_part(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static bool is_token_part(char c)
{
	return is_name_part(c) || c == '/' || c == '+' || c == '=';
}

static bool starts_with(const char *text, size_t bytes, const char *word)
{
	return bytes >= strlen(word) && !strncasecmp(text, word, strlen(word));
}

/* True unless all of it is hidden already. */
static bool hide(char *text, size_t bytes)
{
	bool any = false;

	for (size_t i = 0; i < bytes; i++)
		any |= text[i] != '*';
	memset(text, '*', bytes);
	return any;
}

static bool is_secret_name(const char *name, size_t bytes)
{
	static const char *const words[] = { CUF_SECRET_NAMES };
	static const char *const pieces[] = { CUF_SECRET_PIECES };

	for (size_t at = 0; at < bytes; at++) {
		bool first = !at || !isalnum((unsigned char)name[at - 1]);

		for (size_t i = 0; i < sizeof words / sizeof *words; i++)
			if (starts_with(name + at, bytes - at, words[i]))
				return true;
		for (size_t i = 0; first && i < sizeof pieces / sizeof *pieces; i++) {
			size_t end = at + strlen(pieces[i]);

			if (starts_with(name + at, bytes - at, pieces[i]) &&
			    (end == bytes || !isalnum((unsigned char)name[end])))
				return true;
		}
	}
	return false;
}

/* Each of these returns the bytes that it handled at text; 0: it is something else. */

static size_t hide_token(char *text, size_t bytes, size_t *count)
{
	static const char *const heads[] = { CUF_SECRET_HEADS };

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		size_t head = strlen(heads[i]), end = head;

		if (!starts_with(text, bytes, heads[i]))
			continue;
		if (*text == '-') /* a key in PEM form: all of it */
			end = bytes;
		while (end < bytes && is_token_part(text[end]))
			end++;
		if (end - head < CUF_SECRET_LEAST_AFTER_HEAD)
			continue;
		*count += hide(text, end);
		return end;
	}
	return 0;
}

/* The user information of a URL, at "://". */
static size_t hide_user(char *text, size_t bytes, size_t *count)
{
	size_t at = 0, colon = 2;

	if (!starts_with(text, bytes, "://"))
		return 0;
	for (size_t i = 3; i < bytes && !strchr(" \t\n\"'<>`", text[i]); i++) {
		if (text[i] == '@')
			at = i;
		if (text[i] == ':' && colon == 2)
			colon = i;
	}
	if (!at)
		return 0;
	if (colon > at)
		colon = 2;
	*count += hide(text + colon + 1, at - colon - 1);
	return at;
}

/* A name, and the word behind it where the name is a secret's. */
static size_t hide_value(char *text, size_t bytes, bool named, size_t *count)
{
	size_t end = 0, value, stop;

	while (end < bytes && is_name_part(text[end]))
		end++;
	for (value = end; value < bytes && strchr("\"' \t:=", text[value]); value++)
		;
	for (stop = value; stop < bytes && !strchr(" \t\n\"'", text[stop]); stop++)
		;
	if (!named || !end || value == end || stop == value || !is_secret_name(text, end) ||
	    starts_with(text + value, stop - value, "--"))
		return end;
	*count += hide(text + value, stop - value);
	return stop;
}

size_t secrets_hide(char *text, size_t bytes, bool named)
{
	size_t count = 0;

	for (size_t at = 0; at < bytes;) {
		size_t done = hide_token(text + at, bytes - at, &count);

		if (!done)
			done = hide_user(text + at, bytes - at, &count);
		if (!done)
			done = hide_value(text + at, bytes - at, named, &count);
		at += done + !done;
	}
	return count;
}

/* Texts that a user or a program wrote; paths and names of functions are none. */
static bool has_words(unsigned type)
{
	return type == CUF_META_CMDLINE || type == CUF_META_ENV || type == CUF_META_NOTE ||
	       type == CUF_META_PHASE;
}

size_t secrets_hide_meta(void *meta, size_t bytes)
{
	size_t count = 0, at = 0;

	while (at + sizeof(struct cuf_meta) <= bytes) {
		char *record = (char *)meta + at;
		struct cuf_meta head;

		memcpy(&head, record, sizeof head);
		if (!head.type || head.bytes < sizeof head || head.bytes % 8 ||
		    head.bytes > bytes - at)
			break;
		if (has_words(head.type) && head.text_bytes <= head.bytes - sizeof head)
			count += secrets_hide(record + sizeof head, head.text_bytes,
					      head.type == CUF_META_CMDLINE ||
						      head.type == CUF_META_ENV);
		at += head.bytes;
	}
	return count;
}
