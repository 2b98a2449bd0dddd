/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of sampled host blocks. expm1 is slow, so the last mean has a table. */
#include "analysis/recording/host_weight.h"

#include <math.h>
#include "interpose/abi/format.h"
#include "analysis/base/numbers.h"

enum { TABLES_MAX = 64 };
#define MEAN_MAX ((uint64_t)1 << 40) /* beyond any setting: keeps weights finite */

/* The chance that a block of this size was sampled, by a Poisson process over bytes. */
double host_weight_chance(uint64_t bytes, uint64_t mean_bytes)
{
	if (!mean_bytes || !bytes || bytes >= CUF_SAMPLE_EXACT_BYTES)
		return 1;
	return -expm1(-(double)bytes / (double)(least_of(mean_bytes, MEAN_MAX)));
}

/* Bytes that a sampled block stands for: its size divided by its chance. */
uint64_t host_weight_bytes(uint64_t bytes, uint64_t mean_bytes)
{
	static uint64_t table[CUF_SAMPLE_EXACT_BYTES], table_mean, tables;
	if (!mean_bytes || !bytes || bytes >= CUF_SAMPLE_EXACT_BYTES)
		return bytes;
	if (table_mean != mean_bytes) {
		if (tables == TABLES_MAX) /* a recording has one mean or a few; more is damage */
			return (uint64_t)llround((double)bytes /
						 host_weight_chance(bytes, mean_bytes));
		tables++;
		table_mean = mean_bytes;
		for (uint64_t b = 0; b < CUF_SAMPLE_EXACT_BYTES; b++)
			table[b] =
				b ? (uint64_t)llround((double)b / host_weight_chance(b, mean_bytes))
				  : 0;
	}
	return table[bytes];
}

uint64_t host_weight_count(uint64_t bytes, uint64_t mean_bytes)
{
	double chance = host_weight_chance(bytes, mean_bytes);
	return chance < 1 ? (uint64_t)llround(1 / chance) : 1;
}
