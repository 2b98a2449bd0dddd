/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights of sampled host blocks. expm1 is slow, so each mean has a table. Several threads read a
 * recording: a table is complete when they see it, does not change, and lives as long as the
 * process. It is not thread-local, as with a small stack no thread would start.
 */
#include "analysis/recording/host_weight.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

enum { TABLES_MAX = 64 };
#define MEAN_MAX ((uint64_t)1 << 40) /* beyond any setting: keeps weights finite */

/* The chance that a block of this size was sampled, by a Poisson process over bytes. */
double host_weight_drawn_chance(uint64_t bytes, uint64_t mean_bytes)
{
	return -expm1(-(double)bytes / (double)(least_of(mean_bytes, MEAN_MAX)));
}

static uint64_t weight_of(uint64_t bytes, uint64_t mean_bytes)
{
	return (uint64_t)llround((double)bytes / host_weight_drawn_chance(bytes, mean_bytes));
}

struct weights {
	uint64_t mean_bytes;
	struct weights *older;
	uint64_t of[CUF_SAMPLE_EXACT_BYTES]; /* by size; of[0] is 0 */
};
static _Atomic(struct weights *) newest;

/* NULL: there is none. */
static const struct weights *weights_find(uint64_t mean_bytes)
{
	const struct weights *weights = atomic_load_explicit(&newest, memory_order_acquire);

	while (weights && weights->mean_bytes != mean_bytes)
		weights = weights->older;
	return weights;
}

/* A recording has one mean or a few. More is damage, and gets no table: NULL. */
static const struct weights *weights_make(uint64_t mean_bytes)
{
	static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
	static unsigned made;
	const struct weights *found;
	struct weights *fresh;

	pthread_mutex_lock(&making);
	found = weights_find(mean_bytes);
	if (!found && made < TABLES_MAX) {
		made++;
		fresh = xalloc_zeroed(1, sizeof *fresh);
		fresh->mean_bytes = mean_bytes;
		fresh->older = atomic_load(&newest);
		for (uint64_t bytes = 1; bytes < CUF_SAMPLE_EXACT_BYTES; bytes++)
			fresh->of[bytes] = weight_of(bytes, mean_bytes);
		atomic_store_explicit(&newest, fresh, memory_order_release);
		found = fresh;
	}
	pthread_mutex_unlock(&making);
	return found;
}

uint64_t host_weight_drawn_bytes(uint64_t bytes, uint64_t mean_bytes)
{
	const struct weights *weights = weights_find(mean_bytes);

	if (!weights)
		weights = weights_make(mean_bytes);
	return weights ? weights->of[bytes] : weight_of(bytes, mean_bytes);
}

/* A change is a text META_SAMPLE: its number is the new mean, its text the birth from which it
 * holds. */
struct host_means host_means_of(const struct reader *reader, const struct meta *meta)
{
	struct host_means means = { 0 };

	if (reader->header.options_host_mode == CUF_HOST_SAMPLED)
		means.first_bytes = reader->header.sample_mean_bytes;
	for (size_t i = 0;
	     means.first_bytes && i < meta->text_count && means.count < HOST_MEANS_MAX; i++) {
		const struct fact_meta_text *text = &meta->texts[i];
		if (text->type != CUF_META_SAMPLE || !text->number)
			continue;
		means.changes[means.count].birth = (uint32_t)strtoul(text->text, NULL, 10);
		means.changes[means.count++].mean_bytes = text->number;
	}
	return means;
}

/* The last change that is not later than the birth decides. Changes are in the order of time. */
uint64_t host_means_at(const struct host_means *means, uint32_t birth)
{
	uint64_t mean_bytes = means->first_bytes;
	for (unsigned i = 0; i < means->count && means->changes[i].birth <= birth; i++)
		mean_bytes = means->changes[i].mean_bytes;
	return mean_bytes;
}

uint64_t host_means_most(const struct host_means *means)
{
	uint64_t most = means->first_bytes;
	for (unsigned i = 0; i < means->count; i++)
		most = most_of(means->changes[i].mean_bytes, most);
	return most;
}
