/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of facts_build share. Private to the files that fill struct facts: process_facts.c, device_facts.c,
 * incident_facts.c, site_facts.c, host_facts.c, coverage.c, cause_facts.c, in that order, called by facts.c. Contract: everything in facts lies in
 * the arena of the run; what is here alone dies with facts_build.
 */
#ifndef ANALYSIS_FACTS_BUILD_H
#define ANALYSIS_FACTS_BUILD_H

#include "analysis/facts/facts.h"
#include "analysis/replay/incidents.h"
#include "analysis/device/owners.h"
#include "analysis/replay/run.h"

struct framework_marks;
struct roles;

struct device_member { uint32_t process, ordinal; };
struct device_group { struct device_member *members; size_t count, room; };

/* A moment as the replay needs it. */
struct moment {
	enum fact_moment_kind kind;
	uint32_t process;
	uint64_t seq;                     /* in that process; CUF_UNKNOWN: now */
	uint64_t time_ns;                 /* CLOCK_REALTIME; CUF_UNKNOWN: now */
	const struct cuf_incident *incident; /* NULL */
	uint64_t incident_id;
};

struct build {
	struct run *run;
	struct facts *facts;
	struct facts_options options;
	struct arena *arena;
	struct ending *endings;           /* by process */
	struct ladders *ladders;          /* by process */
	struct device_group *groups; size_t group_count; /* by facts.devices */
	struct moment moment;             /* of the run */
	struct framework_marks **marks;   /* by process; NULL: not asked yet */
	struct roles **roles;             /* by process; NULL: not asked yet */
};

/* One device at one moment. */
struct device_view {
	uint32_t process;                 /* whose rows are itemised */
	struct holding focus;
	struct levels levels;
	struct fact_owner_row *owners; size_t owner_count;
	uint64_t total_bytes;
	struct fact_layer layers[LAYER_MAX];
	bool exact;
};

void build_processes(struct build *build);
void build_groups(struct build *build);
void build_incidents(struct build *build);       /* all but what needs a device's view */
void build_process_group(struct build *build);    /* who failed first, who ended because of it, who stands out */
void build_phases(struct build *build);          /* and what incidents happened in */
void build_moment(struct build *build);
void build_devices(struct build *build);
void build_incident_views(struct build *build);
void build_sites(struct build *build);
void build_host(struct build *build);             /* the allocators, what is resident, and the host layer of devices and incidents */
void build_coverage(struct build *build);

/* Index into facts.devices; FACT_NONE. */
uint32_t group_of(const struct build *build, uint32_t process, unsigned ordinal);
/* The ordinal of a device in a process; CUF_DEVICE_NONE: it does not use it. */
unsigned ordinal_in(const struct build *build, uint32_t device, uint32_t process);
/* Where the moment of the run is in this process, for its host events; CUF_UNKNOWN: its end. CLOCK_MONOTONIC. */
uint64_t host_time_of(const struct build *build, uint32_t process);
/* Where a process stood at a moment: false when it was not there (not yet, or no longer). */
bool process_at(const struct build *build, uint32_t process, const struct moment *moment, uint64_t *seq);
struct moment moment_of_device(struct build *build, uint32_t device);
void device_view_at(struct build *build, uint32_t device, const struct moment *moment, struct device_view *view);
/* The recorder's record of an incident's moment, with what is known to have been free then. False: overwritten since. */
bool incident_at(const struct build *build, const struct fact_incident *incident, struct cuf_incident *out);
/* Fills the frames of a stack that has process and id. */
void stack_fill(const struct build *build, struct fact_stack *stack, uint64_t monotonic_ns);
/* The name of a hook id in a process; NULL. */
const char *hook_name(const struct build *build, uint32_t process, unsigned id);

#endif
