/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inline part of the front door (recorder.h): what runs millions of times a second. A skipped
 * allocation counts down one thread-local word, a skipped free loads one byte of a table. Labels
 * and roles are thread-local words as well.
 *
 * Sampled mode: a countdown of bytes decides which allocations are recorded, all blocks of 64 KiB
 * and more are, and a small filter answers "surely not recorded" for most frees. Full mode: every
 * event and every block. Contract as in recorder.h. errno is untouched: nothing below calls libc,
 * except string functions and the vDSO.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/format.h"
#include "interpose/process/gate.h"

/*
 * Counts of recorded live blocks by address, in sampled mode. One load in the small table, an
 * eighth of the nearest cache, answers most frees; with half of that cache the program's own data
 * had to make room. Where many blocks are recorded, a larger table in host.c still answers.
 * Neighbours in memory are neighbours here, so that the part in use is as small as the program's
 * own.
 *
 * Every other reason not to skip a free is encoded as a non-zero entry, so that the fast path
 * checks one value: each entry begins at one, which cuf_recorder_start takes away. In full mode it
 * never does.
 */
enum { CUF_HOST_FILTER_SMALL_BITS = 12, CUF_HOST_FILTER_LARGE_BITS = 18 };
extern uint8_t cuf_host_filter_small[1u << CUF_HOST_FILTER_SMALL_BITS];

static inline uint32_t cuf_host_filter_place(uint64_t addr, unsigned bits)
{
	return (uint32_t)((addr ^ addr >> bits) >> 4) & ((1u << bits) - 1);
}

/* What cuf_host_restore needs of a free; zeros: nothing was removed. */
struct cuf_host_undo {
	uint64_t word0, word1;
};

/*
 * The out-of-line halves, for blocks that are to be recorded. p is not NULL. op: enum cuf_host_op.
 */
void cuf_host_record_alloc(void *p, size_t bytes, unsigned op, const void *frame);
void cuf_host_record_free(void *p, unsigned op, struct cuf_host_undo *undo);

/*
 * A map at this address (abi/host_blocks.h), of at least CUF_SAMPLE_EXACT_BYTES in sampled mode.
 * *block: what the ledger has of it now; zeros: nothing.
 */
void cuf_host_record_map(uint64_t addr, size_t bytes, const void *frame,
			 struct cuf_host_undo *block);

/*
 * True while the countdown is above 0. (Without the assembly the compiler loads, subtracts, stores
 * and tests.)
 */
static inline bool cuf_host_count_down(size_t bytes)
{
#if defined(__x86_64__)
	bool is_above;
	__asm__("subq %2, %1" : "=@ccg"(is_above), "+m"(cuf_tls.countdown_bytes) : "er"(bytes));
	return is_above;
#else
	return (cuf_tls.countdown_bytes -= (int64_t)bytes) > 0;
#endif
}

/*
 * True when a block of this size need not be recorded. It may be called before the real function,
 * which then can be jumped to. An allocation that is not skipped must be recorded, or cancelled
 * when the real function failed.
 *
 * In full mode, and until a thread's first event while the recorder is on, the countdown is not
 * above 0.
 */
static inline bool cuf_host_skips_alloc(size_t bytes)
{
	return __builtin_expect(bytes < CUF_SAMPLE_EXACT_BYTES, 1) &&
	       __builtin_expect(cuf_host_count_down(bytes), 1);
}

/*
 * An allocation of CPython that was not skipped. It is on the caller's stack from begin to end, and
 * the interpreter's function is called in between. That function may pass the request on to malloc,
 * whose block is recorded by malloc's own hook. Then it is not recorded a second time here.
 */
struct cuf_host_outer {
	int64_t countdown_bytes;      /* of the thread; meanwhile no call of malloc is skipped */
	size_t bytes;
	uintptr_t malloc_start, malloc_end; /* the block of malloc with room for the bytes */
	bool is_counted, is_chosen;
};

