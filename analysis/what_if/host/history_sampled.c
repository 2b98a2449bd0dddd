/* SPDX-License-Identifier: Apache-2.0 */
/* Samples to blocks: first each sample with its begin and end, then its copies. */
#include "analysis/what_if/host/history_sampled.h"

#include <stdlib.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/sort.h"
#include "analysis/base/xalloc.h"
#include "analysis/recording/host_weight.h"

#define LIVES UINT64_MAX
enum { SLICES = 50000, SLICE_BYTES_MIN = 256 << 10 };

/* A sampled block. Times are bytes that the process had allocated by then. */
struct sample {
	uint64_t born, dead;      /* dead: LIVES */
	uint64_t from, to;        /* where its copies are born */
	uint64_t copies;
	const struct timed_step *taken, *freed; /* freed: NULL */
	uint32_t previous;        /* sample of the same call site, + 1; 0: none */
};

struct spread {
	struct sample *samples;   /* by number of block */
	size_t count;
	uint64_t end;
};

struct copied_step {
	uint64_t at, thread;
	struct play_step step;
};

static void read_samples(struct spread *spread, const struct lifetimes *lifetimes)
{
	struct hash_index last;
	uint64_t clock = 0;

	hash_index_init(&last, 256);
	for (size_t i = 0; i < lifetimes->count; i++) {
		const struct timed_step *step = &lifetimes->steps[i];
		struct sample *sample = &spread->samples[step->step.block];
		uint32_t *site;

		if (step->step.op == PLAY_FREE) {
			sample->dead = clock;
			sample->freed = step;
			continue;
		}
		if (i >= lifetimes->begun_count)
			clock += host_weight_bytes(step->step.bytes, step->mean_bytes);
		site = hash_index_place(&last, (uint64_t)step->step.thread << 32 | step->stack);
		*sample = (struct sample){
			.born = clock, .dead = LIVES, .from = clock, .to = clock,
			.copies = host_weight_count(step->step.bytes, step->mean_bytes),
			.taken = step, .previous = *site,
		};
		*site = step->step.block + 1;
	}
	spread->end = clock;
	hash_index_fini(&last);
}

/* Neighbours of one call site share the time between them. The first one's copies begin as long
 * before it as they end after it. */
static void share_time(struct spread *spread, const struct lifetimes *lifetimes)
{
	for (size_t i = lifetimes->begun_count; i < lifetimes->count; i++) {
		struct sample *sample, *previous;
		uint64_t middle;

		if (lifetimes->steps[i].step.op == PLAY_FREE)
			continue;
		sample = &spread->samples[lifetimes->steps[i].step.block];
		if (!sample->previous)
			continue;
		previous = &spread->samples[sample->previous - 1];
		middle = previous->born + (sample->born - previous->born) / 2;
		if (previous->from == previous->to && !previous->previous)
			previous->from -= middle - previous->born < previous->from ?
						  middle - previous->born : previous->from;
		previous->to = sample->from = middle;
		sample->to = sample->born;
	}
}

static uint64_t steps_of(const struct sample *sample)
{
	return sample->copies * (sample->freed ? 2 : 1);
}

/* How long a block must have lived to be played. */
static uint64_t shortest_kept(const struct spread *spread, size_t most)
{
	uint64_t shortest = 0, steps;

	for (;;) {
		steps = 0;
		for (size_t i = 0; i < spread->count && steps <= most; i++) {
			const struct sample *sample = &spread->samples[i];

			if (sample->taken && (sample->dead == LIVES ||
					      sample->dead - sample->born >= shortest))
				steps += steps_of(sample);
		}
		if (steps <= most || shortest > UINT64_MAX / 4)
			return shortest;
		shortest = shortest ? shortest * 2 : 1 << 20;
	}
}

/* Where even those that live on are too many, fewer and larger copies stand for a sample. */
static uint64_t copies_within(uint64_t copies, uint64_t room)
{
	return copies <= room ? copies : room;
}

static size_t copy_sample(const struct spread *spread, const struct sample *sample,
			  struct copied_step *out, uint32_t *block, size_t room)
{
	uint64_t copies = copies_within(sample->copies, room / 2);
	uint64_t width = sample->to - sample->from;
	struct play_step taken = sample->taken->step;
	size_t count = 0;

	if (copies)
		taken.bytes *= sample->copies / copies;

	for (uint64_t i = 0; i < copies; i++, (*block)++) {
		uint64_t at = sample->from + (uint64_t)((double)width * ((double)i + 0.5) /
							(double)copies);

		out[count] = (struct copied_step){ at, taken.thread, taken };
		out[count++].step.block = *block;
		if (!sample->freed)
			continue;
		at += sample->dead - sample->born;
		out[count] = (struct copied_step){ at < spread->end ? at : spread->end,
						   sample->freed->step.thread,
						   sample->freed->step };
		out[count++].step.block = *block;
	}
	return count;
}

/* By time; within a slice of it thread by thread, so that threads do not alternate at each step. */
static void order_copies(struct copied_step *copied, size_t count, uint64_t end)
{
	uint64_t slice = end / SLICES + SLICE_BYTES_MIN;

	sort_by_number(copied, count, sizeof *copied, offsetof(struct copied_step, at));
	for (size_t i = 0; i < count; i++)
		copied[i].at /= slice;
	sort_by_number(copied, count, sizeof *copied, offsetof(struct copied_step, thread));
	sort_by_number(copied, count, sizeof *copied, offsetof(struct copied_step, at));
}

void history_spread(struct history *history, const struct lifetimes *lifetimes, size_t most)
{
	struct spread spread = { .count = lifetimes->block_count };
	struct copied_step *copied = xalloc_zeroed(most + 1, sizeof *copied);
	uint64_t shortest;
	size_t count = 0;

	spread.samples = xalloc_zeroed(spread.count + 1, sizeof *spread.samples);
	read_samples(&spread, lifetimes);
	share_time(&spread, lifetimes);
	shortest = shortest_kept(&spread, most);
	for (size_t i = 0; i < spread.count; i++) {
		const struct sample *sample = &spread.samples[i];

		if (!sample->taken)
			continue;
		if (sample->dead != LIVES && sample->dead - sample->born < shortest)
			history->left_out_count += sample->copies;
		else
			count += copy_sample(&spread, sample, copied + count,
					     &history->block_count, most - count);
	}
	order_copies(copied, count, spread.end);
	history->steps = xalloc_zeroed(count + 1, sizeof *history->steps);
	for (size_t i = 0; i < count; i++)
		history->steps[i] = copied[i].step;
	history->count = count;
	free(copied);
	free(spread.samples);
}
