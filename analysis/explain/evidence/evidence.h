/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evidence for or against a cause, of one incident or of the end of one process: metrics (bytes,
 * counts) that sentences name, and signals, numbers that causes_table.c compares with thresholds.
 * evidence.def lists both. Nothing is judged here.
 *
 * Contract. An unknown metric is CUF_UNKNOWN, a signal that could not be measured is NAN; neither
 * is 0 for lack of data. A signal has the sequence numbers of up to four events that show it, or
 * the time of a sample. It is set once: only evidence_adjust changes it afterwards, in a copy.
 * Everything is in the arena of the run. device FACT_NONE: host memory. incident NULL: the end.
 */
#pragma once

#include "analysis/explain/evidence/demand.h"
#include "analysis/facts/passes/passes.h"

/* SETTING and FRACTION print as they are typed on a command line: 16384, 0.85. */
enum metric_unit {
	UNIT_BYTES,
	UNIT_COUNT,
	UNIT_PERCENT,
	UNIT_SECONDS,
	UNIT_BYTES_PER_SECOND,
	UNIT_SETTING,
	UNIT_FRACTION
};

enum metric {
#define METRIC(name, unit, what) METRIC_##name,
#include "analysis/explain/evidence/evidence.def"
	METRIC_MAX
};

enum signal {
#define SIGNAL(name, holds, holds_not) SIGNAL_##name,
#include "analysis/explain/evidence/evidence.def"
	SIGNAL_MAX
};

extern const struct metric_row {
	const char *name;
	enum metric_unit unit;
	const char *what; /* for help */
} metric_rows[METRIC_MAX];

extern const struct signal_row {
	const char *name;
	const char *words; /* when it holds */
	const char *words_not; /* when it does not */
} signal_rows[SIGNAL_MAX];

struct evidence_signal {
	double value; /* NAN: could not be measured */
	uint64_t seqs[4];
	size_t seq_count;
	uint64_t time_ns; /* CUF_UNKNOWN */
	uint32_t stack; /* the call site that it is about; 0 none */
};

struct evidence {
	const struct facts *facts;
	uint32_t process, device;
	const struct fact_incident *incident;
	uint64_t metrics[METRIC_MAX];
	struct evidence_signal signals[SIGNAL_MAX];
	const char *framework; /* as frameworks.h names it; "" none */
	const char *runtime; /* as runtimes.h names it; "" none */
	/* of metrics that the command line set: the option; of METRIC_neighbour: who it is */
	const char *options[METRIC_MAX];
	uint32_t kv_stack; /* call site of the largest family of a KV cache; 0 none */
	const char *const *lacks; /* sentences: what the recording does not show */
	size_t lack_count;
	double quality; /* 0 .. 1: how far the recording can be trusted */
	struct demand demand; /* of the device, at the failure */
	struct removal removals[REMOVAL_MAX]; /* what each would free; removals.c */
};

/* A sentence with its {metrics} filled in, {@metric} with the option that set it; NULL when one of
 * them is unknown. */
const char *evidence_words(const struct evidence *evidence, struct arena *arena, const char *words);

/* Is it known and above 0? */
bool evidence_holds(const struct evidence *evidence, enum signal signal);

/* For the files that fill it. Setting a signal twice is a bug; the second value is ignored. */
void evidence_set(struct evidence *evidence, enum signal signal, double value);
/* An event that shows it; at most four are kept. */
void evidence_show(struct evidence *evidence, enum signal signal, uint64_t seq);
/* How many signals were set twice since the program started. Tests expect 0. */
extern unsigned evidence_set_twice;

/* a / b; NAN when one is unknown or b is 0. */
double evidence_ratio(uint64_t a, uint64_t b);
