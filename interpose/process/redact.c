/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errs on the side of hiding: a harmless value behind a name such as --auth is lost, a token is not
 * stored.
 */
#include "interpose/process/redact.h"

#include <string.h>
#include "interpose/platform/laws.h"

#define HIDDEN "***"

static int lower(int c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }

/* Ignores case; the word is in lower case. */
static bool contains(const char *text, size_t bytes, const char *word)
{
	size_t length = strlen(word);
	for (size_t from = 0; from + length <= bytes; from++) {
		size_t same = 0;
		while (same < length && lower(text[from + same]) == word[same])
			same++;
		if (same == length)
			return true;
	}
	return false;
}

bool cuf_redact_is_secret_name(const char *name, size_t bytes)
{
	static const char *const words[] = {
		"token", "secret", "passw", "api-key", "api_key", "apikey", "credential", "auth",
		"private-key", "private_key", "access-key", "access_key",
	};
	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		if (contains(name, bytes, words[i]))
			return true;
	return false;
}

bool cuf_redact_is_secret_value(const char *value, size_t bytes)
{
	static const char *const heads[] = {
		"hf_", "sk-", "ghp_", "gho_", "github_pat_", "xoxb-", "xoxp-", "akia", "ya29.",
			"eyj",
		"nvapi-", "glpat-", "bearer ",
	};
	for (unsigned i = 0; i < sizeof heads / sizeof *heads; i++)
		if (bytes > strlen(heads[i]) + 8 && contains(value, strlen(heads[i]), heads[i]))
			return true;
	return false;
}

/* The password in "scheme://user:password@host": where it starts, and *end. 0: there is none. */
static size_t find_url_password(const char *text, size_t bytes, size_t *end)
{
	for (size_t i = 0; i + 3 < bytes; i++) {
		size_t password = 0;
		if (memcmp(text + i, "://", 3))
			continue;
		for (size_t j = i + 3; j < bytes && text[j] != '/'; j++) {
			if (text[j] == ':' && !password)
				password = j + 1;
			if (text[j] == '@' && password) {
				*end = j;
				return password;
			}
		}
	}
	return 0;
}

void cuf_redact_argument(struct cuf_text *line, const char *argument, size_t bytes, bool *hide_next)
{
	const char *equals = memchr(argument, '=', bytes);
	size_t name = equals ? (size_t)(equals - argument) : bytes;
	size_t password, end = 0;
	bool is_hidden = *hide_next && bytes && *argument != '-';
	*hide_next = false;
	if (is_hidden || cuf_redact_is_secret_value(argument, bytes)) {
		cuf_text_add(line, HIDDEN);
		return;
	}
	if (equals && (cuf_redact_is_secret_name(argument, name) ||
		       cuf_redact_is_secret_value(equals + 1, bytes - name - 1))) {
		cuf_text_bytes(line, argument, name + 1);
		cuf_text_add(line, HIDDEN);
		return;
	}
	password = find_url_password(argument, bytes, &end);
	if (password) {
		cuf_text_bytes(line, argument, password);
		cuf_text_add(line, HIDDEN);
		cuf_text_bytes(line, argument + end, bytes - end);
		return;
	}
	cuf_text_bytes(line, argument, bytes);
	*hide_next = !equals && bytes > 1 && *argument == '-' &&
		cuf_redact_is_secret_name(argument, bytes);
}
