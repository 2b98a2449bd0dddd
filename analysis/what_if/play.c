/* SPDX-License-Identifier: Apache-2.0 */
/* See play.h. */
#include "analysis/what_if/play.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"

enum { PROGRESS_STEPS = 1 << 16 };

/* Driver blocks that are not the model's, by the number of the block; 0: none. */
struct others { uint64_t *addr, *bytes; };

struct player {
	const struct trace *trace;
	const struct play_options *options;
	const struct allocator_model *model;
	void *state;
	struct driver_pages *driver;
	struct others others;
	struct play_result result;
};

static bool is_models(const struct player *player, const struct trace_step *step)
{
	return step->kind < 32 && player->model->kinds >> step->kind & 1;
}

static bool alloc_other(struct player *player, const struct trace_step *step)
{
	uint64_t addr = 1;
	/* levels that the driver keeps, and physical memory, have no address of their own */
	bool is_level = step->kind == CUF_KIND_VMM || step->kind == CUF_KIND_CONTEXT ||
			step->kind == CUF_KIND_GRAPH;
	if (is_level ? !driver_create(player->driver, step->bytes) :
		       !driver_take(player->driver, step->bytes, &addr))
		return false;
	player->others.addr[step->block] = addr;
	player->others.bytes[step->block] = step->bytes;
	return true;
}

static void free_other(struct player *player, uint32_t block)
{
	uint64_t addr = player->others.addr[block];
	if (!addr)
		return;
	if (addr == 1)
		driver_release(player->driver, player->others.bytes[block]);
	else
		driver_give(player->driver, addr, player->others.bytes[block]);
	player->others.addr[block] = 0;
}

static bool alloc(struct player *player, const struct trace_step *step)
{
	struct model_request request = { .bytes = step->bytes,
					 .block = step->block,
					 .group = step->group,
					 .is_private = step->flags & TRACE_PRIVATE };
	if (is_models(player, step))
		return player->model->alloc(player->state, &request);
	return alloc_other(player, step);
}

/* Free of the driver, and what the model would release. */
static uint64_t room_now(const struct player *player)
{
	struct driver_figures driver = driver_look(player->driver);
	struct model_figures model = player->model->look(player->state);
	return subtract_to_zero(driver.capacity_bytes, driver.used_bytes) + model.releasable_bytes;
}

static bool step_play(struct player *player, const struct trace_step *step)
{
	switch (step->op) {
	case TRACE_ALLOC:
	case TRACE_REFUSED: return alloc(player, step);
	case TRACE_FREE:
		if (is_models(player, step))
			player->model->free(player->state, step->block);
		else
			free_other(player, step->block);
		return true;
	case TRACE_EMPTY:
		if (player->model->empty_cache)
			player->model->empty_cache(player->state);
		return true;
	default: return true;
	}
}

/* The room is least where the model or the driver has most in use, so only then it is asked. */
static void note_player_peak(struct player *player, uint64_t *peak_bytes)
{
	struct driver_figures driver = driver_look(player->driver);
	struct model_figures model = player->model->look(player->state);
	uint64_t in_use = subtract_to_zero(driver.used_bytes, model.releasable_bytes);
	if (in_use <= *peak_bytes)
		return;
	*peak_bytes = in_use;
	player->result.peak_room_bytes = subtract_to_zero(driver.capacity_bytes, in_use);
}

static void play_steps(struct player *player)
{
	const struct trace *trace = player->trace;
	uint64_t peak_bytes = 0;
	size_t i = 0;
	player->result.peak_room_bytes = driver_look(player->driver).capacity_bytes;
	for (; i < trace->count; i++) {
		const struct trace_step *step = &trace->steps[i];
		if (!step_play(player, step)) {
			player->result.refused_bytes = step->bytes;
			break;
		}
		if (step->op == TRACE_ALLOC || step->op == TRACE_REFUSED)
			note_player_peak(player, &peak_bytes);
		if (i % PROGRESS_STEPS == PROGRESS_STEPS - 1 && player->options->progress &&
		    !player->options->progress(player->options->argument, i + 1)) {
			player->result.why_not = "stopped";
			return;
		}
	}
	player->result.refused_at = i;
	player->result.fits = i == trace->count;
}

static void take_figures(struct player *player)
{
	struct model_figures model = player->model->look(player->state);
	struct driver_figures driver = driver_look(player->driver);
	struct play_result *result = &player->result;
	result->room_bytes = room_now(player);
	result->peak_reserved_bytes = model.peak_reserved_bytes;
	result->unused_bytes = subtract_to_zero(model.reserved_bytes, model.allocated_bytes);
	result->driver_calls = driver.calls;
	result->driver_peak_bytes = driver.peak_bytes;
}

struct play_result play_trace(const struct trace *trace, const struct play_options *options)
{
	struct player player = {
		.trace = trace,
		.options = options,
		.model = options->model,
		.result = { .refused_bytes = CUF_UNKNOWN },
	};
	uint64_t capacity = options->capacity_bytes;
	if (!is_known(capacity))
		capacity = trace->capacity_bytes;
	if (!is_known(capacity)) {
		player.result.why_not = "the recording does not say how much memory there was";
		return player.result;
	}
	player.driver = driver_pages_new(capacity, trace->granularity_bytes);
	player.others.addr = xalloc_zeroed(trace->block_count + 1, sizeof *player.others.addr);
	player.others.bytes = xalloc_zeroed(trace->block_count + 1, sizeof *player.others.bytes);
	player.state = options->model->open(options->values,
					    &(struct model_ground){
						    .driver = player.driver,
						    .total_bytes = trace->total_bytes,
						    .limit_bytes = trace->limit_bytes,
						    .block_count = trace->block_count,
						    .version = trace->version,
					    },
					    &player.result.why_not);
	if (player.state) {
		play_steps(&player);
		take_figures(&player);
		options->model->close(player.state);
	}
	free(player.others.addr);
	free(player.others.bytes);
	driver_pages_free(player.driver);
	return player.result;
}
