/* SPDX-License-Identifier: Apache-2.0 */
/* See what_if.h. Rows are played by several threads at once; each writes its own result. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/parallel.h"
#include "analysis/what_if/what_if.h"

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
