/* SPDX-License-Identifier: Apache-2.0 */
/* Pools that a program could have instead of the one that it has. */
#include "analysis/what_if/trials/pools.h"

static const struct {
	const struct allocator_model *model;
	const char *id, *typed, *values;
	bool is_extra, for_framework, for_driver;
} rows[] = {
	{ &cuda_async_model, "cuda-malloc-async", "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync",
	  "cudaMemPoolAttrReleaseThreshold:16777215GiB", true, true, false },
	{ &rmm_model, "rmm-pool", "RMM's pool, grown as needed", "initial_pool_size:2MiB",
	  true, true, true },
	{ &cupy_model, "cupy-pool", "CuPy's pool", "", true, false, true },
	{ &onnxruntime_model, "bfc-power-of-two", "arena_extend_strategy=kNextPowerOfTwo",
	  "arena_extend_strategy:kNextPowerOfTwo", true, false, true },
	{ &onnxruntime_model, "bfc-as-requested", "arena_extend_strategy=kSameAsRequested",
	  "arena_extend_strategy:kSameAsRequested", true, false, true },
	{ &jax_model, "bfc-growing", "XLA_PYTHON_CLIENT_PREALLOCATE=false",
	  "XLA_PYTHON_CLIENT_PREALLOCATE:false", true, false, true },
};

/* They are for programs that ask the driver themselves; PyTorch can have RMM's. */
void pools_trials(struct trials *trials, const struct trace *trace)
{
	bool framework = trace->kind_count[CUF_KIND_FRAMEWORK];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (framework ? rows[i].for_framework : rows[i].for_driver)
			trials_add(trials, (struct trial){ .kind = TRIAL_ALLOCATOR,
							   .id = rows[i].id,
							   .typed = rows[i].typed,
							   .effort = 40,
							   .is_extra = rows[i].is_extra,
							   .model = rows[i].model,
							   .values = rows[i].values });
}
