/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the cycles of a program's work in the rises and falls of its total live bytes. A request,
 * a batch or a step allocates memory and frees it. Rainflow counting pairs every rise with the
 * fall that answers it, at every scale at once and in one pass.
 *
 * The scale of the work is the largest one with at least CYCLES_MIN pairs, or a finer one: within
 * a factor of two if that adds a sixteenth of the pairs, within a factor of four if it doubles
 * them. Rises and falls a thousand times smaller than what is gained between them are not work.
 * The low points of the pairs are the marks at which minima are compared.
 *
 * Contract: heap memory, freed by cycles_free, and bounded: marks of very many cycles are thinned
 * evenly. Positions are running numbers of events, ascending.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CYCLES_MIN 8u

struct cycle_mark { uint64_t position, time_ns; }; /* after the event at this position */

/*
 * The moments at which the last open request ended, so what requests need for themselves is free.
 * position is the seq of an event. Marked requests only. count 0: none were marked, or one was
 * always open. items are in the heap.
 */
struct quiet_marks {
	struct cycle_mark *items;
	size_t count, room;
	uint64_t requests; /* that ended */
};

struct cycles;
struct cycles *cycles_new(void);
void cycles_feed(struct cycles *cycles, int64_t delta_bytes, uint64_t position, uint64_t time_ns);
/* Call it once, after the last event. Returns the number of cycles; 0 if there are fewer than
 * CYCLES_MIN. n cycles have n + 1 marks unless thinned; *marks is valid until cycles_free. */
uint64_t cycles_finish(struct cycles *cycles, const struct cycle_mark **marks, size_t *count);
void cycles_free(struct cycles *cycles); /* NULL is fine */
