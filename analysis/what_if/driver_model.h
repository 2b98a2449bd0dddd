/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only the driver, as a model: the floor with which allocators are compared. Contract: that of
 * allocator_model.h.
 */
#ifndef ANALYSIS_WHAT_IF_DRIVER_MODEL_H
#define ANALYSIS_WHAT_IF_DRIVER_MODEL_H

#include "analysis/what_if/allocator_model.h"

extern const struct allocator_model driver_model;

#endif
