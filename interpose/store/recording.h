/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mapping that everything is written to. It is laid out once, in private memory, so a process
 * that never meets CUDA and stays small leaves no file. Later it moves into a file, under the
 * same addresses.
 *
 * Contract: pointers in cuf_recording are constant from cuf_recording_open on; sections start
 * zero-filled. Functions return 0 or -errno, allocate only the mapping, and keep no file
 * descriptor.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/format.h"
#include "interpose/platform/options.h"

/* Between samples of the timeline, at first. It doubles as the timeline fills. */
#define CUF_SAMPLE_INTERVAL_NS 10000000u

/* Rings of segments: the driver's events, the malloc family's, a framework's blocks and phases. */
enum cuf_ring { CUF_RING_DEVICE = 0, CUF_RING_HOST = 1, CUF_RING_FRAMEWORK = 2, CUF_RINGS };

struct cuf_ring_place {
	uint8_t *at;
	unsigned segment_count;
	size_t segment_bytes;
};

struct cuf_recording {
	/* NULL: there is no recording */
	uint8_t *base;
	size_t bytes;
	struct cuf_header *header;
	uint8_t *meta;
	size_t meta_bytes;
	struct cuf_device *devices;
	struct cuf_thread *threads;
	unsigned thread_count;
	struct cuf_stack *stacks;
	uint32_t stack_mask;
	/*
	 * how many entries at the beginning are filled first: a power of two, at most half; 0:
	 * none
	 */
	uint32_t stacks_near;
	/* entries from here on are for stacks of large blocks */
	uint32_t stacks_shared;
	uint64_t *frames;
	size_t frame_count;
	struct cuf_block *ledger;
	uint64_t ledger_mask;
	struct cuf_host_block *host_ledger;
	uint64_t host_bucket_mask;
	struct cuf_ring_place rings[CUF_RINGS];
	struct cuf_host_peak *host_peaks; /* two */
	struct cuf_recent *recent; /* CUF_RECENT_RINGS rings of recent_mask + 1 buckets */
	uint64_t recent_mask;
	struct cuf_incident *incidents;
	unsigned incident_slots;
	struct cuf_sample *samples;
	unsigned sample_slots;
	/* where the file is mapped while the recording is copied into it; else NULL */
	uint8_t *copy;
	/* of the file; "" while in memory */
	char path[1024];
};

extern struct cuf_recording cuf_recording;

/* The words of the header that belong to one ring. */
struct cuf_ring_counts {
	uint64_t *tickets, *overwritten, *segment_bytes;
};

struct cuf_ring_counts cuf_recording_ring_counts(enum cuf_ring ring);

/*
 * Maps and lays out a recording of about `bytes` in private memory. In a forked child: over the
 * parent's, anew.
 */
int cuf_recording_open(size_t bytes);

/*
 * Creates the file of a recording: O_EXCL, never through a link, all blocks reserved.
 * names: of the file; its n is not read. Returns a descriptor, and the name in path; or -errno, and
 * in *why what failed: "cannot ...". This may take as long as the file system likes. Threads may
 * record meanwhile.
 */
int cuf_recording_open_file(const struct cuf_name_parts *names, char *path, unsigned path_bytes,
			    const char **why);
/* Closes and removes it again. */
void cuf_recording_discard_file(int fd, const char *path);

/*
 * Moves the recording into that file and closes the descriptor. Nothing may write to the recording
 * meanwhile. Returns 0 or -errno, with *why as above. On failure the file is removed, and the
 * recording stays in memory.
 */
int cuf_recording_to_file(int fd, const char *path, const char **why);

/*
 * Makes the pages of this part at once, when all of them will be written soon. That costs less
 * than half of making them one by one. Does nothing while the recording is in memory.
 */
void cuf_recording_populate(void *from, size_t bytes);
