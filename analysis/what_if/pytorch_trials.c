/* SPDX-License-Identifier: Apache-2.0 */
/* Which settings of PyTorch's allocator are worth trying. */
#include <string.h>
#include "analysis/what_if/driver_model.h"
#include "analysis/what_if/pytorch.h"

enum { FRACTION_IS_SETTING = 10 }; /* from 2.10 on */

#define VARIABLE "PYTORCH_CUDA_ALLOC_CONF"

static const struct { const char *id, *values; unsigned effort; bool is_extra; } rows[] = {
	{ "expandable-segments", "expandable_segments:True", 10, false },
	{ "max-split-64", "max_split_size_mb:64", 20, true },
	{ "max-split-128", "max_split_size_mb:128", 20, false },
	{ "max-split-512", "max_split_size_mb:512", 20, false },
	{ "roundup-4", "roundup_power2_divisions:4", 20, false },
	{ "roundup-8", "roundup_power2_divisions:8", 20, true },
	{ "roundup-16", "roundup_power2_divisions:16", 20, true },
	{ "expandable-roundup-4", "expandable_segments:True,roundup_power2_divisions:4", 20, true },
};

/* What the program had already is no change. */
static bool is_recorded(const struct trace *trace, const char *values)
{
	return strstr(trace->settings, values) ||
	       (!strcmp(trace->backend, "expandable") &&
		!strcmp(values, "expandable_segments:True"));
}

/* The share of the device is a setting of newer versions, and a call in all of them. */
static void add_fraction(struct trials *trials, const struct trace *trace)
{
	struct trial trial = { .kind = TRIAL_SETTING, .knob = VARIABLE, .effort = 20,
			       .model = &pytorch_model, .id = "garbage-collection",
			       .values = "garbage_collection_threshold:0.8,"
					 "per_process_memory_fraction:1.0" };
	trial.typed = arena_format(trials->arena, "%s=%s", VARIABLE, trial.values);
	if (pytorch_is_before(trace->version, FRACTION_IS_SETTING))
		trial.typed = VARIABLE "=garbage_collection_threshold:0.8 and "
			      "torch.cuda.set_per_process_memory_fraction(1.0)";
	trials_add(trials, trial);
	if (trace->limit_bytes == CUF_UNKNOWN)
		return;
	trial.id = "whole-device";
	trial.effort = 10;
	trial.knob = "set_per_process_memory_fraction";
	trial.values = "per_process_memory_fraction:1.0";
	trial.typed = "torch.cuda.set_per_process_memory_fraction(1.0)";
	trials_add(trials, trial);
}

void pytorch_trials(struct trials *trials, const struct trace *trace)
{
	if (!trace->kind_count[CUF_KIND_FRAMEWORK])
		return;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!is_recorded(trace, rows[i].values))
			trials_add(trials, (struct trial){
						   .kind = TRIAL_SETTING,
						   .id = rows[i].id,
						   .typed = arena_format(trials->arena, "%s=%s",
									 VARIABLE, rows[i].values),
						   .knob = VARIABLE,
						   .effort = rows[i].effort,
						   .is_extra = rows[i].is_extra,
						   .model = &pytorch_model,
						   .values = rows[i].values });
	add_fraction(trials, trace);
	trials_add(trials, (struct trial){ .kind = TRIAL_SETTING,
					   .id = "no-caching",
					   .typed = "PYTORCH_NO_CUDA_MEMORY_CACHING=1",
					   .knob = "PYTORCH_NO_CUDA_MEMORY_CACHING",
					   .effort = 40, /* each request waits for the device */
					   .is_extra = true,
					   .model = &driver_model,
					   .values = "" });
}
