/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phases of a process in the report: what it marked (cuflight.h, NVTX) and what was inferred.
 * Contract: as in facts.h.
 */
#pragma once

#include "analysis/growth/phases.h"

/* Where a phase comes from: cuflight.h, NVTX, or what the memory of the process did. */
enum fact_phase_source { PHASE_MARK, PHASE_NVTX, PHASE_INFERRED, PHASE_SOURCE_MAX };
extern const char *const phase_source_names[PHASE_SOURCE_MAX]; /* mark nvtx inferred */

/* A stretch of a process's work. It begins and ends right after the events of these numbers. */
struct fact_phase {
	const char *name;
	enum fact_phase_source source;
	enum fact_basis basis;
	const char *why; /* inferred: a clause with the reason; else "" */
	uint32_t process;
	uint32_t tid; /* 0: of the whole process */
	uint32_t depth; /* enclosing phases of its thread */
	uint64_t begin_ns, end_ns; /* end CUF_UNKNOWN: open at the end of the recording, or lost */
	uint64_t begin_seq, end_seq;
	bool is_mark; /* a moment: the end is the begin */
	bool is_request;
	uint64_t request_id; /* CUF_UNKNOWN: no request */
	struct fact_stretch work;
};

/* All phases of one name and source. */
struct fact_phase_group {
	const char *name;
	enum fact_phase_source source;
	bool is_mark, is_request;
	uint64_t count, open; /* of those, without an end */
	uint64_t total_ns, longest_ns; /* of those with one */
	uint64_t peak_bytes; /* the highest; CUF_UNKNOWN */
	uint64_t rise_bytes; /* the largest peak over its start; CUF_UNKNOWN */
	uint64_t first_ns;
};

struct fact_process;
/* The innermost phase of this thread, else of the process, else of its first thread, else an
 * inferred one; no marks, no requests. tid 0: no thread in particular. NULL: nothing is known. */
const struct fact_phase *phase_at(const struct fact_process *process, uint32_t tid,
				  uint64_t time_ns);
/* The request that was open in this thread, else the only one of the process. NULL: none, or
 * several and none of this thread. */
const struct fact_phase *request_at(const struct fact_process *process, uint32_t tid,
				    uint64_t time_ns);
