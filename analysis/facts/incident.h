/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that failed, with its retries and the state of memory at that moment.
 * Contract: as in facts.h. Figures are those of the last attempt unless a comment states otherwise.
 */
#pragma once

#include "analysis/measure/owners.h"
#include "analysis/facts/limit.h"
#include "analysis/facts/phase.h"
#include "analysis/replay/incidents.h"

struct fact_cause;

enum fact_tristate { FACT_NO = 0, FACT_YES = 1, FACT_CANNOT_TELL = 2 };

struct fact_attempt {
	uint64_t number; /* in the recording */
	uint64_t time_ns, seq;
	uint64_t requested_bytes; /* CUF_UNKNOWN: not sized */
	uint64_t free_bytes, total_bytes;
	uint32_t result; /* CUresult */
	const char *api, *driver_api;
};

struct fact_live_site {
	struct fact_stack stack;
	uint32_t kind;
	uint64_t bytes, count;
};

struct fact_incident {
	uint64_t id; /* in the run, from 1, by time */
	enum fact_outcome outcome;
	const char *outcome_why; /* one clause: the rule that decided */
	uint64_t time_ns;
	uint32_t process, pid, tid;
	uint32_t device; /* index; FACT_NONE: host */
	uint32_t kind; /* enum cuf_kind that was requested */
	bool is_request; /* false: a launch or a module load, which has no size */
	const char *api; /* as called: the runtime's name when it came that way */
	const char *driver_api;
	uint32_t result;
	uint64_t seq;
	uint64_t requested_bytes; /* of the first attempt, before any attempt asked for less */
	uint64_t free_bytes, total_bytes;
	struct fact_attempt *attempts; /* the first one included */
	size_t attempt_count;
	struct fact_layer largest_free[LAYER_MAX];
	enum fact_tristate fits_if_packed;
	uint64_t packed_bytes; /* free memory if every gap were closed, at most; CUF_UNKNOWN */
	uint64_t rounded_bytes; /* of large blocks, which packing would not give */
	struct fact_stack stack;
	struct fact_owner_row *owners; /* of its device, at that moment */
	size_t owner_count;
	uint64_t live_bytes[16], live_count[16]; /* by enum cuf_kind, as the recorder counted */
	const struct fact_live_site *sites; /* the largest live sites at that moment */
	size_t site_count;
	uint64_t rss_bytes, cgroup_bytes, cgroup_max_bytes, host_live_bytes;
	struct fact_limit limits[LIMIT_MAX]; /* of its process, by enum fact_limit_kind */
	enum fact_limit_kind refused_by; /* of host memory; LIMIT_NONE */
	uint64_t resolved_ns; /* when a retry served it; CUF_UNKNOWN */
	enum fact_basis basis; /* of the figures that the replay gives */
	/* the moment that is judged: after the frees of the failed request itself; mostly seq */
	uint64_t settled_seq;
	uint64_t framework_requested_bytes; /* by the framework's caller; CUF_UNKNOWN */
	uint64_t framework_allocated_bytes, framework_reserved_bytes; /* CUF_UNKNOWN */
	/* a request made of chunks: those that were freed again, and the one that failed */
	uint64_t least_requested_bytes;
	/* in the recording: of the record that describes the moment, the last attempt's or the
	 * framework's */
	uint64_t number;
	const char *phase; /* innermost named phase of its thread, else of the process */
	const char *request_phase; /* its open request; NULL */
	uint64_t request_id; /* CUF_UNKNOWN */
	enum fact_phase_source phase_source;
	enum fact_basis phase_basis;
	const struct fact_cause *cause; /* explain/cause.h; NULL: not judged */
};
