/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a text once from left to right: words, token shapes, URLs, names and what follows them. */
#include "both/secrets.h"

#include <string.h>

/* Words of the tables are in lower case; comparison ignores case. */

/* A part of a name that is enough by itself. Tokens are also what a model counts. */
static const char token_name[] = "token";
static const char *const names[] = {
	token_name, "secret", "passw", "passphrase", "api-key", "api_key", "apikey", "credential",
	"auth", "private-key", "private_key", "access-key", "access_key", "cookie", "signature",
	"login",
};
/* Short words, which count only between separators: "key" is in "keyboard". */
static const char *const pieces[] = { "pass", "pwd", "pw", "key", "sig", "session" };
/* How tokens begin whose issuer gave them a recognisable beginning. */
static const char *const heads[] = {
	"hf_", "sk-", "sk_live_", "rk_live_", "ghp_", "gho_", "ghs_", "ghu_", "ghr_",
	"github_pat_", "xoxa-", "xoxb-", "xoxp-", "xoxs-", "akia", "asia", "aiza", "ya29.",
	"eyj", "nvapi-", "glpat-", "npm_", "pypi-", "dckr_pat_", "-----begin",
};
/* What stands between "Authorization:" and the secret, and often without a header's name. */
static const char *const schemes[] = { "bearer", "basic" };
/* Options named after a service, which take its key where they take a value. */
static const char *const services[] = { "--wandb", "--openai", "--anthropic", "--huggingface" };

enum { LEAST_AFTER_HEAD = 8, LEAST_PASSWORD = 6, LONGEST_NUMBER = 12 };

#define COUNT(table) (sizeof(table) / sizeof *(table))

static int lower(int c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }
static bool is_digit(int c) { return c >= '0' && c <= '9'; }
static bool is_letter(int c) { return lower(c) >= 'a' && lower(c) <= 'z'; }
static bool is_any(int c, const char *set) { return c && memchr(set, c, strlen(set)); }
static bool is_blank(int c) { return is_any(c, " \t\n\r"); }

/* What names are made of, and tokens. */
static bool is_name_part(int c) { return is_letter(c) || is_digit(c) || is_any(c, "_-."); }
static bool is_token_part(int c) { return is_name_part(c) || is_any(c, "/+="); }

static bool starts_with(const char *text, size_t bytes, const char *word)
{
	for (size_t i = 0; word[i]; i++)
		if (i == bytes || lower(text[i]) != word[i])
			return false;
	return true;
}

/* All of the text is one of the words. */
static bool is_one_of(const char *text, size_t bytes, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes == strlen(words[i]) && starts_with(text, bytes, words[i]))
			return true;
	return false;
}

static bool is_word(const char *text, size_t bytes, const char *word)
{
	return is_one_of(text, bytes, &word, 1);
}

/* At "token" in a name: "tokenizer" is none, and "tokens" and "token-id" may be numbers. */
static enum secrets_next at_token(const char *rest, size_t bytes)
{
	if (starts_with(rest, bytes, "iz"))
		return SECRETS_NOTHING;
	return bytes ? SECRETS_UNLESS_NUMBER : SECRETS_VALUE;
}

static bool has_piece(const char *name, size_t bytes)
{
	size_t start = 0;

	for (size_t i = 0; i <= bytes; i++) {
		if (i < bytes && (is_letter(name[i]) || is_digit(name[i])))
			continue;
		if (is_one_of(name + start, i - start, pieces, COUNT(pieces)))
			return true;
		start = i + 1;
	}
	return false;
}

/* What the value of this name is. */
static enum secrets_next value_of(const char *name, size_t bytes)
{
	enum secrets_next found = has_piece(name, bytes) ? SECRETS_VALUE : SECRETS_NOTHING;

	for (size_t from = 0; from < bytes && found != SECRETS_VALUE; from++)
		for (size_t i = 0; i < COUNT(names); i++) {
			size_t end = from + strlen(names[i]);
			enum secrets_next now = SECRETS_VALUE;

			if (!starts_with(name + from, bytes - from, names[i]))
				continue;
			if (names[i] == token_name)
				now = at_token(name + end, bytes - end);
			if (now)
				found = now;
		}
	return found;
}

/* A count: "8192", "0.5", "8k". */
static bool is_number(const char *text, size_t bytes)
{
	if (bytes > 1 && is_any(lower(text[bytes - 1]), "kmg"))
		bytes--;
	for (size_t i = 0; i < bytes; i++)
		if (!is_digit(text[i]) && text[i] != '.' && (i || text[i] != '-'))
			return false;
	return bytes && bytes <= LONGEST_NUMBER && is_digit(text[bytes - 1]);
}

