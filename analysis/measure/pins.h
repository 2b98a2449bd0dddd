/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which call sites pin pages of the allocator: live blocks with few neighbours.
 *
 * Contract: uses the ledger at the end of the recording. In full mode the unit is a page. In
 * sampled mode it is a window so large that the samples of a full one could not be missed, and the
 * result is an estimate. The caller frees *pins.
 */
#pragma once

#include "analysis/recording/events.h"
#include "analysis/recording/host_weight.h"
#include "analysis/recording/reader.h"

/* A call site and the live small blocks by which it pins pages. */
struct host_pin {
	uint32_t stack;
	uint64_t open_bytes; /* its share of the free bytes in those pages */
	uint64_t bytes, count;
};

/* The `most` call sites with the largest open_bytes, which are shares of fragmented_bytes. Returns
 * their number. */
size_t host_pins_find(const struct reader *reader, const struct host_means *means,
		      uint64_t fragmented_bytes, size_t most, struct host_pin **pins);

/* A map of the program (mmap=1). */
struct host_map {
	uint32_t stack;
	uint64_t bytes;
	bool file;   /* backed by a file, else memory */
	bool shared; /* memory that other processes may see */
};
/* False: the event neither makes nor ends one. */
bool host_map_of(const struct host_event *event, struct host_map *map);
/* Calls see for those that are live at the end: of the ledger. */
void host_maps_end(const struct reader *reader,
		   void (*see)(void *context, const struct host_map *map, int sign), void *context);
/* The same for time_ns (CLOCK_MONOTONIC; CUF_UNKNOWN: the end), with changes by events since. */
void host_maps_each(const struct reader *reader, uint64_t time_ns,
		    void (*see)(void *context, const struct host_map *map, int sign),
		    void *context);
