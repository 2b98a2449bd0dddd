/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of other users of a device than PyTorch, as models: what each leaves out is in README.md
 * here. Contract: as allocator_model.h. pools_trials adds those that are worth trying for a trace.
 */
#ifndef ANALYSIS_WHAT_IF_TRIALS_POOLS_H
#define ANALYSIS_WHAT_IF_TRIALS_POOLS_H

#include "analysis/what_if/allocator_model.h"
#include "analysis/what_if/trials.h"

extern const struct allocator_model cupy_model, rmm_model, onnxruntime_model, jax_model,
	cuda_async_model;

void pools_trials(struct trials *trials, const struct trace *trace);
/* ggml's two pools: what is known of the one that the program did not have. */
void ggml_trials(struct trials *trials, const struct trace *trace);

#endif
