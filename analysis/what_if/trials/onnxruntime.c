/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime's arena of its CUDA provider: BFC without garbage collection. */
#include "analysis/what_if/trials/bfc.h"
#include "analysis/what_if/trials/pools.h"

#define MIB (1ull << 20)

enum { STRATEGY_AT, LIMIT_AT, INITIAL_AT, DEAD_AT, GROW_MOST_AT };

static const struct model_setting settings[] = {
	{ "arena_extend_strategy", SETTING_WORD, 0, 0, "kNextPowerOfTwo kSameAsRequested",
	  "how the arena grows: by doubling, or by each request" },
	{ "gpu_mem_limit", SETTING_BYTES, 0, 0, NULL, "the most that the arena may take" },
	{ "initial_chunk_size_bytes", SETTING_BYTES, 0, 0, NULL, "its first region" },
	{ "max_dead_bytes_per_chunk", SETTING_BYTES, 0, 0, NULL,
	  "a chunk is split if more than this would be left unused" },
	{ "max_power_of_two_extend_bytes", SETTING_BYTES, 0, 0, NULL,
	  "regions double up to this size" },
};

static uint64_t value_or(const struct model_values *values, size_t at, uint64_t otherwise)
{
	if (values->value[at].text)
		return (uint64_t)values->value[at].number;
	return otherwise;
}

static void *onnxruntime_open(const struct model_values *values, const struct model_ground *ground,
			      const char **why)
{
	return bfc_open(
		&(struct bfc_settings){
			.first_bytes = value_or(values, INITIAL_AT, MIB),
			.limit_bytes = value_or(values, LIMIT_AT, CUF_UNKNOWN),
			.keep_bytes = value_or(values, DEAD_AT, 128 * MIB),
			.grow_most_bytes = value_or(values, GROW_MOST_AT, 1024 * MIB),
			.grows_by_request = values->value[STRATEGY_AT].number > 0,
		},
		ground);
}

const struct allocator_model onnxruntime_model = {
	.id = "onnxruntime",
	.name = "ONNX Runtime's arena",
	.versions = "the CUDA provider of ONNX Runtime 1.31",
	.settings = settings,
	.setting_count = sizeof settings / sizeof *settings,
	.kinds = 1u << CUF_KIND_FRAMEWORK | 1u << CUF_KIND_DEVICE,
	.open = onnxruntime_open,
	.alloc = bfc_alloc,
	.free = bfc_free,
	.look = bfc_look,
	.close = bfc_close,
};
