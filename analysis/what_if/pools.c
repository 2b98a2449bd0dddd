/* SPDX-License-Identifier: Apache-2.0 */
/* Pools instead of the one that the program has: the driver's own as a model, bounds for ggml's. */
#include <bsd/sys/tree.h>
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/what_if/trials.h"

/*
 * The driver's own pool behind cudaMallocAsync: blocks of 512 bytes and more packed into pages that
 * it maps. It releases whole unused pages above its threshold when the program synchronizes, and
 * all of them before it refuses. The recording does not show every synchronize, so here each free
 * is followed by one: reserved memory is the least that is possible. What fits does not depend on
 * that.
 */

enum { UNIT_BYTES = 512 };

/* Free memory of the pool, mapped; no two are neighbours. */
struct gap {
	RB_ENTRY(gap) by_size, by_addr;
	uint64_t addr, bytes;
};
RB_HEAD(gaps_by_size, gap);
RB_HEAD(gaps_by_addr, gap);

struct async_pool {
	struct driver_pages *driver;
	struct gaps_by_size sizes;
	struct gaps_by_addr addresses;
	struct { uint64_t addr, bytes; } *blocks;
	struct model_figures figures;
	uint64_t next_addr, threshold_bytes;
};

static int order_of_size(const struct gap *a, const struct gap *b)
{
	if (a->bytes != b->bytes)
		return compare_numbers(a->bytes, b->bytes);
	return compare_numbers(a->addr, b->addr);
}

static int order_of_addr(const struct gap *a, const struct gap *b)
{
	return compare_numbers(a->addr, b->addr);
}

/* of the trees' functions some are not used */
#define UNUSED static __attribute__((unused))
RB_GENERATE_INTERNAL(gaps_by_size, gap, by_size, order_of_size, UNUSED)
RB_GENERATE_INTERNAL(gaps_by_addr, gap, by_addr, order_of_addr, UNUSED)

/* A multiple of the unit, and a size that no driver has for what is close to 2^64. */
static uint64_t rounded(uint64_t bytes, uint64_t unit)
{
	if (bytes > UINT64_MAX / 2)
		return UINT64_MAX / 2 / unit * unit;
	return (bytes + unit - 1) / unit * unit;
}

static uint64_t first_page(uint64_t addr) { return rounded(addr, CUF_PAGE_BYTES); }

/* What of a gap is whole pages. */
static uint64_t page_bytes(uint64_t addr, uint64_t bytes)
{
	uint64_t end = (addr + bytes) / CUF_PAGE_BYTES * CUF_PAGE_BYTES;

	return subtract_to_zero(end, first_page(addr));
}

static void gap_add(struct async_pool *pool, uint64_t addr, uint64_t bytes)
{
	struct gap *gap;

	if (!bytes)
		return;
	gap = xalloc_zeroed(1, sizeof *gap);
	gap->addr = addr;
	gap->bytes = bytes;
	pool->figures.releasable_bytes += page_bytes(addr, bytes);
	RB_INSERT(gaps_by_size, &pool->sizes, gap);
	RB_INSERT(gaps_by_addr, &pool->addresses, gap);
}

static void gap_remove(struct async_pool *pool, struct gap *gap)
{
	pool->figures.releasable_bytes -= page_bytes(gap->addr, gap->bytes);
	RB_REMOVE(gaps_by_size, &pool->sizes, gap);
	RB_REMOVE(gaps_by_addr, &pool->addresses, gap);
	free(gap);
}

/* A gap that may touch others becomes one with them. Returns it. */
static struct gap *gap_join(struct async_pool *pool, uint64_t addr, uint64_t bytes)
{
	struct gap key = { .addr = addr }, *after = RB_NFIND(gaps_by_addr, &pool->addresses, &key);
	struct gap *before = after ? RB_PREV(gaps_by_addr, &pool->addresses, after) :
				     RB_MAX(gaps_by_addr, &pool->addresses);

	if (after && addr + bytes == after->addr) {
		bytes += after->bytes;
		gap_remove(pool, after);
	}
	if (before && before->addr + before->bytes == addr) {
		addr = before->addr;
		bytes += before->bytes;
		gap_remove(pool, before);
	}
	gap_add(pool, addr, bytes);
	key.addr = addr;
	return RB_FIND(gaps_by_addr, &pool->addresses, &key);
}

/* Unmaps the whole pages of a gap, as far as more than `keep` is reserved. */
static void gap_unmap(struct async_pool *pool, struct gap *gap, uint64_t keep)
{
	uint64_t addr = gap->addr, bytes = gap->bytes, start = first_page(addr);
	uint64_t excess = subtract_to_zero(pool->figures.reserved_bytes, keep);
	uint64_t pages = least_of(page_bytes(addr, bytes),
				  excess / CUF_PAGE_BYTES * CUF_PAGE_BYTES);

	if (!pages)
		return;
	gap_remove(pool, gap);
	gap_add(pool, addr, start - addr);
	gap_add(pool, start + pages, addr + bytes - (start + pages));
	driver_release(pool->driver, pages);
	pool->figures.reserved_bytes -= pages;
}

static void trim_pool(struct async_pool *pool, uint64_t keep)
{
	struct gap *gap, *next;

	for (gap = RB_MIN(gaps_by_addr, &pool->addresses); gap; gap = next) {
		next = RB_NEXT(gaps_by_addr, &pool->addresses, gap);
		gap_unmap(pool, gap, keep);
	}
}

