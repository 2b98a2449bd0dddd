/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program says of its own work: phases (nested in a thread, or free), requests, marks. Each is an event; what is
 * open now is kept beside, so that an incident can say what was going on. NVTX goes into the framework ring, the program's
 * own marks (cuflight.h) into the device ring; neither may fill its ring faster than in a minute, with half a ring at
 * once: what is more is left out, beginnings with their ends, and counted (header.phases_left_out).
 *
 * Contract: as recorder.h. Texts are borrowed. A stack is one thread's phases of one domain; phases of different domains
 * may end in any order. Nothing is recorded while the recorder is off or the thread is inside it.
 */
#ifndef CUF_PHASES_H
#define CUF_PHASES_H

#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/format.h"

struct cuf_phase_text {
	const char *domain; size_t domain_bytes; /* 0 bytes: none */
	const char *text; size_t bytes;
	uint32_t stack;                          /* which of the thread's stacks a push goes to; any number */
};

void cuf_phase_mark(enum cuf_phase_source source, const struct cuf_phase_text *name);
/* The depth that the phase has in its stack, from 0; -1: not recorded. */
int cuf_phase_push(enum cuf_phase_source source, const struct cuf_phase_text *name);
/* The depth that it had; -1: there was none. */
int cuf_phase_pop(enum cuf_phase_source source, uint32_t stack);
/* id: another tool's; 0: one is made. Returns it, 0 when nothing was recorded and none was given. */
uint64_t cuf_phase_start(enum cuf_phase_source source, const struct cuf_phase_text *name, uint64_t id);
void cuf_phase_end(enum cuf_phase_source source, uint64_t id);
uint64_t cuf_request_begin(const struct cuf_phase_text *name, uint64_t id);
void cuf_request_end(uint64_t id);

/* Fills phase, request_phase and request_id. The caller is entered. */
void cuf_phases_at_incident(struct cuf_incident *incident);
/* In a forked child: nothing is open. */
void cuf_phases_fork(void);

#endif
