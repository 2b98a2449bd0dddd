/* SPDX-License-Identifier: Apache-2.0 */
/* Finds an interpreter's script among its options. */
#include "analysis/base/program_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "analysis/base/paths.h"

/* name: how the executable's name begins. with_value: letters of options that take the next word.
 * named: the option after which the program's name follows; NULL: the first word that is no
 * option. */
static const struct interpreter {
	const char *name, *with_value, *named;
} interpreters[] = {
	{ "python", "WX", "-m" }, { "pypy", "WX", "-m" },   { "node", "r", NULL },
	{ "java", "", "-jar" },	  { "ruby", "Ir", NULL },   { "perl", "I", NULL },
	{ "php", "d", NULL },	  { "bash", "", NULL },	    { "sh", "", NULL },
};

static const struct interpreter *interpreter_of(const char *exe)
{
	for (size_t i = 0; i < sizeof interpreters / sizeof *interpreters; i++) {
		size_t bytes = strlen(interpreters[i].name);
		/* python3.11 is one, nodejs too; javac and shutdown are not */
		if (!strncmp(exe, interpreters[i].name, bytes) &&
		    (strspn(exe + bytes, ".0123456789tjs") == strlen(exe + bytes)))
			return &interpreters[i];
	}
	return NULL;
}

static size_t word_bytes(const char *text)
{
	return strcspn(text, " ");
}

static const char *next_word(const char *text)
{
	text += word_bytes(text);
	return text + strspn(text, " ");
}

static bool takes_a_value(const struct interpreter *interpreter, const char *word)
{
	return word_bytes(word) == 2 && strchr(interpreter->with_value, word[1]);
}

static bool is_word(const char *text, const char *word)
{
	return word && word_bytes(text) == strlen(word) && !strncmp(text, word, strlen(word));
}

/* The word that names the program; "": code was given on the command line, or there is none. */
static const char *named_word(const struct interpreter *interpreter, const char *cmdline)
{
	const char *word = next_word(cmdline);

	while (*word == '-') {
		if (is_word(word, interpreter->named))
			return next_word(word);
		if (is_word(word, "-c") || is_word(word, "-e") || is_word(word, "-"))
			return "";
		word = next_word(takes_a_value(interpreter, word) ? next_word(word) : word);
	}
	return word;
}

void program_name(const char *exe, const char *cmdline, char *out, size_t bytes)
{
	const char *base = path_base_name(exe);
	const struct interpreter *interpreter = interpreter_of(base);
	const char *word = interpreter ? named_word(interpreter, cmdline) : "";
	size_t length = word_bytes(word);

	for (const char *slash = word; slash < word + length;)
		if (*slash++ == '/' && slash < word + length) {
			length -= (size_t)(slash - word);
			word = slash;
		}
	if (length)
		snprintf(out, bytes, "%.*s", (int)(length < 60 ? length : 60), word);
	else
		snprintf(out, bytes, "%s", *base ? base : "?");
}
