/* SPDX-License-Identifier: Apache-2.0 */
/* See what_if.h. Rows are played by several threads at once; each writes its own result. */
#include "analysis/what_if/what_if.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/parallel.h"

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

struct work {
	const struct trace *trace;
	const struct what_if_options *options;
	struct arena *arena;
	struct what_if *out;
	const struct allocator_model *recorded;
	atomic_size_t done;
	size_t all;
	pthread_t owner; /* who calls progress */
};

struct piece { struct work *work; size_t reported; };

static bool tell(void *argument, size_t steps)
{
	struct piece *piece = argument;
	struct work *work = piece->work;
	size_t done = atomic_fetch_add(&work->done, steps - piece->reported) + steps -
		      piece->reported;
	piece->reported = steps;
	if (work->options->progress && pthread_equal(pthread_self(), work->owner))
		work->options->progress(work->options->argument,
					ratio_or_zero((double)done, (double)work->all));
	return true;
}

static void play_once(struct work *work, struct what_if_row *row)
{
	const struct allocator_model *model = row->trial.model ? row->trial.model : work->recorded;
	struct model_values values;
	struct piece piece = { work, 0 };
	struct trace *changed = NULL;
	row->result = (struct play_result){ .why_not = row->trial.why_not };
	if (row->result.why_not ||
	    !model_values_parse(model, row->trial.values, &values, work->arena,
				&row->result.why_not))
		return;
	if (row->trial.change) {
		changed = row->trial.change(work->trace, &row->trial, work->arena,
					    &row->result.why_not);
		if (!changed)
			return;
	}
	row->result = play_trace(changed ? changed : work->trace,
				 &(struct play_options){ .model = model,
							 .values = &values,
							 .capacity_bytes = CUF_UNKNOWN,
							 .progress = tell,
							 .argument = &piece });
	trace_free(changed);
}

enum { SEARCH_PLAYS = 7 }; /* of at most 100 shares */

/* Finds the largest share that fits, in whole percent, from that of the trial downwards. */
static void play_shares(struct work *work, struct what_if_row *row)
{
	unsigned low = 0, high = (unsigned)(row->trial.argument * 100);
	struct play_result fitting = { .why_not = "no share of it would fit" };

	while (low < high) {
		unsigned share = (low + high + 1) / 2;

		row->trial.argument = share / 100.0;
		play_once(work, row);
		if (row->result.fits)
			fitting = row->result;
		if (row->result.fits)
			low = share;
		else
			high = share - 1;
	}
	row->result = fitting;
	row->trial.typed = arena_format(work->arena, "%s=%u%% %s", row->trial.searched, low,
					row->trial.typed);
}

static void play_row(void *context, size_t i)
{
	struct work *work = context;
	struct what_if_row *row = &work->out->rows[i];

	if (row->trial.searched)
		play_shares(work, row);
	else
		play_once(work, row);
}

/* Fits, does not, cannot be judged. */
static int state_of(const struct what_if_row *row)
{
	if (row->result.why_not)
		return 2;
	return !row->result.fits;
}

static int by_change(const void *a, const void *b)
{
	const struct what_if_row *left = a, *right = b;
	int order = (left->trial.kind != TRIAL_RECORDED) - (right->trial.kind != TRIAL_RECORDED);
	if (!order)
		order = state_of(left) - state_of(right);
	if (!order)
		order = compare_numbers(left->trial.effort, right->trial.effort);
	if (!order)
		order = compare_numbers(right->result.room_bytes, left->result.room_bytes);
	return order ? order : compare_numbers(left->order, right->order);
}

static const char *unlike_recorded(const struct trace *trace, const struct play_result *recorded)
{
	if (recorded->why_not)
		return recorded->why_not;
	if (!trace_refused(trace) && !recorded->fits)
		return "the replay of the recorded setting is refused a request that was served";
	if (trace_refused(trace) && recorded->fits)
		return "the replay of the recorded setting serves the request that failed";
	return NULL;
}

bool what_if_run(const struct trace *trace, const struct what_if_options *options,
		 struct arena *arena, struct what_if *out, const char **why)
{
	struct trials trials;
	struct work work = { .trace = trace, .options = options, .arena = arena, .out = out,
			     .owner = pthread_self() };
	size_t count = 0, plays = 0;
	trials_collect(&trials, trace, arena);
	work.recorded = trials.rows[0].model;
	if (options->set) {
		trials.count = 1;
		if (!trials_parse(&trials, trace, options->set, why)) {
			free(trials.rows);
			return false;
		}
	}
	*out = (struct what_if){ .trace = trace };
	out->rows = arena_zeroed(arena, trials.count, sizeof *out->rows);
	for (size_t i = 0; i < trials.count; i++)
		if (options->all || !trials.rows[i].is_extra) {
			out->rows[count].trial = trials.rows[i];
			out->rows[count].order = count;
			plays += trials.rows[i].searched ? SEARCH_PLAYS : 1;
			count++;
		}
	out->count = count;
	free(trials.rows);
	work.all = plays * trace->count;
	parallel_each(count, options->threads, play_row, &work);
	out->unlike = unlike_recorded(trace, &out->rows[0].result);
	qsort(out->rows, count, sizeof *out->rows, by_change);
	return true;
}
