/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's caching allocator for CUDA as a model, native and with expandable segments. Contract:
 * that of allocator_model.h.
 */
#pragma once

#include "analysis/what_if/allocator_model.h"

extern const struct allocator_model pytorch_model;

/* Whether a version is before 2.MINOR. "": unknown, counts as new. */
bool pytorch_is_before(const char *version, unsigned minor);

/* The blocks of a state of pytorch_model; borrowed. For comparisons with the real allocator. */
struct caching;
const struct caching *pytorch_caching(const void *state);