/* The same where JSON may go on behind it: "64}", "64, \"stop\": []}". */
static bool is_number_of_json(const char *text, size_t bytes)
{
	size_t end = 0;

	while (end < bytes && !is_blank(text[end]) && !is_any(text[end], ",}]"))
		end++;
	return is_number(text, end);
}

bool secrets_is_name(const char *name, size_t name_bytes, const char *value, size_t value_bytes)
{
	enum secrets_next what = value_of(name, name_bytes);

	return what == SECRETS_VALUE ||
	       (what == SECRETS_UNLESS_NUMBER && !is_number(value, value_bytes));
}

/* Long enough, and of more than one sort of characters: no word and no number. */
static bool is_mixed(const char *text, size_t bytes)
{
	bool has_letter = false, has_digit_or_capital = false;

	for (size_t i = 0; i < bytes; i++) {
		has_letter |= is_letter(text[i]);
		has_digit_or_capital |= is_digit(text[i]) || text[i] != lower(text[i]);
	}
	return bytes >= LEAST_PASSWORD && has_letter && has_digit_or_capital;
}

/* No path either. */
static bool looks_like_password(const char *text, size_t bytes)
{
	return is_mixed(text, bytes) && !memchr(text, '/', bytes) && !memchr(text, '.', bytes);
}

/* ---- parts of a text ----
 * Each looks at the text from `at` on, which has `bytes` left. It returns how many of them it has
 * handled, 0: none, and what of them is a secret. */

static size_t word_bytes(const char *text, size_t bytes)
{
	size_t end = 0;

	while (end < bytes && !is_blank(text[end]))
		end++;
	return end;
}

/* A token that its issuer gave a recognisable beginning. */
static size_t token(const char *text, size_t bytes, struct secret *found)
{
	for (size_t i = 0; i < COUNT(heads); i++) {
		size_t head = strlen(heads[i]), end = head;

		if (!starts_with(text, bytes, heads[i]))
			continue;
		if (*text == '-') /* a key in PEM form: all of it */
			end = bytes;
		while (end < bytes && is_token_part(text[end]))
			end++;
		if (end - head < LEAST_AFTER_HEAD)
			continue;
		*found = (struct secret){ 0, end };
		return end;
	}
	return 0;
}

/* The user information of a URL, at "://". A password may contain '/' and '@'. *without: how many
 * bytes were searched in vain, so that a hostile text is searched once. */
static size_t user_information(const char *text, size_t bytes, struct secret *found,
			       size_t *without)
{
	size_t end = 3, at = 0, from = 3;

	if (!starts_with(text, bytes, "://"))
		return 0;
	for (; end < bytes && !is_blank(text[end]) && !is_any(text[end], "\"'<>`"); end++) {
		if (text[end] == '@')
			at = end;
		if (text[end] == ':' && from == 3)
			from = end + 1;
	}
	*without = end;
	if (!at)
		return 0;
	if (from > at)
		from = 3;
	*found = (struct secret){ from, at - from };
	return at;
}

/* "Bearer TOKEN". */
static size_t scheme(const char *text, size_t bytes, struct secret *found)
{
	for (size_t i = 0; i < COUNT(schemes); i++) {
		size_t from = strlen(schemes[i]), end;

		if (!starts_with(text, bytes, schemes[i]) || from == bytes ||
		    !is_blank(text[from]))
			continue;
		while (from < bytes && is_blank(text[from]))
			from++;
		for (end = from; end < bytes && is_token_part(text[end]);)
			end++;
		if (!is_mixed(text + from, end - from))
			continue;
		*found = (struct secret){ from, end - from };
		return end;
	}
	return 0;
}

/* A name, and what follows where the name is a secret's: "password": ..., Cookie: ... */
static size_t named(enum secrets_kind kind, const char *text, size_t bytes, struct secret *found)
{
	static const char *const separators[] = { "\"' \t:=", "\"':=", "\"' \t:=" };
	size_t end = 0, value, stop = bytes;
	bool is_assigned = false;

	while (end < bytes && is_name_part(text[end]))
		end++;
	if (!end)
		return 0;
	for (value = end; value < bytes && is_any(text[value], separators[kind]); value++)
		is_assigned |= is_any(text[value], ":=");
	if (value == end || value == bytes || !value_of(text, end))
		return end;
	if (kind == SECRETS_JOINED)
		stop = value + word_bytes(text + value, bytes - value);
	if (kind == SECRETS_WORDS)
		for (stop = value; stop < bytes && !is_any(text[stop], "\"' \t\n:=");)
			stop++;
	if (!secrets_is_name(text, end, text + value, stop - value) ||
	    (is_any(text[end], "\"'") && value_of(text, end) == SECRETS_UNLESS_NUMBER &&
	     is_number_of_json(text + value, stop - value)) ||
	    (kind == SECRETS_WORDS &&
	     (!is_assigned || !looks_like_password(text + value, stop - value))))
		return end;
	*found = (struct secret){ value, stop - value };
	return stop;
}

