/* SPDX-License-Identifier: Apache-2.0 */
/* What is tried: models, and files that know settings or changes. A new one is a row here. */
#include "analysis/what_if/trials.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "analysis/base/units.h"
#include "analysis/what_if/pytorch.h"
#include "analysis/what_if/work.h"

const char *const trial_kind_names[TRIAL_MAX] = { "recorded", "setting", "allocator", "work" };

const struct allocator_model *const allocator_models[] = {
	&pytorch_model,
	&driver_model,
	&cuda_async_model,
	NULL,
};

/* Which trials there are for a trace, and for what a user typed. */
/* Files that know what to try. A new one is a row here. */
static void (*const sources[])(struct trials *trials, const struct trace *trace) = {
	pytorch_trials,
	cuda_async_trials,
	ggml_trials,
	work_trials,
};

/* What the program had: PyTorch as it was set, or only the driver. */
static void add_recorded(struct trials *trials, const struct trace *trace)
{
	struct trial trial = { .kind = TRIAL_RECORDED, .id = "recorded", .typed = "as recorded",
			       .model = &driver_model, .values = "" };
	if (trace->kind_count[CUF_KIND_FRAMEWORK]) {
		trial.model = &pytorch_model;
		trial.values = trace->settings;
		if (!strcmp(trace->backend, "expandable") &&
		    !strstr(trial.values, "expandable_segments")) /* by a call */
			trial.values = arena_format(trials->arena, "%s%sexpandable_segments:True",
						    trial.values, *trial.values ? "," : "");
		if (*trial.values)
			trial.typed = arena_format(trials->arena, "as recorded (%s)", trial.values);
	}
	trials_add(trials, trial);
}

void trials_collect(struct trials *trials, const struct trace *trace, struct arena *arena)
{
	*trials = (struct trials){ .arena = arena };
	add_recorded(trials, trace);
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
		sources[i](trials, trace);
}

/* ---- settings as users type them, by the table of a model ---- */

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

static bool read_setting_number(const struct model_setting *row, const char *text, double *number)
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
		if (!read_setting_number(row, text, number))
			return false;
		*number *= 1 << 20;
		return true;
	default: return read_setting_number(row, text, number);
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

/* ---- what was typed as NAME=VALUE ---- */

static bool has_setting(const struct allocator_model *model, const char *name, size_t bytes)
{
	for (size_t i = 0; i < model->setting_count; i++)
		if (!strncmp(model->settings[i].name, name, bytes) &&
		    !model->settings[i].name[bytes])
			return true;
	return false;
}

static bool is_named(const char *variable, const char *name, size_t bytes)
{
	return variable && !strncmp(variable, name, bytes) && !variable[bytes];
}

bool trials_parse(struct trials *trials, const struct trace *trace, const char *typed,
		  const char **why)
{
	size_t bytes = strcspn(typed, "=");
	struct model_values values;
	struct trial trial = { .kind = TRIAL_SETTING, .id = "set", .typed = typed, .effort = 1 };
	if (!typed[bytes]) {
		*why = "it is not NAME=VALUE";
		return false;
	}
	*why = NULL;
	if (work_trial_parse(&trial, trace, typed, why)) {
		trials_add(trials, trial);
		return true;
	}
	if (*why)
		return false;
	for (size_t i = 0; allocator_models[i] && !trial.model; i++) {
		const struct allocator_model *model = allocator_models[i];
		if (is_named(model->variable, typed, bytes)) {
			trial.model = model;
			trial.values = typed + bytes + 1;
		} else if (has_setting(model, typed, bytes)) {
			trial.model = model;
			trial.values = typed;
		}
	}
	if (!trial.model) {
		*why = "no allocator that is modelled has this setting";
		return false;
	}
	trial.knob = trial.model->variable;
	if (!model_values_parse(trial.model, trial.values, &values, trials->arena, why))
		return false;
	trials_add(trials, trial);
	return true;
}
