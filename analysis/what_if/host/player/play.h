/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a player is given and what it answers: the two sides of a child process in which a recorded
 * history of malloc and free is played again, on whatever allocator that child runs.
 *
 * Contract. The history is a sealed memory file: struct play_head, then its operations. Both sides
 * come from one build, so the layout may change from build to build. Sizes are bytes. The
 * operations come from a hostile recording: blocks and threads are below the counts of the head,
 * and nothing else is promised. No pointers, no ownership, no errors.
 */
#ifndef ANALYSIS_WHAT_IF_HOST_PLAYER_PLAY_H
#define ANALYSIS_WHAT_IF_HOST_PLAYER_PLAY_H

#include <stdint.h>

enum play_op {
	PLAY_TAKE,        /* malloc */
	PLAY_ZEROED,      /* calloc */
	PLAY_ALIGNED,     /* aligned_alloc; align_shift is the exponent */
	PLAY_RESIZE,      /* realloc of the block, which keeps its number */
	PLAY_FREE,
	PLAY_THREAD_END,  /* the thread's last operation; bytes and block mean nothing */
	PLAY_MAX
};

struct play_step {
	uint64_t bytes;
	uint32_t block;   /* number of a block */
	uint16_t thread;  /* number of a thread; 0 is the main thread */
	uint8_t op;       /* enum play_op */
	uint8_t align_shift;
};

/* Blocks of this size and more may not be written as a whole by a program. */
#define PLAY_LARGE_BYTES (64u << 10)
enum { PLAY_TOUCHED_ALL = 1024, PLAY_THREADS_MAX = 4096 };

struct play_head {
	uint64_t step_count;
	uint32_t block_count, thread_count;
};

/* How to play. */
struct play_limits {
	uint64_t resident_bytes;  /* the player stops when its memory exceeds this */
	uint32_t touched_1024th;  /* how much of each large block is written, from its start */
	uint32_t seconds;
};

enum play_status {
	PLAY_NOT_ENDED,           /* killed, or it never began */
	PLAY_ENDED,
	PLAY_TOO_LARGE,           /* more memory than allowed */
	PLAY_REFUSED,             /* the allocator returned NULL */
	PLAY_BROKEN               /* the history could not be read, or a thread not started */
};

struct play_answer {
	uint32_t status;          /* enum play_status */
	uint32_t seconds_1000th;  /* how long it played */
	uint64_t end_bytes;       /* resident at the end, less that before the first step */
	uint64_t peak_bytes;      /* the most, as far as it was looked at */
	uint64_t trimmed_bytes;   /* after malloc_trim(0); UINT64_MAX: no such function */
};

#endif
