/* SPDX-License-Identifier: Apache-2.0 */
/* Reads settings as users type them, by the table of a model. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "analysis/base/units.h"
#include "analysis/what_if/allocator_model.h"

static bool read_flag(const char *text, double *number)
{
	static const char *const yes[] = { "True", "1", "yes", "on" };
	static const char *const no[] = { "False", "0", "no", "off" };
	for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
		*number = !strcasecmp(text, yes[i]);
		if (*number != 0 || !strcasecmp(text, no[i]))
			return true;
	}
	return false;
}

static bool read_word(const char *text, const char *words, double *number)
{
	size_t bytes = strlen(text);
	*number = 0;
	while (*words) {
		size_t word = strcspn(words, " ");
		if (word == bytes && !strncasecmp(words, text, word))
			return true;
		words += word + (words[word] == ' ');
		++*number;
	}
	return false;
}

static bool read_number(const struct model_setting *row, const char *text, double *number)
{
	char *end;
	*number = strtod(text, &end);
	if (end == text || *end || !(*number >= 0))
		return false;
	if (row->least == 0 && row->most == 0)
		return row->type != SETTING_RATIO || *number <= 1;
	return *number >= row->least && *number <= row->most;
}

static bool read_value(const struct model_setting *row, const char *text, double *number)
{
	uint64_t bytes;
	switch (row->type) {
	case SETTING_FLAG: return read_flag(text, number);
	case SETTING_WORD: return read_word(text, row->words, number);
	case SETTING_TEXT: return true;
	case SETTING_BYTES:
		if (!units_parse_bytes(text, &bytes))
			return false;
		*number = (double)bytes;
		return true;
	case SETTING_MIB:
		if (!read_number(row, text, number))
			return false;
		*number *= 1 << 20;
		return true;
	default: return read_number(row, text, number);
	}
}

/* One "name:value"; the text may be changed. */
static bool take_one(const struct allocator_model *model, char *text, struct model_values *out,
		     struct arena *arena, const char **why)
{
	size_t bytes = strcspn(text, ":=");
	if (!text[bytes]) {
		*why = arena_format(arena, "'%s' has no value; write %s:VALUE", text, text);
		return false;
	}
	text[bytes] = 0;
	for (size_t i = 0; i < model->setting_count; i++) {
		struct model_value *value = &out->value[i];
		if (strcmp(model->settings[i].name, text))
			continue;
		value->text = text + bytes + 1;
		if (read_value(&model->settings[i], value->text, &value->number))
			return true;
		*why = arena_format(arena, "'%s' is no value for %s", value->text, text);
		return false;
	}
	*why = arena_format(arena, "%s has no setting '%s' that is modelled", model->name, text);
	return false;
}

bool model_values_parse(const struct allocator_model *model, const char *typed,
			struct model_values *out, struct arena *arena, const char **why)
{
	char *text = arena_text(arena, typed, strlen(typed));
	*out = (struct model_values){ 0 };
	while (*text) {
		char *end = text;
		for (int depth = 0; *end && (depth || *end != ','); end++)
			depth += (*end == '[') - (*end == ']');
		bool more = *end;
		*end = 0;
		text += strspn(text, " ");
		if (*text && !take_one(model, text, out, arena, why))
			return false;
		text = end + more;
	}
	return true;
}
