/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which phases and requests of the program are open, so that an incident can state what was going
 * on. A thread's phases are nested in stacks, one for each domain; phases of different domains may
 * end in any order. Ranges and requests have ids and may end in another thread.
 *
 * Contract: the thread is entered; no lock, no allocation except one mapping. The tables are
 * bounded: where one is full, the oldest entry is replaced, since only an incident would have
 * needed it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "interpose/abi/format.h"
#include "interpose/abi/phase.h"
#include "interpose/process/thread.h"

/*
 * A level of a thread's phases. is_written: whether its beginning became an event; its end does too
 * then.
 */
struct cuf_phase_level {
	uint32_t name;       /* a number of phase_names.h */
	uint32_t stack;      /* the domain's, any number */
	bool is_written;
};

/* Returns the depth of the level in its stack, from 0; -1: no memory. */
int cuf_phase_levels_push(const struct cuf_thread_state *thread,
			  const struct cuf_phase_level *level);
/* True when the thread has no room for another level: it is only counted then. */
bool cuf_phase_levels_are_full(const struct cuf_thread_state *thread);
/*
 * Removes the innermost level of a stack. Returns its depth, -1: none. *level: what it was;
 * is_written is false for a level that was only counted.
 */
int cuf_phase_levels_pop(const struct cuf_thread_state *thread, uint32_t stack,
			 struct cuf_phase_level *level);

enum cuf_open_table { CUF_OPEN_RANGES, CUF_OPEN_REQUESTS, CUF_OPEN_TABLES };

struct cuf_open_phase {
	uint64_t id, seq;
	uint32_t tid, name;
};

/* Ids of the program and of other tools may be equal numbers. */
void cuf_open_add(enum cuf_open_table table, enum cuf_phase_source source,
		  const struct cuf_open_phase *phase);
/* False: it was not open. */
bool cuf_open_take(enum cuf_open_table table, enum cuf_phase_source source, uint64_t id,
		   uint32_t *name);

/* Fills phase, request_phase and request_id. */
void cuf_phases_at_incident(struct cuf_incident *incident);
