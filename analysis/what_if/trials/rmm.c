/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's pool_memory_resource: units of 256 bytes, a list of free blocks for each stream, which
 * takes from the lists of others before the pool grows. It grows by as much as it has, or by half
 * of what a maximum leaves; where the driver refuses, by half of that, down to the request.
 */
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/what_if/trials/pools.h"
#include "analysis/what_if/trials/regions.h"

enum { UNIT_BYTES = 256 };
enum { INITIAL_AT, MAXIMUM_AT }; /* in the table of settings */

struct rmm {
	struct regions regions;
	uint64_t maximum_bytes; /* CUF_UNKNOWN */
};

static uint64_t rounded(uint64_t bytes) { return regions_round(bytes, UNIT_BYTES); }

static struct chunk *expand(struct rmm *rmm, unsigned list, uint64_t most, uint64_t least)
{
	while (most >= least && most) {
		struct chunk *chunk = regions_grow(&rmm->regions, list, most);

		if (chunk || most == least)
			return chunk;
		most = most_of(least, most / 2);
	}
	return NULL;
}

static void *rmm_open(const struct model_values *values, const struct model_ground *ground,
		      const char **why)
{
	struct rmm *rmm = xalloc_zeroed(1, sizeof *rmm);
	uint64_t initial = driver_look(ground->driver).capacity_bytes / 2;
	struct chunk *chunk;

	regions_init(&rmm->regions, ground);
	rmm->maximum_bytes = CUF_UNKNOWN;
	if (values->value[MAXIMUM_AT].text)
		rmm->maximum_bytes = rounded((uint64_t)values->value[MAXIMUM_AT].number);
	if (values->value[INITIAL_AT].text)
		initial = (uint64_t)values->value[INITIAL_AT].number;
	initial = initial / UNIT_BYTES * UNIT_BYTES;
	if (!initial)
		return rmm;
	chunk = expand(rmm, 0, initial, initial);
	if (chunk) {
		regions_insert(&rmm->regions, chunk);
		return rmm;
	}
	*why = "the device has no room for initial_pool_size";
	regions_fini(&rmm->regions);
	free(rmm);
	return NULL;
}

/* 0: the maximum is reached. */
static uint64_t size_to_grow(const struct rmm *rmm, uint64_t bytes)
{
	uint64_t pool = rmm->regions.figures.reserved_bytes, left;

	if (!is_known(rmm->maximum_bytes))
		return most_of(bytes, pool);
	left = rounded(subtract_to_zero(rmm->maximum_bytes, pool));
	if (bytes > left)
		return 0;
	return most_of(bytes, left / 2);
}

/* Other streams' blocks: first as they are, then with their lists added to this one. */
static struct chunk *take_from_others(struct rmm *rmm, unsigned list, uint64_t bytes)
{
	struct regions *regions = &rmm->regions;
	struct chunk *chunk;

	for (unsigned other = 0; other < regions->list_count; other++) {
		chunk = other == list ? NULL : regions_best(regions, other, bytes);
		if (chunk)
			return chunk;
	}
	for (unsigned other = 0; other < regions->list_count; other++) {
		if (other == list)
			continue;
		regions_join(regions, other, list);
		chunk = regions_best(regions, list, bytes);
		if (chunk)
			return chunk;
	}
	return NULL;
}

static bool rmm_alloc(void *state, const struct model_request *request)
{
	struct rmm *rmm = state;
	uint64_t bytes = rounded(request->bytes);
	struct chunk *chunk;

	if (!bytes)
		return true;
	chunk = regions_best(&rmm->regions, request->group, bytes);
	if (!chunk)
		chunk = take_from_others(rmm, request->group, bytes);
	if (!chunk)
		chunk = expand(rmm, request->group, size_to_grow(rmm, bytes), bytes);
	if (!chunk)
		return false;
	regions_use(&rmm->regions, chunk, bytes, request->block);
	chunk->list = request->group; /* of the stream that frees it */
	return true;
}

static void rmm_free(void *state, uint32_t block)
{
	struct rmm *rmm = state;
	struct chunk *chunk = rmm->regions.blocks[block];

	if (chunk)
		regions_give(&rmm->regions, block, chunk->list);
}

/* It never returns memory to the driver. */
static struct model_figures rmm_look(const void *state)
{
	struct model_figures figures = ((const struct rmm *)state)->regions.figures;

	figures.releasable_bytes = figures.reserved_bytes - figures.allocated_bytes;
	return figures;
}

static void rmm_close(void *state)
{
	struct rmm *rmm = state;

	regions_fini(&rmm->regions);
	free(rmm);
}

static const struct model_setting settings[] = {
	{ "initial_pool_size", SETTING_BYTES, 0, 0, NULL,
	  "what RMM's pool takes at its start; half of the device where it is not given" },
	{ "maximum_pool_size", SETTING_BYTES, 0, 0, NULL, "the most that RMM's pool may take" },
};

const struct allocator_model rmm_model = {
	.id = "rmm",
	.name = "RMM's pool",
	.versions = "pool_memory_resource of RMM 24.12",
	.variable = "RMM_POOL",
	.settings = settings,
	.setting_count = sizeof settings / sizeof *settings,
	.kinds = 1u << CUF_KIND_FRAMEWORK | 1u << CUF_KIND_DEVICE,
	.open = rmm_open,
	.alloc = rmm_alloc,
	.free = rmm_free,
	.look = rmm_look,
	.close = rmm_close,
};
