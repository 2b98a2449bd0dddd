/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files python_*.c share; nobody else includes it (but their tests). Contract: as in python.h.
 */
#ifndef CUF_PYTHON_PARTS_H
#define CUF_PYTHON_PARTS_H

#include "interpose/python/python.h"
#include "interpose/python/python_layout.h"

enum { CUF_PYTHON_SETS = 512, CUF_PYTHON_WAYS = 4, CUF_PYTHON_MERGED = 256, CUF_PYTHON_TEXT_BYTES = 2048,
	CUF_PYTHON_FILE_BYTES = 1024, CUF_PYTHON_NAME_BYTES = 512 /* shown of a file and of a function */ };

struct cuf_python;
struct cuf_python_thread;
/* See cuf_python_walks_for. */
struct cuf_python_walks;
typedef bool cuf_python_walk(const struct cuf_python *python, struct cuf_python_thread *p, uintptr_t state, unsigned max);

/* The interpreter, found once; constant while on. */
struct cuf_python {
	uint32_t on;                       /* stored last: 1, frames are read */
	uint32_t generation;               /* of the names written: changes in a forked child */
	struct cuf_python_layout layout;
	uintptr_t code_type, text_type, bytes_type;
	uintptr_t eval_start, eval_end;    /* the function that runs frames; another part of it may lie elsewhere */
	uintptr_t object_start, object_end;/* what it was loaded from */
	void *(*own_state)(void);          /* the state of this thread, whether it holds the GIL or not */
	void *(*current_state)(void);      /* 3.12 on: of this thread where it holds the GIL, else NULL; before: of whoever holds it */
	int (*is_finalizing)(void);        /* NULL: not to be had */
	const struct cuf_python_walks *walks;
	bool frees_counted;                /* walks depend on it */
};
extern struct cuf_python cuf_python;

/* Consecutive frames that one native call of the interpreter runs. */
struct cuf_python_run {
	uintptr_t marker;                  /* lies on the stack, in the native frame; 0: not known */
	unsigned end;                      /* frames before this one, and after the last run's */
};

/* A frame that was named: key says which code and instruction. */
struct cuf_python_token { uint64_t key, frame; };
#define CUF_PYTHON_HIDDEN (CUF_FRAME_PYTHON | 0x7fffffffull << 32) /* in place of a frame: the interpreter's own, which tracebacks leave out, too */

/* A thread's own, mapped when it first has Python frames. */
struct cuf_python_thread {
	uintptr_t state;                   /* seen to be this thread's own */
	uint32_t generation;               /* of what was named and interned */
	uintptr_t gathered;                /* the state whose frames were looked at last, and how */
	const struct cuf_python_walks *walks;
	unsigned count, runs;
	bool more;                         /* frames beyond max */
	uint64_t hash;                     /* of all that merging depends on */
	uintptr_t strangers[8];            /* states of other threads, by address */
	struct cuf_python_frame {
		uintptr_t code, instruction;   /* instruction: address, or number: see the layout */
		uint64_t identity, key;        /* of the code; of code, identity and instruction */
	} frames[CUF_PYTHON_FRAMES_MAX];
	struct cuf_python_run run[CUF_PYTHON_FRAMES_MAX + 1];
	uint64_t merged_frames[CUF_PYTHON_FRAMES_MAX];
	struct cuf_python_token tokens[CUF_PYTHON_SETS][CUF_PYTHON_WAYS]; /* the newest first */
	struct cuf_python_merged merged_ids[CUF_PYTHON_MERGED];
	char text[CUF_PYTHON_TEXT_BYTES];
};

/* How a walk of Python frames ended early. Index of cuf_header.python_stops. */
enum cuf_python_stop { CUF_PYTHON_STOP_DAMAGED = 0, CUF_PYTHON_STOP_DEPTH = 1, CUF_PYTHON_STOP_LAYOUT = 2, CUF_PYTHON_STOP_NAMES = 3 };
void cuf_python_stopped(enum cuf_python_stop why);
/* No Python frames from now on, and why (CUF_NOTE_PYTHON). */
void cuf_python_off(enum cuf_python_state state, const char *why);

/*
 * Looks at the frames from this thread state on: how many, whether there are more than max, and a hash of all that a
 * merged stack depends on; note also fills in frames and runs. false: met what cannot be; what came before it counts.
 * Checked: every load is asked of the kernel first. Others are compiled for the layouts that are known beforehand; any
 * layout will do.
 */
struct cuf_python_walks { cuf_python_walk *hash, *note; };
const struct cuf_python_walks *cuf_python_walks_checked(void);
const struct cuf_python_walks *cuf_python_walks_for(const struct cuf_python_layout *layout, bool frees_counted);

/*
 * How often code was freed at this address or at one that shares its count. 3.9 to 3.11. count_frees begins with it:
 * true where it could. are_counted: it is so still. code_type: of the interpreter, relocated, and mapped.
 */
enum { CUF_PYTHON_FREES = 1024 };
extern uint32_t cuf_python_frees[CUF_PYTHON_FREES];
static inline uint32_t *cuf_python_frees_of(uintptr_t code) { return &cuf_python_frees[(code >> 4 ^ code >> 14) % CUF_PYTHON_FREES]; }
bool cuf_python_count_frees(uintptr_t code_type);
bool cuf_python_frees_are_counted(uintptr_t code_type);

/* The frame of STACK_FRAMES for a frame: CUF_PYTHON_HIDDEN or a token, code 0 where the name was lost. */
uint64_t cuf_python_name(const struct cuf_python *python, struct cuf_python_thread *p, const struct cuf_python_frame *frame);

/* The line of an instruction, counted in bytes from the code's first; 0: none, or not known. Reads through the kernel. */
uint32_t cuf_python_line(const struct cuf_python *python, uintptr_t code, int64_t offset);

void cuf_python_names_atfork_child(void);

/* Loads from structs that are not ours to the compiler. */
struct __attribute__((packed, may_alias)) cuf_python_word { uint64_t value; };
struct __attribute__((packed, may_alias)) cuf_python_half { uint32_t value; };
#define READS_PYTHON __attribute__((no_sanitize("address", "thread", "undefined")))
static inline READS_PYTHON uint64_t cuf_python_load(uintptr_t at) { return ((const struct cuf_python_word *)at)->value; }
static inline READS_PYTHON uint32_t cuf_python_load32(uintptr_t at) { return ((const struct cuf_python_half *)at)->value; }

/* Not the same for a and b exchanged, nor where a and b change in the same bits. */
static inline uint64_t cuf_python_mix(uint64_t a, uint64_t b)
{
	a *= 0xC2B2AE3D27D4EB4Full;
	a = (a ^ a >> 29 ^ b) * 0x9E3779B97F4A7C15ull;
	return a ^ a >> 32;
}

#endif
