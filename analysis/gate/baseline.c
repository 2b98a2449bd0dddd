/* SPDX-License-Identifier: Apache-2.0 */
/* Medians and spreads over runs. */
#include "analysis/gate/baseline.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "interpose/abi/format.h"

struct baseline_record {
	const char *identity;
	enum gate_group group;
	uint64_t peak_bytes, end_bytes;
};

/* Of an even number, the mean of the two in the middle. */
static uint64_t median_of(const uint64_t *sorted, size_t count)
{
	uint64_t low = sorted[(count - 1) / 2], high = sorted[count / 2];

	return low + (high - low) / 2;
}

struct gate_spread spread_of(uint64_t *values, size_t count)
{
	struct gate_spread spread = { .runs = count };

	if (!count)
		return spread;
	qsort(values, count, sizeof *values, compare_uint64);
	spread.least = values[0];
	spread.most = values[count - 1];
	spread.median = median_of(values, count);
	for (size_t i = 0; i < count; i++)
		values[i] = most_of(values[i], spread.median) - least_of(values[i], spread.median);
	qsort(values, count, sizeof *values, compare_uint64);
	spread.mad = median_of(values, count);
	return spread;
}

void baseline_begin(struct gate_baseline *baseline)
{
	*baseline = (struct gate_baseline){ .arena = arena_new(), .program = "" };
}

static const char *copied(struct gate_baseline *baseline, const char *text)
{
	return arena_text(baseline->arena, text, strlen(text));
}

static void take_environment(struct gate_baseline *baseline, const struct measured *run)
{
	const struct gate_environment *from = &run->environment;

	baseline->program = copied(baseline, run->program);
	baseline->environment = (struct gate_environment){
		.gpu = copied(baseline, from->gpu),
		.gpu_bytes = from->gpu_bytes,
		.driver = copied(baseline, from->driver),
		.frameworks = copied(baseline, from->frameworks),
		.host_mode = copied(baseline, from->host_mode),
		.recorder = copied(baseline, from->recorder),
	};
}

void baseline_add_site(struct gate_baseline *baseline, const char *identity, enum gate_group group,
		       uint64_t peak_bytes, uint64_t end_bytes)
{
	if (peak_bytes < BASELINE_SITE_BYTES && end_bytes < BASELINE_SITE_BYTES)
		return;
	xalloc_grow(&baseline->records, baseline->record_count, &baseline->record_room,
		    sizeof *baseline->records);
	baseline->records[baseline->record_count++] = (struct baseline_record){
		copied(baseline, identity), group, peak_bytes, end_bytes
	};
}

void baseline_add(struct gate_baseline *baseline, const struct measured *run)
{
	if (!baseline->runs)
		take_environment(baseline, run);
	xalloc_grow(&baseline->values, baseline->runs, &baseline->value_room,
		    sizeof *baseline->values * MEASURE_MAX);
	memcpy(&baseline->values[baseline->runs * MEASURE_MAX], run->values, sizeof run->values);
	baseline->runs++;
	for (size_t i = 0; i < run->site_count; i++)
		baseline_add_site(baseline, run->sites[i].identity, run->sites[i].group,
				  run->sites[i].peak_bytes, run->sites[i].end_bytes);
}

static int by_identity(const void *a, const void *b)
{
	const struct baseline_record *left = a, *right = b;

	if (left->group != right->group)
		return left->group < right->group ? -1 : 1;
	return strcmp(left->identity, right->identity);
}

/* The records from `first` that are of one site. */
static struct baseline_site site_of(const struct gate_baseline *baseline, size_t first,
				    size_t count, uint64_t *room)
{
	const struct baseline_record *records = &baseline->records[first];
	struct baseline_site site = { records->identity, records->group, { 0 }, { 0 } };

	for (int which = 0; which < 2; which++) {
		memset(room, 0, baseline->runs * sizeof *room);
		for (size_t i = 0; i < count; i++)
			room[i] = which ? records[i].end_bytes : records[i].peak_bytes;
		if (which)
			site.end = spread_of(room, baseline->runs);
		else
			site.peak = spread_of(room, baseline->runs);
	}
	return site;
}

static void finish_sites(struct gate_baseline *baseline, uint64_t *room)
{
	size_t count = baseline->record_count, next;

	if (count)
		qsort(baseline->records, count, sizeof *baseline->records, by_identity);
	baseline->sites = arena_zeroed(baseline->arena, count, sizeof *baseline->sites);
	for (size_t i = 0; i < count; i = next) {
		for (next = i + 1; next < count && next - i < baseline->runs &&
				   !by_identity(&baseline->records[i], &baseline->records[next]);
		     next++)
			;
		baseline->sites[baseline->site_count] = site_of(baseline, i, next - i, room);
		/* what most runs did not have is a sample, or a matter of timing */
		if (baseline->sites[baseline->site_count].peak.median ||
		    baseline->sites[baseline->site_count].end.median)
			baseline->site_count++;
	}
}

static void finish_measures(struct gate_baseline *baseline, uint64_t *room)
{
	for (int m = 0; m < MEASURE_MAX; m++) {
		uint64_t known = 0;
		for (uint64_t run = 0; baseline->values && run < baseline->runs; run++) {
			const struct gate_value *value = &baseline->values[run * MEASURE_MAX +
									   (uint64_t)m];
			if (value->value != CUF_UNKNOWN && value->high != CUF_UNKNOWN)
				room[known++] = value->value;
		}
		if (known && known == baseline->runs)
			baseline->measures[m] = spread_of(room, known);
	}
}

void baseline_finish(struct gate_baseline *baseline)
{
	uint64_t *room;

	if (!baseline->runs)
		baseline->runs = 1; /* sites only: one moment */
	room = xalloc_zeroed(baseline->runs, sizeof *room);
	finish_measures(baseline, room);
	finish_sites(baseline, room);
	free(room);
	free(baseline->values);
	free(baseline->records);
	baseline->values = NULL;
	baseline->records = NULL;
	baseline->record_count = 0;
}

void baseline_free(struct gate_baseline *baseline)
{
	free(baseline->values);
	free(baseline->records);
	arena_free(baseline->arena);
	*baseline = (struct gate_baseline){ 0 };
}
