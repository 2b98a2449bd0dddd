/* SPDX-License-Identifier: Apache-2.0 */
/* The models that there are. A new one is a file and a row here. */
#include "analysis/what_if/driver_model.h"
#include "analysis/what_if/pytorch.h"

const struct allocator_model *const allocator_models[] = {
	&pytorch_model,
	&driver_model,
	NULL,
};
