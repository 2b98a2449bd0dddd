/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of this process is resident, by sort of mapping, as /proc/self/smaps tells. Contract: raw system calls, no
 * allocation, no descriptor kept; one caller at a time, which is the caller's care. The kernel walks all page tables, so
 * it is for incidents and the end alone, and it stops after CUF_MAPS_NS_MAX: then `whole` is false and the sums are of
 * what was seen. false: /proc is not there.
 */
#ifndef CUF_PROCESS_MAPS_H
#define CUF_PROCESS_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#define CUF_MAPS_NS_MAX 250000000ull

struct cuf_process_maps {
	uint64_t rss_bytes, pss_bytes, swap_bytes, private_dirty_bytes;
	/* these seven sum to rss_bytes */
	uint64_t heap_bytes;         /* [heap]: brk */
	uint64_t anonymous_bytes;    /* anonymous maps without a name */
	uint64_t stack_bytes;        /* [stack]: the main thread's; others' are anonymous */
	uint64_t file_bytes;         /* pages of files */
	uint64_t file_private_bytes; /* private copies of pages of files: relocated, written to */
	uint64_t shared_bytes;       /* shared memory: /dev/shm, memfd, System V */
	uint64_t recorder_bytes;     /* the recording itself */
	uint64_t map_count;
	bool whole;
};

bool cuf_process_maps_read(struct cuf_process_maps *maps);

#endif