static bool grow_pool(struct async_pool *pool, uint64_t bytes)
{
	uint64_t pages = rounded(bytes, CUF_PAGE_BYTES);

	if (!driver_create(pool->driver, pages))
		return false;
	gap_join(pool, pool->next_addr, pages);
	pool->next_addr += pages;
	pool->figures.reserved_bytes += pages;
	pool->figures.peak_reserved_bytes = most_of(pool->figures.peak_reserved_bytes,
						    pool->figures.reserved_bytes);
	return true;
}

static struct gap *gap_for(struct async_pool *pool, uint64_t bytes)
{
	struct gap key = { .bytes = bytes };

	return RB_NFIND(gaps_by_size, &pool->sizes, &key);
}

static bool async_alloc(void *state, const struct model_request *request)
{
	struct async_pool *pool = state;
	uint64_t bytes = rounded(request->bytes, UNIT_BYTES), addr;
	struct gap *gap = gap_for(pool, bytes);

	if (!bytes)
		return true;
	if (!gap && !grow_pool(pool, bytes)) {
		trim_pool(pool, 0);
		if (!grow_pool(pool, bytes))
			return false;
	}
	if (!gap)
		gap = gap_for(pool, bytes);
	addr = gap->addr;
	pool->blocks[request->block].addr = addr;
	pool->blocks[request->block].bytes = bytes;
	pool->figures.allocated_bytes += bytes;
	bytes = gap->bytes - bytes;
	gap_remove(pool, gap);
	gap_add(pool, addr + pool->blocks[request->block].bytes, bytes);
	return true;
}

static void async_free(void *state, uint32_t block)
{
	struct async_pool *pool = state;
	uint64_t addr = pool->blocks[block].addr, bytes = pool->blocks[block].bytes;

	if (!addr)
		return;
	pool->blocks[block].addr = 0;
	pool->figures.allocated_bytes -= bytes;
	gap_unmap(pool, gap_join(pool, addr, bytes), pool->threshold_bytes);
}

static void async_empty(void *state) { trim_pool(state, 0); }

static struct model_figures async_look(const void *state)
{
	return ((const struct async_pool *)state)->figures;
}

static void *async_open(const struct model_values *values, const struct model_ground *ground,
			const char **why)
{
	struct async_pool *pool = xalloc_zeroed(1, sizeof *pool);

	pool->driver = ground->driver;
	pool->blocks = xalloc_zeroed(ground->block_count + 1, sizeof *pool->blocks);
	pool->next_addr = 1ull << 40;
	if (values->value[0].text)
		pool->threshold_bytes = (uint64_t)values->value[0].number;
	RB_INIT(&pool->sizes);
	RB_INIT(&pool->addresses);
	return pool;
}

static void async_close(void *state)
{
	struct async_pool *pool = state;
	struct gap *gap;

	while ((gap = RB_MIN(gaps_by_addr, &pool->addresses)))
		gap_remove(pool, gap);
	free(pool->blocks);
	free(pool);
}

static const struct model_setting settings[] = {
	{ "cudaMemPoolAttrReleaseThreshold", SETTING_BYTES, 0, 0, NULL },
};

const struct allocator_model cuda_async_model = {
	.name = "the driver's pool (cudaMallocAsync)",
	.settings = settings,
	.setting_count = sizeof settings / sizeof *settings,
	.kinds = 1u << CUF_KIND_FRAMEWORK | 1u << CUF_KIND_ASYNC,
	.open = async_open,
	.alloc = async_alloc,
	.free = async_free,
	.empty_cache = async_empty,
	.look = async_look,
	.close = async_close,
};

void cuda_async_trials(struct trials *trials, const struct trace *trace)
{
	if (trace->kind_count[CUF_KIND_FRAMEWORK])
		trials_add(trials, (struct trial){
			.kind = TRIAL_ALLOCATOR,
			.id = "cuda-malloc-async",
			.typed = "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync",
			.effort = 40,
			.is_extra = true,
			.model = &cuda_async_model,
			.values = "cudaMemPoolAttrReleaseThreshold:16777215GiB" });
}

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

static void offer(struct trials *trials, const char *id, const char *typed, bool is_extra,
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
		offer(trials, "ggml-legacy-pool", "ggml built with GGML_CUDA_NO_VMM=ON",
		      !trials_is_notable(trace, vmm.peak_bytes),
		      arena_format(trials->arena,
				   "%s. Its legacy pool would need %s or more; this one needed %s",
				   hidden, units_bytes(legacy_least(trace, vmm)).s,
				   units_bytes(vmm.peak_bytes).s));
	if (legacy.peak_bytes)
		offer(trials, "ggml-vmm-pool", "ggml built with GGML_CUDA_NO_VMM=OFF",
		      !trials_is_notable(trace, legacy.peak_bytes),
		      arena_format(trials->arena,
				   "%s. Its pool of virtual memory would need %s to %s; this one "
				   "needed %s",
				   hidden, units_bytes(vmm_least(legacy)).s,
				   units_bytes(legacy.peak_bytes + trace->granularity_bytes).s,
				   units_bytes(legacy.peak_bytes).s));
}
