/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads CUFLIGHT_OUTPUT, CUFLIGHT_OPTIONS and CUFLIGHT_DISABLE into struct cuf_options, driven by
 * abi/options.def.
 */
#include "interpose/platform/options.h"

#include <string.h>
#include "both/sizes.h"
#include "interpose/platform/say.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

struct cuf_options cuf_options = {
#define OPTION(name, type, def, min, max, unit, help) CUF_OPTION_DEFAULT_##type(name, def)
#define CUF_OPTION_DEFAULT_FLAG(name, def) .name = def,
#define CUF_OPTION_DEFAULT_COUNT(name, def) .name = def,
#define CUF_OPTION_DEFAULT_BYTES(name, def) .name = def,
#define CUF_OPTION_DEFAULT_CHOICE(name, def) .name = def,
#define CUF_OPTION_DEFAULT_PATH(name, def) .name = "",
#include "interpose/abi/options.def"
};

enum option_type { FLAG, COUNT, BYTES, CHOICE, PATH };

/* The table's "min" column is the list of words for a CHOICE, a number for every other type. */
#define OPTION_MIN_FLAG(min) min, NULL
#define OPTION_MIN_COUNT(min) min, NULL
#define OPTION_MIN_BYTES(min) min, NULL
#define OPTION_MIN_CHOICE(words) 0, words
#define OPTION_MIN_PATH(min) min, NULL

static const struct option {
	const char *name;
	enum option_type type;
	uint64_t min;
	const char *words;
	uint64_t max;
	void *value;
} table[] = {
#define OPTION(name, type, def, min, max, unit, help) \
	{ #name, type, OPTION_MIN_##type(min), max, &cuf_options.name },
#include "interpose/abi/options.def"
};

const char *cuf_environment_find(char **environment, const char *name)
{
	size_t length = strlen(name);

	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

/* One line on stderr about one key or pair; recording goes on with the default. */
static void report_setting(const char *what, const char *key, size_t key_bytes, const char *hint)
{
	CUF_TEXT(text, 512);

	cuf_text_add(&text, what);
	cuf_text_add(&text, " '");
	cuf_text_bytes(&text, key, key_bytes);
	cuf_text_add(&text, "' in CUFLIGHT_OPTIONS; ");
	cuf_text_add(&text, hint);
	cuf_say(&text);
}

/* ---- values ---- */

/* The index of a word in "first|second|third". */
static int read_word(const char *words, const char *text, size_t bytes, uint64_t *out)
{
	for (uint64_t index = 0; *words; index++) {
		size_t length = 0;

		while (words[length] && words[length] != '|')
			length++;
		if (length == bytes && !memcmp(words, text, bytes)) {
			*out = index;
			return 0;
		}
		words += length + (words[length] == '|');
	}
	return -1;
}

static int set_path(char *to, const char *text, size_t bytes)
{
	if (bytes >= CUF_OPTION_PATH_BYTES)
		return -1;
	memcpy(to, text, bytes);
	to[bytes] = 0;
	return 0;
}

static int option_set(const struct option *option, const char *text, size_t bytes)
{
	uint64_t value = 0;

	if (option->type == PATH)
		return set_path(option->value, text, bytes);
	if (option->type == CHOICE) {
		if (read_word(option->words, text, bytes, &value))
			return -1;
	} else if (!sizes_read(text, bytes, &value) || value < option->min || value > option->max) {
		return -1;
	}
	*(uint64_t *)option->value = value;
	return 0;
}

/* ---- the variables ---- */

/* People copy names from --help, where '_' is '-'. Both spellings are accepted. */
static int is_named(const struct option *option, const char *key, size_t bytes)
{
	if (strlen(option->name) != bytes)
		return 0;
	for (size_t i = 0; i < bytes; i++)
		if (option->name[i] != key[i] && !(option->name[i] == '_' && key[i] == '-'))
			return 0;
	return 1;
}

/* One "key=value" of CUFLIGHT_OPTIONS. A key without a value is a flag to set. */
static void read_pair(const char *pair, size_t bytes)
{
	const char *value = "1";
	size_t key = 0, value_bytes = 1;

	while (key < bytes && pair[key] != '=')
		key++;
	if (key < bytes) {
		value = pair + key + 1;
		value_bytes = bytes - key - 1;
	}
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		if (!is_named(&table[i], pair, key))
			continue;
		if (option_set(&table[i], value, value_bytes))
			report_setting("bad value", pair, bytes,
				       "using the default; see 'cuflight help run'");
		return;
	}
	report_setting("unknown option", pair, key, "ignored; see 'cuflight help run'");
}

void cuf_options_read(char **environment, int secure)
{
	const char *text = cuf_environment_find(environment, "CUFLIGHT_DISABLE");

	if (cuf_options.disabled || secure || (text && *text && strcmp(text, "0"))) {
		cuf_options.disabled = 1;
		return;
	}
	text = cuf_environment_find(environment, "CUFLIGHT_OUTPUT");
	if (text && set_path(cuf_options.output, text, strlen(text)))
		cuf_say_line("CUFLIGHT_OUTPUT is too long (1,023 bytes at most); "
			     "the recording goes to the current directory");
	if (cuf_sys(SYS_getcwd, (long)cuf_options.directory, sizeof cuf_options.directory, 0, 0, 0,
		    0) < 0 || cuf_options.directory[0] != '/')
		cuf_options.directory[0] = 0;
	text = cuf_environment_find(environment, "LD_PRELOAD");
	cuf_options.under_valgrind = text && strstr(text, "vgpreload_");
	text = cuf_environment_find(environment, "CUFLIGHT_OPTIONS");
	while (text && *text) {
		size_t bytes = 0;

		while (text[bytes] && text[bytes] != ':')
			bytes++;
		if (bytes)
			read_pair(text, bytes);
		text += bytes + (text[bytes] == ':');
	}
}

/* ---- file names ---- */

/* %q{VAR}: adds the variable's value. Returns how many bytes of the pattern follow the 'q'. */
static size_t expand_variable(const char *pattern, const struct cuf_name_parts *parts,
			      struct cuf_text *text)
{
	char name[128];
	size_t i = 0;

	if (*pattern != '{')
		return 0;
	for (pattern++; pattern[i] && pattern[i] != '}' && i + 1 < sizeof name; i++)
		name[i] = pattern[i];
	name[i] = 0;
	cuf_text_add(text, cuf_environment_find(parts->environment, name));
	return i + 1 + (pattern[i] == '}');
}

int cuf_options_expand(const char *pattern, const struct cuf_name_parts *parts, char *out,
		       unsigned out_bytes)
{
	struct cuf_text text = { out, 0, out_bytes };

	out[0] = 0;
	for (; *pattern; pattern++) {
		if (*pattern != '%' || !pattern[1]) {
			cuf_text_bytes(&text, pattern, 1);
			continue;
		}
		switch (*++pattern) {
		case 'p': cuf_text_number(&text, parts->pid); break;
		case 'h': cuf_text_add(&text, parts->host); break;
		case 'e': cuf_text_add(&text, parts->executable); break;
		case 'n': cuf_text_number(&text, parts->n); break;
		case 't': cuf_text_number(&text, parts->epoch_s); break;
		case 'q': pattern += expand_variable(pattern + 1, parts, &text); break;
		case '%': cuf_text_add(&text, "%"); break;
		default: cuf_text_bytes(&text, pattern - 1, 2); break;
		}
	}
	return text.used + 1 >= out_bytes ? -1 : 0;
}
