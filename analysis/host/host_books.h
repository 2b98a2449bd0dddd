/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books of a process's allocators, as the recorder wrote them down at incidents and before the end. Contract: what is
 * returned lies in the arena. time_ns is CLOCK_REALTIME, CUF_UNKNOWN: the end; books that were read up to
 * BOOKS_LATE_NS later still count, later ones do not.
 */
#ifndef ANALYSIS_HOST_HOST_BOOKS_H
#define ANALYSIS_HOST_HOST_BOOKS_H

#include "analysis/recording/meta.h"

#define BOOKS_LATE_NS 1000000000ull

/* One for each allocator, the process's own first; *count 0: the recording names none. */
struct fact_allocator *host_books_allocators(const struct meta *meta, uint64_t time_ns, struct arena *arena, size_t *count);
/* Resident memory by sort of mapping: key=value lines; NULL: none at that time. */
const char *host_books_memory(const struct meta *meta, uint64_t time_ns);

#endif
