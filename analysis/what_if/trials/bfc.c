/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/what_if/trials/bfc.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/what_if/trials/regions.h"

enum { UNIT_BYTES = 256, LEAST_BYTES = 8192 };

struct bfc {
	struct regions regions;
	struct bfc_settings settings;
	uint64_t next_bytes;      /* of the next region */
};

void *bfc_open(const struct bfc_settings *settings, const struct model_ground *ground)
{
	struct bfc *bfc = xalloc_zeroed(1, sizeof *bfc);

	bfc->settings = *settings;
	bfc->next_bytes = most_of(settings->first_bytes, UNIT_BYTES);
	regions_init(&bfc->regions, ground);
	return bfc;
}

static uint64_t rounded(uint64_t bytes) { return regions_round(bytes, UNIT_BYTES); }

static uint64_t region_for(struct bfc *bfc, uint64_t bytes, uint64_t available)
{
	uint64_t region;
	bool increased = false;

	if (bfc->settings.grows_by_request)
		return bytes;
	while (bytes > bfc->next_bytes && bfc->next_bytes < UINT64_MAX / 2) {
		bfc->next_bytes *= 2;
		increased = true;
	}
	region = least_of(bfc->next_bytes, available);
	if (!increased)
		bfc->next_bytes = least_of(bfc->next_bytes * 2, bfc->settings.grow_most_bytes);
	return region;
}

/* Where the driver refuses, a tenth less is asked for, down to the request. The factor is a float,
 * and its product, too. */
static struct chunk *extend(struct bfc *bfc, uint64_t bytes)
{
	uint64_t reserved = bfc->regions.figures.reserved_bytes;
	uint64_t available = subtract_to_zero(bfc->settings.limit_bytes, reserved);
	struct chunk *chunk;
	uint64_t region;

	available = available / UNIT_BYTES * UNIT_BYTES;
	if (bytes > available)
		return NULL;
	region = region_for(bfc, bytes, available);
	chunk = regions_grow(&bfc->regions, 0, region);
	while (!chunk) {
		region = rounded((uint64_t)((float)region * 0.9f));
		if (region < bytes || region < LEAST_BYTES)
			return NULL;
		chunk = regions_grow(&bfc->regions, 0, region);
	}
	return chunk;
}

bool bfc_alloc(void *state, const struct model_request *request)
{
	struct bfc *bfc = state;
	uint64_t bytes = rounded(request->bytes), used;
	struct chunk *chunk;

	if (!bytes)
		return true;
	chunk = regions_best(&bfc->regions, 0, bytes);
	if (!chunk)
		chunk = extend(bfc, bytes);
	if (!chunk && bfc->settings.collects) {
		regions_release(&bfc->regions);
		chunk = extend(bfc, bytes);
	}
	if (!chunk)
		return false;
	used = chunk->bytes;
	if (used >= bytes * 2 || used - bytes >= bfc->settings.keep_bytes)
		used = bytes;
	regions_use(&bfc->regions, chunk, used, request->block);
	return true;
}

void bfc_free(void *state, uint32_t block)
{
	regions_give(&((struct bfc *)state)->regions, block, 0);
}

struct model_figures bfc_look(const void *state)
{
	struct model_figures figures = ((const struct bfc *)state)->regions.figures;

	figures.releasable_bytes = figures.reserved_bytes - figures.allocated_bytes;
	return figures;
}

void bfc_close(void *state)
{
	struct bfc *bfc = state;

	regions_fini(&bfc->regions);
	free(bfc);
}
