/* SPDX-License-Identifier: Apache-2.0 */
/* The arena of JAX and TensorFlow: BFC that takes most of the device at once, or grows. */
#include "analysis/base/numbers.h"
#include "analysis/what_if/trials/bfc.h"
#include "analysis/what_if/trials/pools.h"

#define MIB (1ull << 20)
#define FRACTION 0.75

enum { PREALLOCATE_AT, FRACTION_AT, GROWTH_AT };

static const struct model_setting settings[] = {
	{ "XLA_PYTHON_CLIENT_PREALLOCATE", SETTING_FLAG, 0, 0, NULL,
	  "JAX takes its share of the device at its start" },
	{ "XLA_PYTHON_CLIENT_MEM_FRACTION", SETTING_RATIO, 0, 1, NULL,
	  "that share; 0.75 where it is not set" },
	{ "TF_FORCE_GPU_ALLOW_GROWTH", SETTING_FLAG, 0, 0, NULL,
	  "TensorFlow takes memory as it needs it" },
};

static void *jax_open(const struct model_values *values, const struct model_ground *ground,
		      const char **why)
{
	const struct model_value *preallocate = &values->value[PREALLOCATE_AT];
	const struct model_value *growth = &values->value[GROWTH_AT];
	uint64_t free_bytes = driver_look(ground->driver).capacity_bytes;
	double fraction = FRACTION;
	bool grows = growth->text && growth->number > 0;
	struct bfc_settings arena = { .keep_bytes = 128 * MIB, .grow_most_bytes = CUF_UNKNOWN };

	if (values->value[FRACTION_AT].text)
		fraction = values->value[FRACTION_AT].number;
	if (preallocate->text)
		grows = preallocate->number <= 0;
	arena.limit_bytes = (uint64_t)((double)free_bytes * fraction);
	arena.first_bytes = grows ? least_of(2 * MIB, arena.limit_bytes) : arena.limit_bytes;
	arena.collects = grows;
	return bfc_open(&arena, ground);
}

const struct allocator_model jax_model = {
	.id = "jax",
	.name = "the arena of JAX and TensorFlow",
	.versions = "XLA's BFC allocator of JAX 0.10; not compared with a real one",
	.settings = settings,
	.setting_count = sizeof settings / sizeof *settings,
	.kinds = 1u << CUF_KIND_FRAMEWORK | 1u << CUF_KIND_DEVICE,
	.open = jax_open,
	.alloc = bfc_alloc,
	.free = bfc_free,
	.look = bfc_look,
	.close = bfc_close,
};
