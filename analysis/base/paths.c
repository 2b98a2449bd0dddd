/* SPDX-License-Identifier: Apache-2.0 */
/* Last components, shell quoting, and what a program is called. */
#include "analysis/base/paths.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *path_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* True when the shell reads every character as itself. An empty text is no word without quotes. */
static int is_plain_word(const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=.,:/@%^";
	return *text && text[strspn(text, plain)] == 0;
}

void path_quote_shell(const char *path, char *out, size_t bytes)
{
	enum { LONGEST_STEP = 4 /* '\'' */, CLOSING = 2 /* quote and NUL */ };
	size_t used = 0;

	if (is_plain_word(path) || bytes <= CLOSING) {
		snprintf(out, bytes, "%s", path);
		return;
	}
	out[used++] = '\'';
	for (; *path && used + LONGEST_STEP + CLOSING <= bytes; path++) {
		if (*path == '\'') {
			memcpy(out + used, "'\\''", LONGEST_STEP);
			used += LONGEST_STEP;
		} else {
			out[used++] = *path;
		}
	}
	out[used++] = '\'';
	out[used] = 0;
}

/* ---- an interpreter's script among its options ---- */


/* One row for each interpreter. Lists of words are separated by blanks. */
static const struct interpreter {
	const char *name;     /* how the executable's name begins */
	const char *values;   /* options that take the next word */
	const char *names;    /* options after which the program's name follows */
	const char *code;     /* options after which code follows instead of a program */
	const char *commands; /* first words that come before the options of the program */
} interpreters[] = {
	{ "python", "-W -X --check-hash-based-pycs", "-m", "-c -", "" },
	{ "pypy", "-W -X --jit", "-m", "-c -", "" },
	{ "node",
	  "-r --require --import --loader --experimental-loader -C --conditions --env-file "
	  "--inspect-port --debug-port --test-name-pattern --watch-path --icu-data-dir",
	  "", "-e --eval -p --print -pe -", "inspect" },
	{ "deno", "--config -c --import-map --env-file", "", "-", "run serve" },
	{ "bun", "-r --preload --config -c --cwd", "", "-e --eval -p --print -", "run" },
	{ "java",
	  "-cp -classpath --class-path -p --module-path --upgrade-module-path --add-modules "
	  "--limit-modules --add-exports --add-opens --add-reads --patch-module "
	  "--enable-native-access --source",
	  "-jar -m --module", "", "" },
	{ "dotnet", "--depsfile --runtimeconfig --additionalprobingpath --fx-version", "", "",
	  "exec run" },
	{ "go", "-C -tags -ldflags -gcflags -asmflags -mod -modfile -overlay -p -exec", "", "",
	  "run" },
	{ "ruby", "-I -r -C -E -x --encoding", "-S", "-e -", "" },
	{ "perl", "-I -M", "-S", "-e -E -", "" },
	{ "php", "-d -c -z", "-f", "-r -B -", "" },
	{ "lua", "-l -e", "", "-", "" },
	{ "luajit", "-l -e -b", "", "-", "" },
	{ "Rscript", "", "", "-e", "" },
	{ "bash", "-o -O --rcfile --init-file", "", "-c -", "" },
	{ "dash", "-o", "", "-c -", "" },
	{ "sh", "-o", "", "-c -", "" },
};

/* A version may follow the name: python3.11, python3.13t, nodejs, lua5.4. */
static const struct interpreter *interpreter_of(const char *exe)
{
	for (size_t i = 0; i < sizeof interpreters / sizeof *interpreters; i++) {
		size_t bytes = strlen(interpreters[i].name);
		/* javac and shutdown are none */
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

static bool is_listed(const char *list, const char *word)
{
	size_t bytes = word_bytes(word);

	for (; *list; list = next_word(list))
		if (word_bytes(list) == bytes && !strncmp(list, word, bytes))
			return true;
	return false;
}

/* The word that names the program; "": code was given on the command line, or there is none. */
static const char *named_word(const struct interpreter *interpreter, const char *cmdline)
{
	const char *word = next_word(cmdline);

	if (is_listed(interpreter->commands, word))
		word = next_word(word);
	while (*word == '-') {
		if (is_listed(interpreter->names, word))
			return next_word(word);
		if (is_listed(interpreter->code, word))
			return "";
		word = next_word(is_listed(interpreter->values, word) ? next_word(word) : word);
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

bool text_begins_with_any(const char *text, const char *const *starts, size_t count)
{
	for (size_t i = 0; text && i < count && starts[i]; i++)
		if (text_begins_with(text, starts[i]))
			return true;
	return false;
}

bool text_has_any(const char *text, const char *const *parts, size_t count)
{
	for (size_t i = 0; text && i < count && parts[i]; i++)
		if (strstr(text, parts[i]))
			return true;
	return false;
}
