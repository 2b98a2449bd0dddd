/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools that a program could have instead of the one that it has; what they leave out is in
 * README.md here. Contract: as allocator_model.h.
 */
#ifndef ANALYSIS_WHAT_IF_TRIALS_POOLS_H
#define ANALYSIS_WHAT_IF_TRIALS_POOLS_H

#include "analysis/what_if/allocator_model.h"
#include "analysis/what_if/trials.h"

extern const struct allocator_model cuda_async_model;

/* The driver's pool instead of PyTorch's. */
void cuda_async_trials(struct trials *trials, const struct trace *trace);
/* ggml's two pools: what is known of the one that the program did not have. */
void ggml_trials(struct trials *trials, const struct trace *trace);

#endif