void cuf_host_outer_begin(struct cuf_host_outer *outer, size_t bytes);
/* p: what the interpreter's function returned; may be NULL. True: it is recorded as Python's. */
bool cuf_host_outer_end(struct cuf_host_outer *outer, void *p, unsigned op, const void *frame);
/* As cuf_host_record_free, for a block of CPython. */
void cuf_host_python_free(void *p, unsigned op, struct cuf_host_undo *undo);
/* CPython's allocator is no longer ours to see: its blocks are forgotten. */
void cuf_host_python_forget(void);

/* More memory may be resident than before; a process that is large by now gets its file. */
void cuf_host_has_grown(uint64_t bytes);

/* True under a limit of addresses or private memory: a skipped allocation may fail, too. Two system
 * calls. */
bool cuf_host_may_refuse(void);

static inline void cuf_host_cancel(size_t bytes)
{
	if (bytes < CUF_SAMPLE_EXACT_BYTES)
		cuf_tls.countdown_bytes += (int64_t)bytes;
}

static inline uint8_t *cuf_host_filter_at(const void *p)
{
	return &cuf_host_filter_small[cuf_host_filter_place((uintptr_t)p,
							    CUF_HOST_FILTER_SMALL_BITS)];
}

/* True when the free of p, which may be NULL, need not be recorded. */
static inline bool cuf_host_skips_free(const void *p)
{
	return __builtin_expect(!__atomic_load_n(cuf_host_filter_at(p), __ATOMIC_RELAXED), 1);
}

/* The free of this address is never skipped: a saturated count stays. */
static inline void cuf_host_keep(const void *p)
{
	__atomic_store_n(cuf_host_filter_at(p), UINT8_MAX, __ATOMIC_RELAXED);
}

/* A block was allocated. p is not NULL. */
static inline void cuf_host_alloc(void *p, size_t bytes, unsigned op, const void *frame)
{
	if (!cuf_host_skips_alloc(bytes))
		cuf_host_record_alloc(p, bytes, op, frame);
}

/* Before the real free. *undo is set in every case. */
static inline void cuf_host_free(void *p, unsigned op, struct cuf_host_undo *undo)
{
	undo->word0 = 0;
	if (!cuf_host_skips_free(p))
		cuf_host_record_free(p, op, undo);
}

/* ---- the thread's label and role ---- */

/*
 * The runtime-API function that the program called: driver calls inside carry its id, and stacks
 * start at its caller.
 */
struct cuf_label {
	uint16_t hook;
	uintptr_t frame;
};

/*
 * Around the real runtime function. The outermost call gives the label; the previous one goes back
 * to cuf_label_end.
 */
static inline struct cuf_label cuf_label_begin(unsigned hook, const void *frame)
{
	struct cuf_label before = { cuf_tls.label, cuf_tls.label_frame };

	if (before.hook && cuf_frame_was_left(before.frame, (uintptr_t)frame))
		before.hook = 0;
	if (!before.hook) {
		cuf_tls.label = (uint16_t)hook;
		cuf_tls.label_frame = (uintptr_t)frame;
	}
	return before;
}

static inline void cuf_label_end(struct cuf_label before)
{
	cuf_tls.label = before.hook;
	cuf_tls.label_frame = before.frame;
}

/*
 * Blocks that the thread allocates from now on are for this (enum cuf_role). Returns the previous
 * role.
 */
static inline unsigned cuf_role_exchange(unsigned role)
{
	unsigned before = cuf_tls.role;
	cuf_tls.role = (uint8_t)role;
	return before;
}

/*
 * From now on another task runs with this thread's words (clone without CLONE_SETTLS). The thread's
 * events take the slow path, which asks the kernel who is there, and the task's are not recorded.
 */
static inline void cuf_thread_words_are_shared(void)
{
	cuf_tls.is_shared = 1;
	cuf_tls.generation = CUF_GENERATION_NEW;
}

/* Which stack creates a thread (0: not recorded), and how many creators stand behind it. */
struct cuf_creation {
	uint32_t stack;
	uint8_t creators;
};
/* In the hook of the call that creates it, with its __builtin_frame_address(0). */
struct cuf_creation cuf_thread_created_here(const void *frame);
/* In the new thread, before the program's function. */
void cuf_thread_begins(struct cuf_creation creation);
