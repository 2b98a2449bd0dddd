/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files python_*.c share; no other file includes it except their tests. Contract: as in
 * python.h.
 */
#pragma once

#include "interpose/python/python.h"
#include "interpose/python/python_layout.h"

enum {
	CUF_PYTHON_SETS = 512,
	CUF_PYTHON_WAYS = 4,
	CUF_PYTHON_MERGED = 256,
	CUF_PYTHON_TEXT_BYTES = 2048,
	/* how much of a file's and of a function's name is shown */
	CUF_PYTHON_FILE_BYTES = 1024,
	CUF_PYTHON_NAME_BYTES = 512
};

/* ---- the interpreter ---- */

struct cuf_python;
struct cuf_python_thread;

typedef bool cuf_python_walk(const struct cuf_python *python, struct cuf_python_thread *thread,
			     uintptr_t state, unsigned max);

/* Two forms of one walk: see cuf_python_walks_for. */
struct cuf_python_walks {
	cuf_python_walk *hash, *note;
};

/* The interpreter, found once; constant while on. */
struct cuf_python {
	/* stored last; 1: frames are read */
	uint32_t on;
	/* of the names written; changes in a forked child */
	uint32_t generation;
	struct cuf_python_layout layout;
	uintptr_t code_type, text_type, bytes_type;
	/* the function that runs frames; the compiler may have moved a part of it elsewhere */
	uintptr_t eval_start, eval_end;
	/* the object that it was loaded from */
	uintptr_t object_start, object_end;
	/* the state of this thread, with or without the GIL */
	void *(*own_state)(void);
	/*
	 * from 3.12 on: of this thread while it holds the GIL, else NULL; before: of the GIL's
	 * holder
	 */
	void *(*current_state)(void);
	/* NULL: not available */
	int (*is_finalizing)(void);
	/* NULL: not available */
	void (*get_allocator)(int domain, struct cuf_python_allocator *allocator);
	void (*set_allocator)(int domain, const struct cuf_python_allocator *allocator);
	const struct cuf_python_walks *walks;
	/* walks depend on it */
	bool frees_counted;
};
extern struct cuf_python cuf_python;

/* ---- one thread ---- */

/* Consecutive frames that one native call of the interpreter runs. */
struct cuf_python_run {
	/* an address on the stack, inside the native frame; 0: unknown */
	uintptr_t marker;
	/* the index behind its last frame */
	unsigned end;
};

struct cuf_python_frame {
	/* instruction: address or number, see the layout */
	uintptr_t code, instruction;
	/* identity: of the code; key: of code, identity and instruction */
	uint64_t identity, key;
};

/* A frame that was named, by its key. */
struct cuf_python_token {
	uint64_t key, frame;
};

/* In place of a frame that tracebacks leave out too: one of the interpreter's. */
#define CUF_PYTHON_HIDDEN (CUF_FRAME_PYTHON | 0x7fffffffull << 32)

/* Mapped when the thread first has Python frames. */
struct cuf_python_thread {
	/* a state that was seen to be this thread's */
	uintptr_t state;
	/* of what was named and interned */
	uint32_t generation;
	/* the state whose frames were looked at last, and how */
	uintptr_t gathered;
	const struct cuf_python_walks *walks;
	unsigned count, runs;
	/* there are frames beyond max */
	bool more;
	/* of all that merging depends on */
	uint64_t hash;
	/* states of other threads, by address */
	uintptr_t strangers[8];
	struct cuf_python_frame frames[CUF_PYTHON_FRAMES_MAX];
	struct cuf_python_run run[CUF_PYTHON_FRAMES_MAX + 1];
	uint64_t merged_frames[CUF_PYTHON_FRAMES_MAX];
	/* the newest of each set first */
	struct cuf_python_token tokens[CUF_PYTHON_SETS][CUF_PYTHON_WAYS];
	struct cuf_python_merged merged_ids[CUF_PYTHON_MERGED];
	char text[CUF_PYTHON_TEXT_BYTES];
};

/* How a walk of Python frames ended early. Index of cuf_header.python_stops. */
enum cuf_python_stop {
	CUF_PYTHON_STOP_DAMAGED = 0,
	CUF_PYTHON_STOP_DEPTH = 1,
	CUF_PYTHON_STOP_LAYOUT = 2,
	CUF_PYTHON_STOP_NAMES = 3
};

/* Counts it in the header. */
void cuf_python_stopped(enum cuf_python_stop why);

/* ---- walking (python_walk.c) ---- */

/*
 * Looks at the frames from this thread state on: how many, whether there are more than max, and a
 * hash of all that a merged stack depends on. note fills in frames and runs too. false: met
 * something impossible; what came before it counts.
 *
 * Checked walks have the kernel check every load. The others are compiled for the known layouts,
 * with one for any other.
 */
const struct cuf_python_walks *cuf_python_walks_checked(void);
const struct cuf_python_walks *cuf_python_walks_for(const struct cuf_python_layout *layout,
						    bool frees_counted);

/* ---- freed code (python_frees.c), 3.9 to 3.11 ---- */

/*
 * How often code was freed at each address; some addresses share a count. count_frees begins to
 * count. false: it could not. are_counted: it still does. code_type: the interpreter's, relocated
 * and mapped.
 */
enum { CUF_PYTHON_FREES = 1024 };
extern uint32_t cuf_python_frees[CUF_PYTHON_FREES];

static inline uint32_t *cuf_python_frees_of(uintptr_t code)
{
	return &cuf_python_frees[(code >> 4 ^ code >> 14) % CUF_PYTHON_FREES];
}

bool cuf_python_count_frees(uintptr_t code_type);
bool cuf_python_frees_are_counted(uintptr_t code_type);

/* ---- names and lines (python_code.c, python_line.c) ---- */

/*
 * A frame as STACK_FRAMES holds it: CUF_PYTHON_HIDDEN, or a token; its code is 0 when the name
 * was dropped.
 */
uint64_t cuf_python_name(const struct cuf_python *python, struct cuf_python_thread *thread,
			 const struct cuf_python_frame *frame);

/*
 * The line of an instruction, counted in bytes from the code's first. 0: none, or unknown. Reads
 * through the kernel.
 */
uint32_t cuf_python_line(const struct cuf_python *python, uintptr_t code, int64_t offset);

/* ---- loads and hashes ---- */

/* Loads from structs that the compiler knows nothing about. */
struct __attribute__((packed, may_alias)) cuf_python_word {
	uint64_t value;
};
struct __attribute__((packed, may_alias)) cuf_python_half {
	uint32_t value;
};
#define READS_PYTHON __attribute__((no_sanitize("address", "thread", "undefined")))

static inline READS_PYTHON uint64_t cuf_python_load(uintptr_t at)
{
	return ((const struct cuf_python_word *)at)->value;
}

static inline READS_PYTHON uint32_t cuf_python_load32(uintptr_t at)
{
	return ((const struct cuf_python_half *)at)->value;
}

/* Differs when a and b are exchanged, and when both change in the same bits. */
static inline uint64_t cuf_python_mix(uint64_t a, uint64_t b)
{
	a *= 0xC2B2AE3D27D4EB4Full;
	a = (a ^ a >> 29 ^ b) * 0x9E3779B97F4A7C15ull;
	return a ^ a >> 32;
}
