/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the passes of facts/ and explain/ share. Only they see struct build: the measuring rooms
 * below take what they need as arguments.
 *
 * Contract. explain/facts_build.c runs the passes; its table states the order and which part of
 * struct facts each pass fills. A pass reads what earlier passes filled and writes only its part.
 * Everything that struct facts refers to is in the arena of the run; the rest of struct build
 * ends with facts_build.
 */
#pragma once

#include "analysis/facts/passes/device_groups.h"
#include "analysis/facts/facts.h"
#include "analysis/growth/phases.h"
#include "analysis/replay/run.h"
#include "analysis/replay/sweep.h"

struct event_pass;
struct framework_marks;
struct heap_moment;
struct heap_totals;
struct roles;
struct trace_walk;

/* A moment as the replay needs it. */
struct moment {
	enum fact_moment_kind kind;
	uint32_t process;
	uint64_t seq; /* in that process; CUF_UNKNOWN: now */
	uint64_t time_ns; /* CLOCK_REALTIME; CUF_UNKNOWN: now */
	const struct cuf_incident *incident; /* NULL: none, or its record was overwritten */
	uint64_t incident_id;
};

enum { LISTENERS = 2 };

struct build {
	struct run *run;
	struct facts *facts;
	struct facts_options options;
	struct arena *arena;
	struct exit_reason *exit_reasons; /* by process; build_processes */
	struct ladders *ladders; /* by process; build_incidents */
	struct device_group *groups; /* by facts.devices; build_groups */
	size_t group_count;
	struct moment moment; /* of the run; build_moment */
	/* by process; build_sites, for build_host; of maps, what changed after the moment */
	struct heap_totals *host_memory;
	struct fact_maps *host_maps;
	/* by process; build_moment, where --at=peak is asked for, else NULL */
	struct heap_moment *host_peaks;
	/* by process; build_sites */
	struct hooks_used *hooks_used;
	struct quiet_marks *quiet;
	/* Takes part in the second sweep of a process; facts_build. What it makes of it, of one
	 * process or by process: */
	void (*listen)(struct build *build, uint32_t process,
		       struct sweep_consumer consumers[LISTENERS]);
	struct trace_walk *trace;
	struct event_pass **event_passes;
	/* caches by process, filled at the first query */
	struct framework_marks **marks;
	struct roles **roles;
};

/* run and facts are borrowed, options may be NULL; ended by build_end. */
struct build build_begin(struct run *run, struct facts *facts, const struct facts_options *options);
void build_end(struct build *build);

/* The passes. */
void build_processes(struct build *build);
void build_incidents(struct build *build);
void build_process_group(struct build *build);
void build_moment(struct build *build);
void build_peaks(struct build *build);
void build_devices(struct build *build);
void build_live_moments(struct build *build);
void build_incident_views(struct build *build);
void build_sites(struct build *build);
void build_host(struct build *build);
void build_coverage(struct build *build);

/* ---- the moment (moment.c) ---- */

/* The moment that the options ask for, or the automatic one; after build_groups. */
struct moment moment_asked(struct build *build);

/* The sequence number at which a process stood at a moment. False: it had not started, or had
 * ended. */
bool process_at(const struct build *build, uint32_t process, const struct moment *moment,
		uint64_t *seq);
/* The moment of the run in this process; its end where it was not there then. */
uint64_t seq_at_moment(const struct build *build, uint32_t process);
/* The same for its host events: CLOCK_MONOTONIC; CUF_UNKNOWN: its end. */
uint64_t host_time_of(const struct build *build, uint32_t process);
/* When host memory ran out in it, if that is the moment: CLOCK_REALTIME; CUF_UNKNOWN. */
uint64_t host_failed_at(const struct build *build, uint32_t process);
/* The same as host_time_of to the event where the moment is the peak of host memory. */
struct heap_moment host_moment_of(const struct build *build, uint32_t process);
/* The moment of one device: its last fatal incident, else the run's, else its end. */
struct moment moment_of_device(struct build *build, uint32_t device);

/* Which process of the run a report is about, where no request for memory was fatal
 * (main_process.c). device_bytes: by process, what it held of the devices at its end. The run has
 * at least one. The same run always has the same answer. */
uint32_t main_process(const struct facts *facts, const uint64_t *device_bytes);

/* ---- what build_sites sweeps for ---- */

/* The phases of a process (phase_facts.c): phases_begin, a sweep, phases_turn, a sweep, phases_end,
 * which fills the facts. */
enum { PHASES_FIRST = 3, PHASES_AGAIN = 4 };
struct phase_making;
struct phase_making *phases_begin(struct build *build, uint32_t process,
				  struct sweep_consumer first[PHASES_FIRST]);
void phases_turn(struct phase_making *making, struct sweep_consumer again[PHASES_AGAIN]);
void phases_end(struct phase_making *making);
/* Then: incidents[].phase, request. */
void phases_of_incidents(struct build *build);

/* Rows of call sites (site_facts.c); site_rows_end fills leaks[] and growth[]. most 0: as usual. */
struct site_rows;
struct site_rows *site_rows_new(size_t most);
void site_rows_add(struct site_rows *rows, struct build *build, uint32_t process,
		   const struct growth *growth);
void site_rows_end(struct site_rows *rows, struct build *build);

/* The functions that events came from (coverage.c). */
struct hooks_used { bool numbers[UINT16_MAX + 1]; };
struct sweep_consumer hooks_used_consumer(struct hooks_used *used);

/* ---- the host (host_facts.c) ---- */

/* host_time_of in CLOCK_REALTIME: which statistics of the allocators count. */
uint64_t host_report_time(const struct build *build, uint32_t process);
/* The largest free extent of the allocator behind our hooks. */
struct fact_layer host_layer_at(const struct build *build, uint32_t process, uint64_t time_ns);

/* ---- runtimes with a heap of their own (managed_heaps.c) ---- */

/* Fills owner, runtime and is_managed of a site whose stack is filled; a heap is no leak. */
void managed_owner(const struct build *build, struct fact_site *site);
/* After build_sites; of host, what is live and resident is filled. */
struct fact_heap managed_heap(const struct build *build, uint32_t process,
			      const struct fact_host *host);

/* Takes a map of an event after the moment back; after all of them: what was mapped then. */
void host_map_after(struct build *build, uint32_t process, const struct host_event *event);
struct fact_maps host_maps_at(struct build *build, uint32_t process);
/* After build_sites: shared_bytes of a process's sites. */
void shared_memory(struct build *build, uint32_t process);

/* ---- small ones ---- */

/* The basis of figures that a replay gives. */
static inline enum fact_basis basis_if_exact(bool exact)
{
	if (exact)
		return BASIS_OBSERVED;
	return BASIS_ESTIMATED;
}

/* ---- names (process_facts.c) ---- */

/* Fills the frames of a stack that has process and id. */
void stack_fill(const struct build *build, struct fact_stack *stack, uint64_t monotonic_ns);
/* The name of a hook id in a process; NULL. */
const char *hook_name(const struct build *build, uint32_t process, unsigned id);
