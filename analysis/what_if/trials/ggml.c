/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ggml's two pools for temporary memory (ggml/src/ggml-cuda/ggml-cuda.cu of llama.cpp, commit
 * 00108827). That of virtual memory, ggml_cuda_pool_vmm, is a stack which grows by whole pages and
 * never shrinks. The legacy one, ggml_cuda_pool_leg, keeps up to 256 buffers of cudaMalloc(), each
 * 5 % larger than its first request, and takes the smallest that is large enough. A build option
 * decides, and the device.
 *
 * Neither reports the requests inside it, only what it takes from the driver. So the other one
 * cannot be replayed, but it has bounds:
 * - The pool of virtual memory grew because almost all of it was in use, less a page. The legacy
 *   one would have had a buffer for each of these requests.
 * - Whatever is in use lies in buffers of the legacy pool, and one request is in one buffer.
 */
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/what_if/trials/pools.h"

#define LOOK_AHEAD 1.05

struct pool_use {
	uint64_t peak_bytes, largest_bytes; /* the refused request included */
};

static struct pool_use use_of(const struct trace *trace, unsigned flag)
{
	bool *is_pools = xalloc_zeroed(trace->block_count + 1, sizeof *is_pools);
	struct pool_use use = { 0, 0 };
	uint64_t live = 0;

	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_step *step = &trace->steps[i];

		if (step->op == TRACE_FREE && is_pools[step->block])
			live -= step->bytes;
		if (step->op == TRACE_FREE || step->op == TRACE_EMPTY || !(step->flags & flag))
			continue;
		is_pools[step->block] = true;
		live += step->bytes;
		use.peak_bytes = most_of(use.peak_bytes, live);
		use.largest_bytes = most_of(use.largest_bytes, step->bytes);
	}
	free(is_pools);
	return use;
}

static uint64_t legacy_least(const struct trace *trace, struct pool_use vmm)
{
	return subtract_to_zero(vmm.peak_bytes, trace->granularity_bytes);
}

static uint64_t vmm_least(struct pool_use legacy)
{
	return (uint64_t)((double)legacy.largest_bytes / LOOK_AHEAD);
}

static void add(struct trials *trials, const char *id, const char *typed, bool is_extra,
		const char *why_not)
{
	trials_add(trials, (struct trial){ .kind = TRIAL_ALLOCATOR,
					   .id = id,
					   .typed = typed,
					   .effort = 40,
					   .is_extra = is_extra,
					   .values = "",
					   .why_not = why_not });
}

void ggml_trials(struct trials *trials, const struct trace *trace)
{
	struct pool_use vmm = use_of(trace, TRACE_GGML_VMM);
	struct pool_use legacy = use_of(trace, TRACE_GGML_LEGACY);
	const char *hidden = "the requests inside ggml's pool are not recorded";

	if (vmm.peak_bytes)
		add(trials, "ggml-legacy-pool", "ggml built with GGML_CUDA_NO_VMM=ON",
		    !trials_is_notable(trace, vmm.peak_bytes),
		    arena_format(trials->arena,
				 "%s. Its legacy pool would need %s or more; this one needed %s",
				 hidden, units_bytes(legacy_least(trace, vmm)).s,
				 units_bytes(vmm.peak_bytes).s));
	if (legacy.peak_bytes)
		add(trials, "ggml-vmm-pool", "ggml built with GGML_CUDA_NO_VMM=OFF",
		    !trials_is_notable(trace, legacy.peak_bytes),
		    arena_format(trials->arena,
				 "%s. Its pool of virtual memory would need %s to %s; this one "
				 "needed %s",
				 hidden, units_bytes(vmm_least(legacy)).s,
				 units_bytes(legacy.peak_bytes + trace->granularity_bytes).s,
				 units_bytes(legacy.peak_bytes).s));
}
