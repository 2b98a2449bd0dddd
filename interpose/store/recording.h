/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mapping everything is written to: laid out once, first in private memory (a process that never meets CUDA and
 * stays small leaves no file), then moved under the same addresses into a file.
 *
 * Contract: pointers in cuf_recording are constant from cuf_recording_open on; sections are zero-filled. Functions
 * return 0 or -errno, allocate nothing but the mapping, keep no file descriptor.
 */
#ifndef CUF_RECORDING_H
#define CUF_RECORDING_H

#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/format.h"
#include "interpose/platform/options.h"

/* Rings of segments: the driver's events, the malloc family's, a framework's blocks and phases. */
enum cuf_ring { CUF_RING_DEVICE = 0, CUF_RING_HOST = 1, CUF_RING_FRAMEWORK = 2, CUF_RINGS };

struct cuf_recording {
	uint8_t *base;             /* NULL: none */
	size_t bytes;
	struct cuf_header *header;
	uint8_t *meta; size_t meta_bytes;
	struct cuf_device *devices;
	struct cuf_thread *threads; unsigned thread_count;
	struct cuf_stack *stacks; uint32_t stack_mask, stacks_near; /* near: the first entries, a power of two, at most half; 0: none */
	uint64_t *frames; size_t frame_count;
	struct cuf_block *ledger; uint64_t ledger_mask;
	struct cuf_host_block *host_ledger; uint64_t host_bucket_mask;
	struct cuf_ring_place { uint8_t *at; unsigned segment_count; size_t segment_bytes; } rings[CUF_RINGS];
	struct cuf_incident *incidents; unsigned incident_slots;
	struct cuf_sample *samples; unsigned sample_slots;
	char path[1024];           /* of the file; "" while in memory */
};

extern struct cuf_recording cuf_recording;

/* What the header counts of a ring. */
struct cuf_ring_counts { uint64_t *tickets, *overwritten, *segment_bytes; };
struct cuf_ring_counts cuf_recording_ring_counts(enum cuf_ring ring);

/* Maps and lays out a recording of about `bytes` in private memory. In a forked child: again, over the parent's. */
int cuf_recording_open(size_t bytes);

/* Creates the file (0600, O_EXCL, never following a link, all blocks reserved), and moves the recording into it.
 * Nobody may write to the recording meanwhile. names: of the file; its n is not read.
 * On failure the recording stays in memory. *why: what was tried. */
int cuf_recording_to_file(const struct cuf_name_parts *names, const char **why);

/* All of this part will be written soon: its pages are made at once, for less than half of what they cost one by one. */
void cuf_recording_populate(void *from, size_t bytes);

#endif
