/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything a report needs, derived from one recording or from a directory of recordings (one
 * run): plain data, no printing, no symbol names. explain/facts_build.h builds it, the views
 * format it. Each part has a header of its own, next to the file that fills it.
 *
 * Contract of all parts. Whatever is reachable from struct facts lives as long as it does; stacks
 * point into the mapped recording. Nothing changes after the build, so any number of threads may
 * read it. An array and its count are one pair; an empty array may be NULL; strings are not NULL
 * unless a comment states it, and have whatever bytes the kernel reported.
 * Units: bytes and counts; `_ns` are CLOCK_REALTIME nanoseconds, so recordings of several hosts
 * line up; durations are `_s` (double) or `_ms`. Unknown is CUF_UNKNOWN for 64-bit quantities and
 * times, NAN for doubles; it is never 0. Devices are indices into facts.devices, processes into
 * facts.processes; FACT_NONE is "none".
 */
#pragma once

#include "analysis/facts/coverage.h"
#include "analysis/facts/device.h"
#include "analysis/facts/incident.h"
#include "analysis/facts/live.h"
#include "analysis/facts/process.h"
#include "analysis/facts/what_if.h"
#include "analysis/growth/growth.h"

struct run;

struct facts {
	const char *path; /* as requested */
	size_t run_count, run_number; /* runs in that directory, by start; which one this is */
	struct fact_process *processes; /* by start */
	size_t process_count;
	struct fact_device *devices; /* by ordinal */
	size_t device_count;
	struct fact_incident *incidents; /* by time */
	size_t incident_count;
	struct fact_site
		*leaks; /* live sites: CLASS_LEAK first, then CLASS_GROWING, each by bytes */
	size_t leak_count;
	struct fact_site *growth; /* sites that grew, by grown_bytes descending */
	size_t growth_count;
	struct fact_coverage coverage;
	struct fact_moment moment; /* of the run; each device has its own */
	uint32_t focus; /* the process that the first screen is about */
	uint64_t fatal_incident; /* id of the last fatal one of the process that failed first; 0
				    none */
	struct fact_process_group group;
	struct fact_what_ifs what_ifs; /* settings that were played for the fatal incident */
	/* explain/cause.h: of the fatal incident, else of how the run ended or of what grows;
	 * NULL: nothing wrong found */
	const struct fact_cause *cause;
	/* one of leaks: the largest finding that is about other memory than the cause, and
	 * stands by itself; NULL: none */
	const struct fact_site *also;
	/* of a run that still runs, at a moment that is no failure; NULL */
	const struct judgement *judgement;
	uint64_t events_recorded, events_overwritten, events_lost;
	uint64_t recorded_bytes; /* of all files that were read */
	/* The open recordings, in the order of processes[], for what walks over events or blocks.
	 * Call sites in them are merged already. */
	struct run *run;
	struct arena *arena; /* of the run: what the facts refer to */
	struct facts_store *store; /* private to explain/facts_build.c */
};

/* The moment to report for; AUTO: the fatal incident, else the end. */
enum facts_at {
	FACTS_AT_AUTO, FACTS_AT_NOW, FACTS_AT_END, FACTS_AT_PEAK, FACTS_AT_INCIDENT, FACTS_AT_TIME
};

struct run_catalog;
struct symbols;
struct facts_options {
	enum facts_at at;
	uint64_t at_value; /* INCIDENT: id; TIME: ns since the run's first process started */
	size_t run; /* of a directory of several, from 1; 0: the last one */
	uint32_t pid; /* only this process of the run; 0: all */
	/* Borrowed, of the path: which files the run has; NULL: all recordings are searched. */
	const struct run_catalog *catalog;
	size_t sites_max; /* rows of leaks and of growth; 0: 1000 */
	bool without_replay; /* no what_ifs */
	bool whole_replay; /* for whoever plays the requests in full: facts_trace instead */
	bool all_peaks; /* for whoever asks for the peak of each group of memory afterwards */
	double warm_up_s; /* analysis/explain/judge.h; 0: the usual */
	unsigned threads; /* 0: as many as there are CPUs; the facts are the same */
	/* Borrowed: function names that show what blocks are for; NULL: only the recording's. */
	struct symbols *symbols;
};
