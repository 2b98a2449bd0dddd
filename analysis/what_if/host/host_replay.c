/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/what_if/host/host_replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "analysis/base/key_values.h"
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/host/allocator_stats.h"
#include "analysis/what_if/host/child.h"
#include "analysis/what_if/host/history.h"

enum { SECONDS_EACH = 60, PLAYS = 3, SHORT_PLAY_MS = 2000 };
/* Of the memory that this machine has free; the rest is for this process and others. */
#define SPARE_SHARE 0.7
/* A play that is this much above the recording shows that large blocks were not written. */
#define CALIBRATE_ABOVE 1.05
/* Play that is slower than this share of the recorded time has the allocator's own clock. */
#define SAME_CLOCK 0.5
enum { JEMALLOC_DECAY_MS = 10000, MIMALLOC_DELAY_MS = 25 };

struct replaying {
	const struct host_replay_options *options;
	struct arena *arena;
	struct host_replay *out;
	struct history history;
	int history_fd;
	struct play_limits limits;
	uint32_t recorded_play_ms; /* how long the recorded setting was played; 0: unknown */
	size_t planned;
};

/* ---- limits ---- */

static uint64_t memory_available(void)
{
	char line[128];
	uint64_t kib = 0;
	FILE *file = fopen("/proc/meminfo", "re");

	if (!file)
		return 0;
	while (fgets(line, sizeof line, file))
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
			break;
	fclose(file);
	return kib << 10;
}

/* ---- the recorded process ---- */

/* malloc's resident memory at the end; maps of others, as far as they are known, are not it. */
static uint64_t recorded_resident(const struct meta *meta)
{
	const struct fact_meta_text *reading =
		allocator_stats_memory(meta, CUF_UNKNOWN, CUF_UNKNOWN);
	const char *memory = reading ? reading->text : NULL;
	uint64_t heap, anonymous, others;

	if (!memory || key_number(memory, "whole") != 1)
		return CUF_UNKNOWN;
	heap = key_number(memory, "heap_bytes");
	anonymous = key_number(memory, "anonymous_bytes");
	if (!is_known(heap) && !is_known(anonymous))
		return CUF_UNKNOWN;
	others = known_or_zero(key_number(memory, "mapped_anonymous_bytes")) +
		 known_or_zero(key_number(memory, "python_arena_bytes"));
	return known_or_zero(heap) + subtract_to_zero(known_or_zero(anonymous), others);
}

/* ---- one row ---- */

/*
 * Allocators that release memory after a time would release none of a day that is played in
 * seconds: their time is shortened as the play is.
 */
static void shorten_time(const struct replaying *replaying, struct host_setting *setting)
{
	double ratio = (double)replaying->recorded_play_ms * 1e6 /
		       ((double)replaying->history.duration_ns + 1);

	if (!replaying->recorded_play_ms || ratio > SAME_CLOCK || setting->words[0])
		return;
	if (!strcmp(setting->allocator, "jemalloc"))
		setting->words[0] = arena_format(replaying->arena,
						 "MALLOC_CONF=dirty_decay_ms:%d,muzzy_decay_ms:0",
						 (int)(JEMALLOC_DECAY_MS * ratio));
	if (!strcmp(setting->allocator, "mimalloc"))
		setting->words[0] = arena_format(replaying->arena, "MIMALLOC_DECOMMIT_DELAY=%d",
						 (int)(MIMALLOC_DELAY_MS * ratio));
}

static const char *why_not(const struct replaying *replaying, enum play_status status)
{
	switch (status) {
	case PLAY_ENDED: return NULL;
	case PLAY_TOO_LARGE:
		return arena_format(replaying->arena, "it would need more than %s, which is more "
						      "than this machine can spare",
				    units_bytes(replaying->limits.resident_bytes).s);
	case PLAY_REFUSED: return "the allocator refused a request of the program";
	case PLAY_NOT_ENDED:
		return arena_format(replaying->arena,
				    "the replay did not end within %u s, or died",
				    replaying->limits.seconds);
	default: return "the replay could not be started";
	}
}

static int by_end_bytes(const void *a, const void *b)
{
	const struct play_answer *left = a, *right = b;

	if (left->status != right->status)
		return left->status < right->status ? -1 : 1;
	return compare_numbers(left->end_bytes, right->end_bytes);
}

/* What an allocator with a clock has at the end differs from play to play: the one in the middle
 * of three counts, where that takes no time. */
static struct play_answer play(struct replaying *replaying, struct host_setting setting)
{
	struct play_answer answers[PLAYS];

	shorten_time(replaying, &setting);
	answers[0] = child_play(replaying->history_fd, &setting, &replaying->limits);
	if (!strcmp(setting.allocator, "glibc") || answers[0].status != PLAY_ENDED ||
	    answers[0].seconds_1000th > SHORT_PLAY_MS)
		return answers[0];
	for (int i = 1; i < PLAYS; i++)
		answers[i] = child_play(replaying->history_fd, &setting, &replaying->limits);
	qsort(answers, PLAYS, sizeof *answers, by_end_bytes);
	return answers[PLAYS / 2];
}

