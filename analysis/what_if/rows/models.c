/* SPDX-License-Identifier: Apache-2.0 */
/* The models that there are. A new one is a file and a row here. */
#include "analysis/what_if/driver_model.h"
#include "analysis/what_if/pools/pools.h"
#include "analysis/what_if/pytorch.h"

const struct allocator_model *const allocator_models[] = {
	&pytorch_model,
	&driver_model,
	&onnxruntime_model,
	&jax_model,
	&cupy_model,
	&rmm_model,
	&cuda_async_model,
	NULL,
};
