/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes that fill struct facts, and what they ask of each other. facts/passes/assemble.c runs
 * them; its table states the order and what each one reads and fills.
 *
 * Contract. A pass reads the recordings (facts->run) and what earlier passes filled, writes only
 * its part of the facts, and returns what later passes need. By process: an array in the
 * order of facts.processes. Everything is in the arena of the facts unless a comment states it.
 */
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/growth/phases.h"
#include "analysis/measure/heap.h"
#include "analysis/replay/run.h"
#include "analysis/replay/sweep.h"

struct block_memory;

/* By process: how it ended. */
const struct exit_reason *build_processes(struct facts *facts);
void build_groups(struct facts *facts);
void build_incidents(struct facts *facts, const struct exit_reason *ends);
void build_process_group(struct facts *facts);
void build_moment(struct facts *facts, const struct facts_options *options);
void build_peaks(struct facts *facts);

/* Where the blocks of a device, and the host's of a process, are looked at. */
struct host_moment {
	struct heap_moment at; /* CLOCK_MONOTONIC */
	bool is_peak; /* --at=peak */
	/* host memory ran out in it, and that is the moment: CLOCK_REALTIME; CUF_UNKNOWN */
	uint64_t failed_ns;
};
struct moments {
	const struct fact_moment *of_device; /* by facts.devices */
	const struct host_moment *of_host; /* by process */
};
/* Whether the device is looked at as it was then: of many incidents the last ones are. views: how
 * many later ones have been. */
bool incident_has_view(const struct fact_incident *incident, size_t views);
/* Adds the events of a process after which its live blocks will be asked for, and sorts all. */
struct seqs { uint64_t *items; size_t count, room; };
void seqs_add(struct seqs *seqs, uint64_t seq); /* CUF_UNKNOWN adds nothing */
void moments_expected(const struct facts *facts, const struct facts_options *options,
		      const struct moments *moments, uint32_t process, struct seqs *seqs);
struct moments build_moments(struct facts *facts, const struct facts_options *options);
/* The moments of devices for whoever describes only those. */
const struct fact_moment *device_moments(const struct facts *facts,
					 const struct facts_options *options,
					 const struct fact_moment *of_run);

/* What the sweeps find of a process on their way. Heap memory. */
struct swept {
	struct heap_totals memory; /* malloc's live blocks */
	struct fact_maps maps; /* what changed after the moment */
	bool hooks[UINT16_MAX + 1]; /* functions that events came from, by hook id */
};
/* Takes part in the second sweep of each process; the recording is that of the process. */
enum { EVENT_PASSES = 8, LISTENERS = EVENT_PASSES + 1 };
struct listener {
	/* the event after which it needs what is live; CUF_UNKNOWN: none */
	uint64_t (*since)(void *state, const struct facts *facts, uint32_t process);
	/* leaking: the device where the process may leak; FACT_NONE */
	void (*begin)(void *state, const struct facts *facts, uint32_t process, uint32_t leaking,
		      struct sweep_consumer consumers[LISTENERS]);
	void *state;
};
/* By process. */
struct swept *build_sites(struct facts *facts, const struct facts_options *options,
			  const struct moments *moments, struct block_memory *memory,
			  const struct listener *listener);

void build_devices(struct facts *facts, const struct fact_moment *of_device,
		   struct block_memory *memory);
void build_incident_views(struct facts *facts, struct block_memory *memory);
void build_host(struct facts *facts, const struct moments *moments, const struct swept *swept);
struct fact_coverage coverage_of(const struct facts *facts, const struct swept *swept);

/* ---- the moment (moment.c) ---- */

/* The moment that the options ask for, or the automatic one; after build_groups. */
struct fact_moment moment_asked(const struct facts *facts, const struct facts_options *options);
/* The sequence number at which a process stood at a moment. False: it had not started, or had
 * ended. */
bool process_at(const struct facts *facts, uint32_t process, const struct fact_moment *moment,
		uint64_t *seq);

/* Which process of the run a report is about, where no request for memory was fatal
 * (main_process.c). device_bytes: by process, what it held of the devices at its end. The run has
 * at least one. The same run always has the same answer. */
uint32_t main_process(const struct facts *facts, const uint64_t *device_bytes);

/* ---- what build_sites sweeps for ---- */

/* The phases of a process (phase_facts.c): phases_begin, a sweep, phases_turn, a sweep, phases_end,
 * which fills the facts. */
enum { PHASES_FIRST = 3, PHASES_AGAIN = 4 };
struct phase_making;
struct phase_making *phases_begin(struct facts *facts, uint32_t process, struct quiet_marks *quiet,
				  struct sweep_consumer first[PHASES_FIRST]);
void phases_turn(struct phase_making *making, struct sweep_consumer again[PHASES_AGAIN]);
void phases_end(struct phase_making *making);
/* Then: incidents[].phase, request. */
void phases_of_incidents(struct facts *facts);

/* Rows of call sites (site_facts.c); site_rows_end fills leaks[] and growth[]. most 0: as usual. */
struct site_rows;
struct site_rows *site_rows_new(size_t most);
void site_rows_add(struct site_rows *rows, const struct facts *facts, struct block_memory *memory,
		   uint32_t process, const struct growth *growth);
void site_rows_end(struct site_rows *rows, struct facts *facts);

/* swept.hooks (coverage.c). */
struct sweep_consumer hooks_consumer(bool *hooks);

/* ---- the host (host_facts.c) ---- */

/* The largest free extent of the allocator behind our hooks; CLOCK_REALTIME. */
struct fact_layer host_layer_at(const struct facts *facts, uint32_t process, uint64_t time_ns);

/* ---- runtimes with a heap of their own (managed_heaps.c) ---- */

/* Fills owner, runtime and is_managed of a site whose stack is filled; a heap is no leak. */
void managed_owner(const struct facts *facts, struct fact_site *site);
/* After build_sites; of host, what is live and resident is filled. */
struct fact_heap managed_heap(const struct facts *facts, uint32_t process,
			      const struct fact_host *host);

/* Takes a map of an event after the moment back; after all of them: what was mapped then. */
void host_map_after(const struct facts *facts, uint32_t process, const struct host_event *event,
		    struct fact_maps *maps);
struct fact_maps host_maps_at(const struct facts *facts, uint32_t process,
			      const struct fact_maps *after);
/* After build_sites: shared_bytes of a process's sites; CLOCK_MONOTONIC. */
void shared_memory(const struct facts *facts, uint32_t process, uint64_t time_ns);

/* ---- small ones ---- */

/* The basis of figures that a replay gives. */
static inline enum fact_basis basis_if_exact(bool exact)
{
	if (exact)
		return BASIS_OBSERVED;
	return BASIS_ESTIMATED;
}
