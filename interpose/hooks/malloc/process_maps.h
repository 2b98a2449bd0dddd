/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resident memory of this process by kind of mapping, from /proc/self/smaps.
 *
 * Contract: raw system calls, no allocation, no descriptor kept. One caller at a time: the caller
 * sees to it. For smaps the kernel walks all page tables, some ten milliseconds a GiB. It stops
 * after CUF_MAPS_NS_MAX; then `whole` is false, and the sums cover a part. The kernel's counters
 * take some twenty microseconds, however large the process is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUF_MAPS_NS_MAX 250000000ull

struct cuf_process_maps {
	uint64_t rss_bytes, pss_bytes, swap_bytes, private_dirty_bytes;
	/* these seven sum to rss_bytes */
	uint64_t heap_bytes;         /* [heap]: brk */
	uint64_t anonymous_bytes;    /* anonymous maps without a name */
	uint64_t stack_bytes;        /* [stack]: the main thread's; those of others are anonymous */
	uint64_t file_bytes;         /* pages of files */
	uint64_t file_private_bytes; /* private copies of pages of files: relocated, written to */
	uint64_t shared_bytes;       /* shared memory: /dev/shm, memfd, System V */
	uint64_t recorder_bytes;     /* the recording itself */
	uint64_t map_count;
	bool whole;                  /* all mappings were read */
};

/* own: the range whose resident bytes are recorder_bytes. Returns false when /proc is not there. */
bool cuf_process_maps_read(struct cuf_process_maps *maps, uintptr_t own, size_t own_bytes);

/*
 * The same from the kernel's counters (/proc/self/status): what came and went since the last whole
 * reading of smaps is added to anonymous_bytes (with the heap), file_bytes and shared_bytes. The
 * other sums are those of then. Without such a reading these three are all there is, and the
 * recording is in file_bytes. False: there are no counters.
 */
bool cuf_process_maps_update(struct cuf_process_maps *maps);

/* Whether there was one, in this process. */
bool cuf_process_maps_are_known(void);

/* By the kernel's counters; 0: unknown. */
struct cuf_process_size {
	uint64_t resident_bytes, threads;
};
struct cuf_process_size cuf_process_size(void);
