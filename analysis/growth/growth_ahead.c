/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of batches: the thread fills the next one while the caller takes steps from another. */
#include "analysis/growth/growth_ahead.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

/* Together 400 KiB: they stay in the cache. Who waits is woken when half of them are there for it,
 * since to wake a thread costs as much as a batch. */
enum { BATCHES = 16, BATCH_STEPS = 512 };

struct batch {
	struct growth_step steps[BATCH_STEPS];
	size_t count;             /* 0: the source was at its end */
};

struct growth_ahead {
	struct growth_source source;
	struct batch batches[BATCHES];
	size_t at;                /* steps of the oldest batch that the caller has */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;     /* of all that follows */
	pthread_cond_t changed;
	size_t filled, taken;     /* batches since the source was rewound */
	bool stops;
};

struct growth_ahead *growth_ahead_begin(const struct growth_source *source)
{
	struct growth_ahead *ahead = xalloc_zeroed(1, sizeof *ahead);

	ahead->source = *source;
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->changed, NULL);
	return ahead;
}

/* The batch to fill, or NULL: stop. */
static struct batch *wait_for_room(struct growth_ahead *ahead)
{
	struct batch *batch = NULL;

	pthread_mutex_lock(&ahead->lock);
	while (!ahead->stops && ahead->filled - ahead->taken == BATCHES)
		pthread_cond_wait(&ahead->changed, &ahead->lock);
	if (!ahead->stops)
		batch = &ahead->batches[ahead->filled % BATCHES];
	pthread_mutex_unlock(&ahead->lock);
	return batch;
}

static void *fill_batches(void *argument)
{
	struct growth_ahead *ahead = argument;
	struct batch *batch;

	do {
		batch = wait_for_room(ahead);
		if (!batch)
			break;
		batch->count = ahead->source.read(ahead->source.state, batch->steps, BATCH_STEPS);
		pthread_mutex_lock(&ahead->lock);
		ahead->filled++;
		if (!batch->count || ahead->filled - ahead->taken >= BATCHES / 2)
			pthread_cond_signal(&ahead->changed);
		pthread_mutex_unlock(&ahead->lock);
	} while (batch->count);
	return NULL;
}

static void end_thread(struct growth_ahead *ahead)
{
	if (!ahead->has_thread)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->stops = true;
	pthread_cond_signal(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
	pthread_join(ahead->thread, NULL);
	ahead->has_thread = ahead->stops = false;
}

static void rewind_ahead(void *state)
{
	struct growth_ahead *ahead = state;

	end_thread(ahead);
	ahead->source.rewind(ahead->source.state);
	ahead->filled = ahead->taken = ahead->at = 0;
	ahead->has_thread = !pthread_create(&ahead->thread, NULL, fill_batches, ahead);
}

/* The oldest batch with steps that the caller does not have; at the end, the empty one. */
static const struct batch *oldest(struct growth_ahead *ahead)
{
	struct batch *batch = &ahead->batches[ahead->taken % BATCHES];

	pthread_mutex_lock(&ahead->lock);
	if (ahead->filled > ahead->taken && batch->count && ahead->at == batch->count) {
		batch = &ahead->batches[++ahead->taken % BATCHES];
		ahead->at = 0;
		if (ahead->filled - ahead->taken <= BATCHES / 2)
			pthread_cond_signal(&ahead->changed);
	}
	while (ahead->filled == ahead->taken)
		pthread_cond_wait(&ahead->changed, &ahead->lock);
	pthread_mutex_unlock(&ahead->lock);
	return batch;
}

static size_t read_ahead(void *state, struct growth_step *steps, size_t most)
{
	struct growth_ahead *ahead = state;
	const struct batch *batch;
	size_t count;

	if (!ahead->has_thread)
		return ahead->source.read(ahead->source.state, steps, most);
	batch = oldest(ahead);
	count = least_of(batch->count - ahead->at, most);
	memcpy(steps, batch->steps + ahead->at, count * sizeof *steps);
	ahead->at += count;
	return count;
}

static void drain_ahead(void *state)
{
	struct growth_ahead *ahead = state;

	end_thread(ahead);
	ahead->source.drain(ahead->source.state);
}

struct growth_source growth_ahead_source(struct growth_ahead *ahead)
{
	return (struct growth_source){ ahead, rewind_ahead, read_ahead, drain_ahead };
}

void growth_ahead_end(struct growth_ahead *ahead)
{
	if (!ahead)
		return;
	end_thread(ahead);
	pthread_cond_destroy(&ahead->changed);
	pthread_mutex_destroy(&ahead->lock);
	free(ahead);
}
