/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that gates, baselines and diffs compare, taken from one run: the value of each
 * measure, what each call site held, and the environment.
 *
 * Contract: measure_run always fills *out, freed by measured_free. facts (built with all_peaks) and
 * symbols are borrowed and outlive it. Sites are merged by identity and group, over all processes,
 * largest first. The events of the recordings behind the facts are read again.
 */
#pragma once

#include "analysis/gate/site_name.h"

struct measured_site {
	const char *identity;
	enum gate_group group;
	uint64_t peak_bytes, peak_count, end_bytes, end_count;
	struct fact_stack stack; /* one of those that have this identity */
};

struct measured {
	const struct facts *facts;
	const struct facts *peak; /* devices[] as of the peak of each; NULL: of one moment */
	struct arena *arena;     /* its own */
	struct naming naming;
	struct gate_value values[MEASURE_MAX];
	struct measured_site *sites;
	size_t site_count;
	struct gate_environment environment;
	const char *program;     /* base name of the first process's executable */
};

void measure_run(struct measured *out, const struct facts *facts, struct symbols *symbols);
void measured_free(struct measured *measured);

/* One moment only: the facts were built for it. The sites hold the same at peak and end, and only
 * the ends of groups are known. */
void measure_moment(struct measured *out, const struct facts *facts, struct symbols *symbols);

struct fact_site;
enum gate_group measure_group_of(const struct fact_site *site); /* never PYTHON */
/* Page-locked memory belongs to a device and is host memory. */
bool measure_is_of_device(const struct fact_site *site);

/* What a phase or marked request of this name needed above what was live at its begin, or what
 * stayed at its end: the most of any of them. */
struct gate_value measure_phase(const struct measured *measured, enum gate_group group,
				bool at_end, const char *phase);

/* Why the run as a whole cannot be judged: sentences in the arena. */
size_t measure_gaps(const struct measured *measured, const char *sentences[], size_t most);
