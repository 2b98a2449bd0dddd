/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is worth trying for a trace: settings of allocators, and changes of the work. Each file that
 * knows some adds its rows (the table in trials.c); nobody else names a setting.
 *
 * Contract: texts are in the arena or constant, never NULL unless noted. A trial without a model
 * keeps that of the recording. change makes a new trace, which the caller frees, or returns NULL
 * with *why_not, a clause, when the recording does not show what it needs.
 */
#pragma once

#include "analysis/base/numbers.h"
#include "analysis/what_if/allocator_model.h"
#include "analysis/what_if/trace.h"

/* What is smaller than this share of the device is not what fills it. */
#define NOTABLE_SHARE 0.1

enum trial_kind {
	TRIAL_RECORDED, /* as recorded: tells whether the model can be believed */
	TRIAL_SETTING,  /* of the allocator that the program has */
	TRIAL_ALLOCATOR, /* another allocator */
	TRIAL_WORK,     /* less work, or work in another order */
	TRIAL_MAX
};
extern const char *const trial_kind_names[TRIAL_MAX]; /* recorded setting allocator work */

struct trial {
	enum trial_kind kind;
	const char *id;    /* a word for programs: "expandable-segments" */
	const char *typed; /* the setting as it is typed, or the change in a few words */
	const char *knob;  /* as in struct fact_fix: "PYTORCH_CUDA_ALLOC_CONF"; NULL: no setting */
	/* How large the change is for whoever makes it: 10 an environment variable that costs
	 * nothing, 20 one that costs speed, 30 a line of code, 40 another allocator, 60 less work.
	 * Rows that fit are listed by it. */
	unsigned effort;
	bool is_extra;     /* only with --all */
	const struct allocator_model *model; /* NULL: that of the recording */
	const char *values; /* for model_values_parse; "" */
	const char *why_not; /* it cannot be judged: a clause; NULL */
	struct trace *(*change)(const struct trace *trace, const struct trial *trial,
				struct arena *arena, const char **why_not); /* NULL: none */
	double argument;    /* for change */
	/* Name of a change by a share: the largest that fits is searched, from argument downwards,
	 * and put before `typed`; NULL. */
	const char *searched;
};

struct trials {
	struct trial *rows;
	size_t count, room;
	struct arena *arena;
};
static inline void trials_add(struct trials *trials, struct trial trial)
{
	xalloc_grow(&trials->rows, trials->count, &trials->room, sizeof *trials->rows);
	trials->rows[trials->count++] = trial;
}
/* Whether so many bytes are a part of what fills the device; true where its size is unknown. */
static inline bool trials_is_notable(const struct trace *trace, uint64_t bytes)
{
	return !is_known(trace->capacity_bytes) ||
	       (double)bytes >= NOTABLE_SHARE * (double)trace->capacity_bytes;
}

/* Those that each file knows. The driver's pool instead of PyTorch's; ggml's two pools: what is
 * known of the one that the program did not have. */
void pytorch_trials(struct trials *trials, const struct trace *trace);
void cuda_async_trials(struct trials *trials, const struct trace *trace);
void ggml_trials(struct trials *trials, const struct trace *trace);
void work_trials(struct trials *trials, const struct trace *trace);
extern const struct allocator_model cuda_async_model;

/* Fills rows for this trace, the recorded one first; end with free(rows). */
void trials_collect(struct trials *trials, const struct trace *trace, struct arena *arena);
/* What was typed as NAME=VALUE for --set. False: *why is a clause. */
bool trials_parse(struct trials *trials, const struct trace *trace, const char *typed,
		  const char **why);
