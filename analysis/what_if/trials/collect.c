/* SPDX-License-Identifier: Apache-2.0 */
/* The models that there are. A new one is a file and a row here. */
#include <string.h>
#include "analysis/what_if/driver_model.h"
#include "analysis/what_if/pytorch.h"
#include "analysis/what_if/trials.h"
#include "analysis/what_if/trials/pools.h"
#include "analysis/what_if/trials/work.h"

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
