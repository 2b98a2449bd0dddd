/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of sampled host blocks. expm1 is slow, so each thread has a table of its last
 * mean, filled as sizes occur. */
#include "analysis/recording/host_weight.h"

#include <math.h>
#include <string.h>
#include "analysis/base/numbers.h"

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

uint64_t host_weight_drawn_bytes(uint64_t bytes, uint64_t mean_bytes)
{
	static _Thread_local uint64_t table[CUF_SAMPLE_EXACT_BYTES], table_mean, tables;

	if (table_mean != mean_bytes) {
		if (tables == TABLES_MAX) /* a recording has one mean or a few; more is damage */
			return weight_of(bytes, mean_bytes);
		tables++;
		table_mean = mean_bytes;
		memset(table, 0, sizeof table);
	}
	if (!table[bytes])
		table[bytes] = weight_of(bytes, mean_bytes);
	return table[bytes];
}
