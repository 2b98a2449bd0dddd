/* SPDX-License-Identifier: Apache-2.0 */
/* No allocator at all: each request goes to the driver, and each free. */
#include "analysis/what_if/driver_model.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"

struct direct {
	struct driver_pages *driver;
	struct { uint64_t addr, bytes; } *blocks;
	struct model_figures figures;
};

static void *direct_open(const struct model_values *values, const struct model_ground *ground,
			 const char **why)
{
	struct direct *direct = xalloc_zeroed(1, sizeof *direct);
	direct->driver = ground->driver;
	direct->blocks = xalloc_zeroed(ground->block_count + 1, sizeof *direct->blocks);
	return direct;
}

static bool direct_alloc(void *state, const struct model_request *request)
{
	struct direct *direct = state;
	struct model_figures *figures = &direct->figures;
	uint64_t addr;
	if (!driver_take(direct->driver, request->bytes, &addr))
		return false;
	direct->blocks[request->block].addr = addr;
	direct->blocks[request->block].bytes = request->bytes;
	figures->allocated_bytes += request->bytes;
	figures->reserved_bytes += request->bytes;
	figures->peak_reserved_bytes =
		most_of(figures->peak_reserved_bytes, figures->reserved_bytes);
	return true;
}

static void direct_free(void *state, uint32_t block)
{
	struct direct *direct = state;
	if (!direct->blocks[block].addr)
		return;
	driver_give(direct->driver, direct->blocks[block].addr, direct->blocks[block].bytes);
	direct->figures.allocated_bytes -= direct->blocks[block].bytes;
	direct->figures.reserved_bytes = direct->figures.allocated_bytes;
	direct->blocks[block].addr = 0;
}

static struct model_figures direct_look(const void *state)
{
	return ((const struct direct *)state)->figures;
}

static void direct_close(void *state)
{
	struct direct *direct = state;
	free(direct->blocks);
	free(direct);
}

static const struct model_setting settings[] = {
	{ "PYTORCH_NO_CUDA_MEMORY_CACHING", SETTING_FLAG, 0, 0, NULL },
};

const struct allocator_model driver_model = {
	.name = "the driver's pages",
	.settings = settings,
	.setting_count = sizeof settings / sizeof *settings,
	.kinds = 1u << CUF_KIND_FRAMEWORK | 1u << CUF_KIND_DEVICE,
	.open = direct_open,
	.alloc = direct_alloc,
	.free = direct_free,
	.look = direct_look,
	.close = direct_close,
};
