/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/symbols/frameworks.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct word { const char *at; size_t bytes; };

static struct word next_word(const char **at)
{
	struct word word;

	*at += strspn(*at, " ");
	word = (struct word){ *at, strcspn(*at, " ") };
	*at += word.bytes;
	return word;
}

static bool is(struct word word, const char *text)
{
	return word.bytes == strlen(text) && !memcmp(word.at, text, word.bytes);
}

static bool is_any(struct word word, const char *const *texts)
{
	for (; *texts; texts++)
		if (is(word, *texts))
			return true;
	return false;
}

/* "--model=NAME": what is behind the sign; bytes 0: another word. */
static struct word value_in(struct word word, const char *const *options)
{
	const char *equals = memchr(word.at, '=', word.bytes);
	struct word name = { word.at, equals ? (size_t)(equals - word.at) : 0 };

	if (!equals || !is_any(name, options))
		return (struct word){ word.at, 0 };
	return (struct word){ equals + 1, word.bytes - name.bytes - 1 };
}

static bool ends_with(struct word word, const char *end)
{
	return word.bytes >= strlen(end) &&
	       !memcmp(word.at + word.bytes - strlen(end), end, strlen(end));
}

/* python -m is a module; llama-server -m is a model. */
static bool is_model_letter(struct word program, struct word word)
{
	const char *slash = memrchr(program.at, '/', program.bytes);
	const char *base = slash ? slash + 1 : program.at;

	return is(word, "-m") && strncmp(base, "python", 6) != 0;
}

void model_name(const char *cmdline, char *out, size_t bytes)
{
	static const char *const options[] = { "--model", "--model-path", "--model_path",
		"--model-id", "--model_id", "--model-name-or-path", "--model_name_or_path",
		"--hf-repo", "-hf", NULL };
	static const char *const servers[] = { "vllm", "trtllm-serve", "ollama", NULL };
	static const char *const verbs[] = { "serve", "run", NULL };
	struct word program = next_word(&cmdline), before = program, last = { cmdline, 0 };

	*out = 0;
	for (struct word word; (word = next_word(&cmdline)).bytes; last = before, before = word) {
		struct word model = value_in(word, options);
		bool served = last.bytes && is_any(before, verbs) &&
			      (is_any(last, servers) || ends_with(last, "/vllm") ||
			       ends_with(last, "/ollama"));

		if (!model.bytes && *word.at != '-' &&
		    (is_any(before, options) || is_model_letter(program, before) || served))
			model = word;
		if (model.bytes) {
			snprintf(out, bytes, "%.*s", (int)model.bytes, model.at);
			return;
		}
	}
}
