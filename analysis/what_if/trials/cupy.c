/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CuPy's MemoryPool: a list of free chunks for each stream, sizes in units of 512 bytes, and every
 * chunk is split. Where the driver refuses, all whole regions are released, and it is asked again.
 */
#include <stdlib.h>
#include "analysis/what_if/trials/pools.h"
#include "analysis/what_if/trials/regions.h"

enum { UNIT_BYTES = 512 };

struct cupy {
	struct regions regions;
	uint64_t limit_bytes; /* CUF_UNKNOWN */
};

static void *cupy_open(const struct model_values *values, const struct model_ground *ground,
		       const char **why)
{
	struct cupy *cupy = xalloc_zeroed(1, sizeof *cupy);

	regions_init(&cupy->regions, ground);
	cupy->limit_bytes = CUF_UNKNOWN;
	if (values->value[0].text)
		cupy->limit_bytes = (uint64_t)values->value[0].number;
	return cupy;
}

/* A limit of the user is no refusal by the driver: nothing is released for it. */
static struct chunk *grow(struct cupy *cupy, unsigned list, uint64_t bytes)
{
	struct regions *regions = &cupy->regions;
	struct chunk *chunk;

	if (bytes > cupy->limit_bytes ||
	    regions->figures.reserved_bytes > cupy->limit_bytes - bytes)
		return NULL;
	chunk = regions_grow(regions, list, bytes);
	if (chunk)
		return chunk;
	regions_release(regions);
	return regions_grow(regions, list, bytes);
}

static bool cupy_alloc(void *state, const struct model_request *request)
{
	struct cupy *cupy = state;
	uint64_t bytes = regions_round(request->bytes, UNIT_BYTES);
	struct chunk *chunk;

	if (!bytes)
		return true;
	chunk = regions_best(&cupy->regions, request->group, bytes);
	if (!chunk)
		chunk = grow(cupy, request->group, bytes);
	if (!chunk)
		return false;
	regions_use(&cupy->regions, chunk, bytes, request->block);
	return true;
}

static void cupy_free(void *state, uint32_t block)
{
	struct cupy *cupy = state;
	struct chunk *chunk = cupy->regions.blocks[block];

	if (chunk)
		regions_give(&cupy->regions, block, chunk->list);
}

static void cupy_empty(void *state) { regions_release(&((struct cupy *)state)->regions); }

static struct model_figures cupy_look(const void *state)
{
	struct model_figures figures = ((const struct cupy *)state)->regions.figures;

	figures.free_choices = ((const struct cupy *)state)->regions.equal_choices;
	return figures;
}

static void cupy_close(void *state)
{
	struct cupy *cupy = state;

	regions_fini(&cupy->regions);
	free(cupy);
}

static const struct model_setting settings[] = {
	{ "CUPY_GPU_MEMORY_LIMIT", SETTING_BYTES, 0, 0, NULL,
	  "the most that CuPy's pool may take from the driver" },
};

const struct allocator_model cupy_model = {
	.id = "cupy",
	.name = "CuPy's memory pool",
	.versions = "CuPy 13 and 14",
	.settings = settings,
	.setting_count = sizeof settings / sizeof *settings,
	.kinds = 1u << CUF_KIND_FRAMEWORK | 1u << CUF_KIND_DEVICE,
	.open = cupy_open,
	.alloc = cupy_alloc,
	.free = cupy_free,
	.empty_cache = cupy_empty,
	.look = cupy_look,
	.close = cupy_close,
};
