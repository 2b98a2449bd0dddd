/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a program describes its work, as events of CUF_OP_PHASE contain it (FORMAT.md, "Phases").
 * Contract: as format.h, of which this is a part. On disk: never reuse a number.
 */
#pragma once

#include <stdint.h>

enum cuf_phase_op {
	CUF_PHASE_MARK = 0,
	CUF_PHASE_PUSH = 1,      /* nested, of this thread */
	CUF_PHASE_POP = 2,
	CUF_PHASE_START = 3,     /* a range with an id (aux), may end in another thread */
	CUF_PHASE_END = 4,
	CUF_PHASE_REQUEST_BEGIN = 5, /* a unit of the program's work; aux = its id */
	CUF_PHASE_REQUEST_END = 6
};

/* A POP ends the last open PUSH of its thread with the same name. Ranges and requests of one source
 * have separate ids. */
enum cuf_phase_source {
	CUF_PHASE_PROGRAM = 0,   /* cuflight.h */
	CUF_PHASE_NVTX = 1
};

/* cuf_event.extra */
static inline uint32_t cuf_phase_extra(unsigned op, unsigned source) { return source << 8 | op; }
static inline unsigned cuf_phase_op(uint32_t extra) { return extra & 0xff; }
static inline unsigned cuf_phase_source(uint32_t extra) { return extra >> 8; }
