/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of the allocators in this process, and resident memory as the kernel reports it,
 * written to META while the program runs.
 *
 * Contract: never on a hot path. errno untouched. A process that ends is asked for nothing that
 * takes a lock: glibc's heap is read without any, and mimalloc has none. jemalloc and tcmalloc take
 * theirs. So they are asked in the program's own thread, where it has just called malloc or is
 * about to call free: it could not be kept waiting there for longer than by its own call.
 */
#pragma once

#include "interpose/abi/format.h"

/* From the constructor: which allocator is behind us. */
void cuf_allocator_describe(void);

/* After a failed request. Paced: a program that fails thousands of requests pays for few. */
void cuf_allocator_read_at_incident(void);

/*
 * In malloc's or free's hook, outside the allocator, when a reading is due because live memory has
 * changed (cuf_live_change_is_due). For at most a fiftieth of the time.
 */
void cuf_allocator_read_running(void *frame);

/*
 * Before exit handlers. An allocator with locks is not asked. Half a millisecond.
 */
void cuf_allocator_read_at_end(void);

/*
 * A request was refused, after the real call. error: as for cuf_host_refused. An incident has
 * the allocator's statistics of that moment. Incidents of host memory keep a distance: of a call
 * that was refused because of another one there is one.
 */
void cuf_allocator_refused(size_t bytes, unsigned hook, int error, void *frame);
