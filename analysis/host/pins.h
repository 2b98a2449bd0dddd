/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sites hold an allocator's pages open: live blocks that are nearly alone where they lie. Contract: looks at the
 * ledger as it is at the end of the recording. In full mode a page is looked at; in sampled mode a window so large that the
 * samples of a full one could not be missed, and the answer is an estimate. The caller frees *pins.
 */
#ifndef ANALYSIS_HOST_PINS_H
#define ANALYSIS_HOST_PINS_H

#include "analysis/recording/host_means.h"
#include "analysis/recording/reader.h"

struct host_pin { uint32_t stack; uint64_t open_bytes, bytes, count; };

/* The largest `most` by open_bytes, which are shares of fragmented_bytes. Returns their number. */
size_t host_pins_find(const struct reader *reader, const struct host_means *means,
		      uint64_t fragmented_bytes, size_t most, struct host_pin **pins);

/* Live maps of the program (mmap=1) at time_ns (CLOCK_MONOTONIC; CUF_UNKNOWN: the end), from the ledger and the events since. */
struct host_map { uint32_t stack; uint64_t bytes; bool file; };
void host_maps_each(const struct reader *reader, uint64_t time_ns,
		    void (*see)(void *context, const struct host_map *map, int sign),
		    void *context);

#endif