static struct play_answer add_row(struct replaying *replaying, const struct host_setting *setting,
				  bool is_recorded)
{
	struct host_replay *out = replaying->out;
	struct play_answer answer = play(replaying, *setting);
	struct host_replay_row *row = &out->rows[out->count++];

	*row = (struct host_replay_row){
		.typed = setting->typed,
		.allocator = setting->allocator,
		.is_recorded = is_recorded,
		.why_not = why_not(replaying, answer.status),
		.end_bytes = answer.end_bytes,
		.peak_bytes = answer.peak_bytes,
		.trimmed_bytes = answer.trimmed_bytes,
	};
	if (row->why_not)
		row->end_bytes = row->peak_bytes = row->trimmed_bytes = CUF_UNKNOWN;
	if (replaying->options->progress)
		replaying->options->progress(replaying->options->argument,
					     (double)out->count / (double)replaying->planned);
	return answer;
}

/*
 * The recorded setting, played with large blocks written as a whole. If that is more than was
 * recorded, it is played again with none of them written, and the truth is in between.
 */
static void play_recorded(struct replaying *replaying, const struct host_setting *setting)
{
	struct host_replay *out = replaying->out;
	uint64_t recorded = out->recorded_bytes;
	struct play_answer most, least;

	if (replaying->options->progress) /* a play may take many seconds */
		replaying->options->progress(replaying->options->argument, 0);
	replaying->limits.touched_1024th = PLAY_TOUCHED_ALL;
	most = play(replaying, *setting);
	replaying->recorded_play_ms = most.seconds_1000th;
	if (most.status == PLAY_ENDED && is_known(recorded) && replaying->history.large_bytes &&
	    (double)most.end_bytes > CALIBRATE_ABOVE * (double)recorded) {
		replaying->limits.touched_1024th = 0;
		least = play(replaying, *setting);
		if (least.status == PLAY_ENDED && least.end_bytes < most.end_bytes)
			replaying->limits.touched_1024th =
				(uint32_t)(PLAY_TOUCHED_ALL *
					   subtract_to_zero(recorded, least.end_bytes) /
					   (most.end_bytes - least.end_bytes));
	}
	out->touched = (double)replaying->limits.touched_1024th / PLAY_TOUCHED_ALL;
	add_row(replaying, setting, true);
}

/* ---- all rows ---- */

static int by_end(const void *a, const void *b)
{
	const struct host_replay_row *left = a, *right = b;

	if (left->end_bytes != right->end_bytes)
		return left->end_bytes < right->end_bytes ? -1 : 1;
	return strcmp(left->typed, right->typed);
}

static void describe(struct host_replay *out, const struct history *history)
{
	out->estimated = history->estimated;
	out->complete = history->complete;
	out->live_bytes = history->live_bytes;
	out->peak_live_bytes = history->peak_live_bytes;
	out->begun_blocks = history->begun_blocks;
	out->left_out_count = history->left_out_count;
	out->step_count = history->count;
	out->thread_count = history->thread_count;
}

static void play_settings(struct replaying *replaying, const struct host_setting *recorded,
			  const struct host_setting *settings, size_t count)
{
	struct host_replay *out = replaying->out;

	replaying->planned = count + 1;
	out->rows = arena_zeroed(replaying->arena, count + 1, sizeof *out->rows);
	play_recorded(replaying, recorded);
	for (size_t i = 0; i < count; i++)
		if (strcmp(settings[i].typed, recorded->typed))
			add_row(replaying, &settings[i], false);
	qsort(out->rows + 1, out->count - 1, sizeof *out->rows, by_end);
}

static void set_limits(struct replaying *replaying)
{
	const struct host_replay_options *options = replaying->options;

	replaying->limits.seconds = options->seconds_each ? options->seconds_each : SECONDS_EACH;
	replaying->limits.resident_bytes =
		options->resident_most ? options->resident_most :
					 (uint64_t)((double)memory_available() * SPARE_SHARE);
}

static const char *cannot_play(const struct run_process *process)
{
	if (process->reader->header.options_host_mode == CUF_HOST_OFF)
		return "malloc was not recorded (host=off)";
	return NULL;
}

bool host_replay_run(const struct run_process *process, const struct host_replay_options *options,
		     struct arena *arena, struct host_replay *out, const char **why)
{
	struct replaying replaying = { .options = options, .arena = arena, .out = out };
	struct host_setting recorded, typed, *settings = &typed;
	size_t count = 1;

	*out = (struct host_replay){ .recorded_bytes = recorded_resident(&process->meta),
				     .why_not = cannot_play(process) };
	if (options->set && !host_setting_parse(options->set, arena, &typed, why))
		return false;
	if (!out->why_not && !host_setting_recorded(&process->meta, arena, &recorded,
						    &out->why_not))
		out->why_not = out->why_not ? out->why_not : "its allocator is unknown";
	if (out->why_not)
		return true;
	if (!options->set)
		settings = host_settings(arena, options->all, &count);
	history_read(&replaying.history, process->reader, &process->meta);
	describe(out, &replaying.history);
	replaying.history_fd = replaying.history.count ? history_file(&replaying.history) : -1;
	if (!replaying.history.count)
		out->why_not = "the recording has no event of malloc";
	else if (replaying.history_fd < 0)
		out->why_not = arena_format(arena, "the history could not be passed on: %s",
					    strerror(errno));
	history_fini(&(struct history){ .steps = replaying.history.steps });
	replaying.history.steps = NULL;
	set_limits(&replaying);
	if (!out->why_not) {
		play_settings(&replaying, &recorded, settings, count);
		close(replaying.history_fd);
	}
	return true;
}
