/* SPDX-License-Identifier: Apache-2.0 */
/* CUFLIGHT_OUTPUT, CUFLIGHT_OPTIONS and CUFLIGHT_DISABLE to struct cuf_options, driven by abi/options.def. */
#include "interpose/platform/options.h"

#include <string.h>
#include "interpose/platform/say.h"
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
#define OPTION(name, type, def, min, max, unit, help) { #name, type, OPTION_MIN_##type(min), max, &cuf_options.name },
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

static void complain(const char *what, const char *key, size_t key_bytes, const char *advice)
{
	CUF_TEXT(text, 512);
	cuf_text_add(&text, what);
	cuf_text_add(&text, " '");
	cuf_text_bytes(&text, key, key_bytes);
	cuf_text_add(&text, "' in CUFLIGHT_OPTIONS; ");
	cuf_text_add(&text, advice);
	cuf_say(&text);
}

/* A number with an optional KiB, MiB, GiB (or K, M, G). 0 on success. */
static int read_number(const char *s, size_t bytes, uint64_t *out)
{
	uint64_t value = 0;
	size_t i = 0;
	unsigned shift = 0;
	for (; i < bytes && s[i] >= '0' && s[i] <= '9'; i++) {
		if (value > UINT64_MAX / 10 - 1)
			return -1;
		value = value * 10 + (uint64_t)(s[i] - '0');
	}
	if (!i)
		return -1;
	if (i < bytes) {
		shift = s[i] == 'K' ? 10 : s[i] == 'M' ? 20 : s[i] == 'G' ? 30 : 0;
		i++;
		if (!shift || (i < bytes && (bytes - i != 2 || s[i] != 'i' || s[i + 1] != 'B')) || value >> (63 - shift))
			return -1;
	}
	*out = value << shift;
	return 0;
}

static int read_word(const char *words, const char *s, size_t bytes, uint64_t *out)
{
	for (uint64_t index = 0; *words; index++) {
		size_t length = 0;
		while (words[length] && words[length] != '|')
			length++;
		if (length == bytes && !memcmp(words, s, bytes)) {
			*out = index;
			return 0;
		}
		words += length + (words[length] == '|');
	}
	return -1;
}

static int option_set(const struct option *option, const char *s, size_t bytes)
{
	uint64_t value = 0;
	if (option->type == PATH) {
		if (bytes >= CUF_OPTION_PATH_BYTES)
			return -1;
		memcpy(option->value, s, bytes);
		((char *)option->value)[bytes] = 0;
		return 0;
	}
	if (option->type == CHOICE ? read_word(option->words, s, bytes, &value) : read_number(s, bytes, &value))
		return -1;
	if (option->type != CHOICE && (value < option->min || value > option->max))
		return -1;
	*(uint64_t *)option->value = value;
	return 0;
}

static void read_pair(const char *s, size_t bytes)
{
	size_t key = 0;
	while (key < bytes && s[key] != '=')
		key++;
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		const char *value = key < bytes ? s + key + 1 : "1"; /* a bare flag means yes */
		if (strlen(table[i].name) != key || memcmp(table[i].name, s, key))
			continue;
		if (option_set(&table[i], value, key < bytes ? bytes - key - 1 : 1))
			complain("bad value", s, bytes, "the default stays; see 'cuflight help run'");
		return;
	}
	complain("unknown option", s, key, "it is ignored; see 'cuflight help run'");
}

void cuf_options_read(char **environment, int secure)
{
	const char *s;
	if (secure || ((s = cuf_environment_find(environment, "CUFLIGHT_DISABLE")) && *s && strcmp(s, "0"))) {
		cuf_options.disabled = 1;
		return;
	}
	if ((s = cuf_environment_find(environment, "CUFLIGHT_OUTPUT")) && strlen(s) < sizeof cuf_options.output)
		strcpy(cuf_options.output, s);
	s = cuf_environment_find(environment, "CUFLIGHT_OPTIONS");
	while (s && *s) {
		size_t bytes = 0;
		while (s[bytes] && s[bytes] != ':')
			bytes++;
		if (bytes)
			read_pair(s, bytes);
		s += bytes + (s[bytes] == ':');
	}
}

/* %q{VAR}: the value of an environment variable. Returns the number of pattern bytes eaten after the 'q'. */
static size_t expand_variable(const char *pattern, const struct cuf_name_parts *parts, struct cuf_text *text)
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

int cuf_options_expand(const char *pattern, const struct cuf_name_parts *parts, char *out, unsigned out_bytes)
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
