/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The "best fit with coalescing" arena of TensorFlow, which ONNX Runtime and JAX have, too. They
 * differ in how it grows.
 *
 * Contract: one arena for all streams. bfc_open takes what differs; the other functions are those
 * of a struct allocator_model. Sizes are bytes. What the driver gave is never released, except by
 * garbage collection, which returns regions that are wholly free when the arena cannot grow.
 */
#ifndef ANALYSIS_WHAT_IF_TRIALS_BFC_H
#define ANALYSIS_WHAT_IF_TRIALS_BFC_H

#include "analysis/what_if/allocator_model.h"

struct bfc_settings {
	uint64_t first_bytes;     /* of the first region, unless a request is larger */
	uint64_t limit_bytes;     /* of all regions */
	uint64_t keep_bytes;      /* a chunk is split if at least so much would be left */
	uint64_t grow_most_bytes; /* regions double up to this */
	bool grows_by_request;    /* regions are as large as the request */
	bool collects;            /* garbage collection */
};

void *bfc_open(const struct bfc_settings *settings, const struct model_ground *ground);
bool bfc_alloc(void *state, const struct model_request *request);
void bfc_free(void *state, uint32_t block);
struct model_figures bfc_look(const void *state);
void bfc_close(void *state);

#endif