/* ---- words that decide about the next one ---- */

/* "Authorization:", "--password=" and "{\"key\":" end with a name whose value is the next word. */
static enum secrets_next after_name(const char *word, size_t bytes)
{
	size_t end = bytes, start;
	bool is_assigned = false;

	for (; end && is_any(word[end - 1], "\"':="); end--)
		is_assigned |= is_any(word[end - 1], ":=");
	for (start = end; start && is_name_part(word[start - 1]);)
		start--;
	return is_assigned ? value_of(word + start, end - start) : SECRETS_NOTHING;
}

static enum secrets_next next_after(enum secrets_kind kind, const char *word, size_t bytes)
{
	enum secrets_next next = after_name(word, bytes);

	if (next)
		return next;
	if (bytes < 2 || memchr(word, '=', bytes))
		return SECRETS_NOTHING;
	if (*word != '-') /* within one argument, "password X" */
		return kind == SECRETS_JOINED && value_of(word, bytes) ?
			       SECRETS_IF_PASSWORD :
			       SECRETS_NOTHING;
	if (is_word(word, bytes, "-u") || is_word(word, bytes, "--user"))
		return SECRETS_USER;
	if (is_word(word, bytes, "-p") || is_one_of(word, bytes, services, COUNT(services)))
		return SECRETS_IF_PASSWORD;
	return value_of(word, bytes);
}

/* Whether the word before this one makes it a secret. "--next" is an option. */
static bool is_told(enum secrets_next why, const char *word, size_t bytes, struct secret *found)
{
	const char *colon = why == SECRETS_USER ? memchr(word, ':', bytes) : NULL;
	size_t from = colon ? (size_t)(colon + 1 - word) : 0;

	*found = (struct secret){ from, bytes - from };
	if (why == SECRETS_IF_PASSWORD)
		return looks_like_password(word, bytes);
	if (why == SECRETS_UNLESS_NUMBER && is_number_of_json(word, bytes))
		return false;
	if (why == SECRETS_VALUE || why == SECRETS_UNLESS_NUMBER)
		return bytes && !starts_with(word, bytes, "--");
	if (colon)
		return true;
	*found = (struct secret){ 2, bytes - 2 };
	return bytes > 2 && starts_with(word, bytes, "-p") &&
	       looks_like_password(word + 2, bytes - 2);
}

/* At the start of a word, which is the whole of an argument. Returns the bytes of a secret word. */
static size_t secret_word(struct secrets_search *search, struct secret *found)
{
	const char *word = search->text + search->at;
	size_t left = search->bytes - search->at;
	size_t bytes = search->kind == SECRETS_ARGUMENT ? left : word_bytes(word, left);
	enum secrets_next why = search->next;

	search->next = SECRETS_NOTHING;
	if (why == SECRETS_VALUE && search->kind == SECRETS_JOINED &&
	    is_one_of(word, bytes, schemes, COUNT(schemes))) {
		search->next = SECRETS_VALUE;
		return 0;
	}
	if (is_told(why, word, bytes, found))
		return bytes;
	*found = (struct secret){ 0, 0 };
	search->next = next_after(search->kind, word, bytes);
	return 0;
}

static bool starts_word(const struct secrets_search *search)
{
	if (search->kind == SECRETS_WORDS || is_blank(search->text[search->at]))
		return false;
	return !search->at ||
	       (search->kind == SECRETS_JOINED && is_blank(search->text[search->at - 1]));
}

/* The part of the text at `at`; 0: it is one character of nothing. */
static size_t part(struct secrets_search *search, struct secret *found)
{
	const char *text = search->text + search->at;
	size_t bytes = search->bytes - search->at, done = 0;

	if (starts_word(search))
		done = secret_word(search, found);
	if (!done)
		done = token(text, bytes, found);
	if (!done && search->at >= search->no_user_before) {
		size_t without = 0;

		done = user_information(text, bytes, found, &without);
		search->no_user_before = search->at + without;
	}
	if (!done && (done = scheme(text, bytes, found)))
		search->next = SECRETS_NOTHING;
	if (!done)
		done = named(search->kind, text, bytes, found);
	return done;
}

static bool is_hidden_already(const char *text, size_t bytes)
{
	return !bytes || starts_with(text, bytes, "***");
}

bool secrets_find(struct secrets_search *search, struct secret *found)
{
	/* An empty argument is a word, too. */
	if (!search->bytes && search->kind == SECRETS_ARGUMENT)
		search->next = SECRETS_NOTHING;
	while (search->at < search->bytes) {
		size_t start = search->at, done;

		*found = (struct secret){ 0, 0 };
		done = part(search, found);
		search->at += done ? done : 1;
		found->at += start;
		if (!is_hidden_already(search->text + found->at, found->bytes))
			return true;
	}
	return false;
}
