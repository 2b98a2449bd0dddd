/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A baseline: what one commit's runs held, by measure and by call site, with the spread over the
 * runs. It is also the form in which two runs are compared: a single run is a baseline of one.
 *
 * Contract: heap and arena memory, freed by baseline_free. baseline_add takes the figures of a run;
 * baseline_finish makes the spreads, and only after it measures and sites are valid. Sites are
 * sorted by group and identity. A measure is in the baseline when every run knew it. Of a site
 * that some runs do not have, these count 0; one that most runs do not have is left out.
 */
#pragma once

#include "analysis/gate/measured.h"

/* Smaller call sites are left out: they come and go with allocation order. */
#define BASELINE_SITE_BYTES 4096u

struct baseline_site {
	const char *identity;
	enum gate_group group;
	struct gate_spread peak, end;
};

struct baseline_record; /* a site in one run */

struct gate_baseline {
	struct arena *arena;
	uint64_t runs;
	const char *program;
	struct gate_environment environment;
	struct gate_spread measures[MEASURE_MAX]; /* runs 0: not known in every run */
	struct baseline_site *sites;
	size_t site_count;
	/* private, between baseline_add and baseline_finish */
	struct gate_value *values;
	size_t value_room;
	struct baseline_record *records;
	size_t record_count, record_room;
};

void baseline_begin(struct gate_baseline *baseline);
void baseline_add(struct gate_baseline *baseline, const struct measured *run);
/* A site of the run that is being added; texts are copied. */
void baseline_add_site(struct gate_baseline *baseline, const char *identity, enum gate_group group,
		       uint64_t peak_bytes, uint64_t end_bytes);
void baseline_finish(struct gate_baseline *baseline);
void baseline_free(struct gate_baseline *baseline);

/* values is sorted by this. */
struct gate_spread spread_of(uint64_t *values, size_t count);
