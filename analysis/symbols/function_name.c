/* SPDX-License-Identifier: Apache-2.0 */
/* One walk over a demangled name: brackets are skipped as a whole. */
#include "analysis/symbols/function_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
	ARGUMENTS_KEPT = 16, /* bytes of template arguments that are no burden */
	TYPE_MOST = 4096,    /* a longer return type is a recording that somebody made up */
};

/* An operator may look like a bracket; the longest comes first. */
static size_t operator_bytes(const char *text)
{
	static const char *const symbols[] = {
		"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "[]", "<", ">",
	};

	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
		if (!strncmp(text, symbols[i], strlen(symbols[i])))
			return strlen(symbols[i]);
	return 0;
}

static bool is_word_part(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* The bytes of "operator<<" and "operator unsigned long" at text; 0: it is none. */
static size_t operator_name(const char *name, const char *text)
{
	size_t bytes = strlen("operator");

	if (*text != 'o' || strncmp(text, "operator", bytes) ||
	    (text > name && is_word_part(text[-1])) || is_word_part(text[bytes]))
		return 0;
	if (text[bytes] == ' ')
		return bytes + strcspn(text + bytes, "(");
	return bytes + operator_bytes(text + bytes);
}

static bool opens(char c) { return c == '<' || c == '(' || c == '[' || c == '{'; }
static bool closes(char c) { return c == '>' || c == ')' || c == ']' || c == '}'; }

/* Behind the bracket that closes the one at text; NULL: none does. */
static const char *behind_bracket(const char *text)
{
	size_t depth = 0;

	for (; *text; text++) {
		if (*text == '-' && text[1] == '>')
			text++;
		else if (opens(*text))
			depth++;
		else if (closes(*text) && !--depth)
			return text + 1;
	}
	return NULL;
}

/* Behind the parameters at text, where a name goes on: "f(int) const::{lambda()#1}"; NULL: it ends
 * here. */
static const char *behind_parameters(const char *text)
{
	const char *end = behind_bracket(text);

	if (end && !strncmp(end, " const", 6))
		end += 6;
	return end && !strncmp(end, "::", 2) ? end : NULL;
}

/* What is in brackets and a part of the name: "(anonymous namespace)", Go's "(*T)", a lambda. */
static bool is_named_bracket(const char *name, const char *text)
{
	if (*text == '(')
		return !strncmp(text, "(anonymous namespace)", 21) ||
		       (text > name && text[-1] == '.' && text[1] == '*');
	return *text == '{' || *text == '[';
}

/* Behind the return type. */
static const char *behind_type(const char *name)
{
	const char *start = name;

	for (const char *at = name; at && *at && at < name + TYPE_MOST;) {
		size_t word = operator_name(name, at);
		if (word)
			at += word;
		else if (*at == '(' && !is_named_bracket(name, at))
			at = behind_parameters(at);
		else if (opens(*at))
			at = behind_bracket(at);
		else if (*at++ == ' ' && *at != '<' && *at != '[')
			start = at;
	}
	return start;
}

/* Where the type begins in Rust's "<&dyn core::ops::Fn() as ..>::call". */
static const char *behind_marks(const char *name)
{
	static const char *const marks[] = { "<", "&", "mut ", "dyn " };

	for (size_t i = 0; i < sizeof marks / sizeof *marks;)
		if (strncmp(name, marks[i], strlen(marks[i]))) {
			i++;
		} else {
			name += strlen(marks[i]);
			i = 0;
		}
	return name;
}

const char *function_name_start(const char *name)
{
	return behind_marks(behind_type(name));
}

struct name_output {
	char *text;
	size_t bytes, used;
};

static void put_part(struct name_output *out, const char *text, size_t bytes)
{
	if (bytes > out->bytes - 1 - out->used)
		bytes = out->bytes - 1 - out->used;
	memcpy(out->text + out->used, text, bytes);
	out->used += bytes;
	out->text[out->used] = 0;
}

/* The first of several arguments; their end where there is one. */
static const char *end_of_first(const char *text, const char *end)
{
	while (text < end) {
		if (*text == ',')
			return text;
		if (opens(*text)) {
			text = behind_bracket(text);
			if (!text)
				return end;
		} else {
			text++;
		}
	}
	return end;
}

/* "<Event, std::allocator<Event> >" as "<Event, ..>". */
static void put_arguments(struct name_output *out, const char *text, const char *end, size_t kept)
{
	const char *first = end_of_first(text + 1, end - 1);

	if ((size_t)(end - text) <= kept) {
		put_part(out, text, (size_t)(end - text));
	} else if (first < end - 1 && (size_t)(first - text) <= kept) {
		put_part(out, text, (size_t)(first - text));
		put_part(out, ", ..>", 5);
	} else {
		put_part(out, "<..>", 4);
	}
}

/* A part of a name, up to end. */
static void put_short(struct name_output *out, const char *text, const char *end, size_t kept)
{
	const char *name = text;

	while (text && text < end && out->used + 1 < out->bytes) {
		size_t word = operator_name(name, text);
		const char *next = text + 1;

		if (word) {
			put_part(out, text, word);
			text += word;
			continue;
		}
		if (*text == '(' && !is_named_bracket(name, text)) {
			text = behind_parameters(text);
			continue;
		}
		if (opens(*text))
			next = behind_bracket(text);
		if (!next || next > end)
			next = end;
		if (*text == '<')
			put_arguments(out, text, next, kept);
		else if (strncmp(text, "[abi:", 5))
			put_part(out, text, (size_t)(next - text));
		text = next;
	}
}

/* Of Rust's "<Session as Clone>" the type, in full: "Session". */
static const char *end_of_self(const char *text, const char *end)
{
	while (text < end && strncmp(text, " as ", 4)) {
		const char *next = opens(*text) ? behind_bracket(text) : text + 1;
		if (!next)
			return end;
		text = next;
	}
	return text < end ? text : end;
}

static void abridge(const char *name, size_t kept, struct name_output *out)
{
	const char *start = behind_type(name), *rest = NULL, *self;

	if (*start == '<')
		rest = behind_bracket(start);
	if (rest && !strncmp(rest, "::", 2)) {
		self = behind_marks(start);
		put_short(out, self, end_of_self(self, rest - 1), kept);
		start = rest;
	}
	put_short(out, start, start + strlen(start), kept);
	if (!out->used)
		put_part(out, name, strlen(name));
}

void function_name_short(const char *name, char *out, size_t bytes)
{
	struct name_output output = { out, bytes, 0 };

	*out = 0;
	abridge(name, ARGUMENTS_KEPT, &output);
}

/* Behind the first scope of a short name; NULL: it has none. */
static const char *behind_scope(const char *name)
{
	for (const char *at = name; at && *at;) {
		size_t word = operator_name(name, at);
		if (word)
			return NULL;
		if (at > name && !strncmp(at, "::", 2))
			return at + 2;
		at = opens(*at) ? behind_bracket(at) : at + 1;
	}
	return NULL;
}

void function_name_fit(const char *name, size_t columns, char *out, size_t bytes)
{
	struct name_output output = { out, bytes, 0 };
	const char *rest = out;

	function_name_short(name, out, bytes);
	if (strlen(out) <= columns)
		return;
	*out = 0;
	abridge(name, 0, &output);
	while (strlen(rest) + (rest > out ? 4 : 0) > columns) {
		const char *inner = behind_scope(rest);
		if (!inner)
			break;
		rest = inner;
	}
	if (rest > out + 4) {
		memmove(out + 4, rest, strlen(rest) + 1);
		memcpy(out, "..::", 4);
	} else if (rest > out) {
		memmove(out, rest, strlen(rest) + 1);
	}
}
