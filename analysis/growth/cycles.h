/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the cycles of a program's own work in the ups and downs of its total live bytes: a request, a batch, a step
 * takes memory and gives it back. Rainflow counting pairs every rise with the fall that answers it, at every scale at
 * once and in one pass; the scale of the work is the largest at which at least CYCLES_MIN pairs were seen, or a
 * finer one: within a factor of two if it adds a sixteenth, within a factor of four if it is seen twice as often. Ups and
 * downs that are a thousand times smaller than what is gained from each of them to the next are no work. The low points of those
 * pairs are the marks at which floors are compared.
 *
 * Contract: heap memory, freed by cycles_free; memory is bounded (marks of very many cycles are thinned evenly).
 * Positions are the caller's running numbers of events, ascending.
 */
#ifndef ANALYSIS_GROWTH_CYCLES_H
#define ANALYSIS_GROWTH_CYCLES_H

#include <stddef.h>
#include <stdint.h>

#define CYCLES_MIN 8u

struct cycle_mark { uint64_t position, time_ns; }; /* the state after the event at this position */

struct cycles;
struct cycles *cycles_new(void);
void cycles_feed(struct cycles *cycles, int64_t delta_bytes, uint64_t position, uint64_t time_ns);
/* Once, after the last event. Returns how many cycles there were, 0 if fewer than CYCLES_MIN; *marks stays valid until
 * cycles_free; n cycles have n + 1 marks unless thinned. */
uint64_t cycles_finish(struct cycles *cycles, const struct cycle_mark **marks, size_t *count);
void cycles_free(struct cycles *cycles); /* NULL is fine */

#endif
