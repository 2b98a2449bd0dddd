/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's note of the host's peak: which call sites held how much when the total was the
 * highest, or some 5 % below it. It answers where the events of that time were overwritten.
 *
 * Contract: pure. Sums that cannot be are no note.
 */
#pragma once

#include "analysis/measure/heap.h"

/* The newest whole note, copied. False: there is none. */
bool peak_note_read(const struct reader *reader, struct cuf_host_peak *note);

/* Adds its call sites, and their sums. */
void peak_note_add(const struct reader *reader, const struct cuf_host_peak *note,
		   struct sites *sites, struct heap_totals *out);

/*
 * The fullest moment: as the events tell it, or the note where more was live before the oldest of
 * them. note is filled where *peak points at it. False: neither is there.
 */
bool peak_note_or_events(const struct reader *reader, const struct host_means *means,
			 struct cuf_host_peak *note, struct heap_moment *peak);
