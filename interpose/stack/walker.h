/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack walker: return addresses of the calling thread, innermost first, without locks, allocation or system
 * calls once a code address was seen. DWARF call-frame rules are compiled to 16 bytes a return address and cached per
 * thread; the first sight of an address reads .eh_frame through _dl_find_object.
 *
 * Contract: reads the thread's own stack from the current stack pointer up to its top, and the .eh_frame segments of
 * loaded objects. All else (alternate signal stacks, fibers, what a damaged frame points to) is read through the kernel,
 * which refuses instead of faulting. So code without unwind information, damaged rules and foreign stacks cost frames,
 * never the process: the walk stops early and says why. errno is untouched. One walker belongs to one thread; not
 * reentrant (the caller guards). x86-64; elsewhere frame pointers are followed (walk_pointers.c), no rules.
 */
#ifndef CUF_WALKER_H
#define CUF_WALKER_H

#include <stdbool.h>
#include <stdint.h>

#define CUF_RULE_BITS 14 /* 256 KiB of address space a thread; touched as code addresses are seen */
#define CUF_RULES_NEAR 2048u /* copies of those in use */
#define CUF_WALK_FRAMES_MAX 256u
#define CUF_MEMO_SETS 128u
#define CUF_MEMO_WORDS 68u /* a multiple of four; a memo is three cache lines */
#define CUF_MEMO_LAST 64u
#define CUF_WALK_OWN 4u

struct cuf_rule;

/*
 * A walk as it went: where it began, and where the words of the stack lay that decided where it went on. A walk is a
 * function of those alone, so when all are as they were (by a hash of 64 bits, as stacks are known by one) the stack is
 * the same, and reading them is a fraction of the walk.
 */
struct cuf_memo {
	uintptr_t ip, start; /* start: the frame of the hook, which the program called */
	uint64_t words_hash;
	uint64_t beside; /* what else the caller said that the id stands for */
	uint32_t id;  /* the caller's name for this stack; 0: not known */
	uint32_t epoch; /* of the memos when it was made; another: it is of another thread, or of modules that are gone */
	uint16_t max; /* the walk's limit */
	uint16_t words;
	uint16_t at[CUF_MEMO_WORDS]; /* in words above start */
};

/* Memos, found by the innermost frames. Of each pair one was met again and stays, the other is the newest. */
struct cuf_memos {
	struct cuf_memo *last[CUF_MEMO_LAST]; /* by where the walk began: loops allocate from the same frame again and again */
	uint32_t epoch;
	uint8_t newest[CUF_MEMO_SETS];
	uint16_t tags[CUF_MEMO_SETS][2]; /* of the innermost frames: a memo that is none of theirs is not even touched */
	_Alignas(64) struct cuf_memo memo[CUF_MEMO_SETS][2];
	uint64_t ips[CUF_WALK_FRAMES_MAX + CUF_WALK_OWN]; /* of the walk that is going on: see walker.c */
	_Alignas(16) uint16_t at[2 * (CUF_WALK_FRAMES_MAX + CUF_WALK_OWN)]; /* in words above start, as a memo keeps them */
	unsigned count, own_count, own[CUF_WALK_OWN]; /* of these ips; those that are ours */
	uintptr_t start;
	uintptr_t lows[CUF_WALK_FRAMES_MAX + CUF_WALK_OWN]; /* of the frames that a walk wrote: where each has its part of the stack begin */
};

struct cuf_walker {
	struct cuf_rule *rules; /* CUF_RULES_NEAR entries, then 1 << CUF_RULE_BITS, mapped by init; NULL: could not be had */
	struct cuf_memos *memos; /* mapped with the rules */
	bool has_memos;          /* some were made */
	uint32_t no_id;          /* of walks that are not remembered */
	uintptr_t stack_low,
		stack_high; /* of the thread's own stack what is known to be readable; low moves down as it grows */
	uintptr_t other_low, other_high; /* where a walk last began on another stack: known not to reach ours */
	uint64_t generation;             /* of the modules the rules were made for; changed: the cache is dropped */
};

/* Finds the top of the calling thread's stack without locks or /proc: __libc_stack_end for the main thread, the thread
 * control block for others (also for a thread that became a forked child's only one). Maps the rule cache, once: a
 * walker starts zeroed, and one whose thread died may be initialised again. 0, or -errno (the walker is then still
 * safe: empty stacks). */
int cuf_walker_init(struct cuf_walker *walker, int is_main_thread);
void cuf_walker_fini(struct cuf_walker *walker);

/*
 * Writes at most max return addresses to frames and returns their number. Those lying on the stack at or below `above`
 * (__builtin_frame_address(0) of a hook; 0: none) are left out: the recorder's own, and the runtime's. So are those
 * inside this library, wherever they are. The instruction that a frame executes is the one before its address, also
 * where a signal arrived: there the address is one more than the interrupted instruction's.
 * *stop: enum cuf_stop of format.h. generation: cuf_modules_generation() of now. walker->memos->lows: as for the frames.
 */
unsigned cuf_walk(
	struct cuf_walker *walker, uint64_t generation, uintptr_t above, uint64_t *frames, unsigned max, uint8_t *stop);

/*
 * The stack of the caller of a function that is still running, from its __builtin_frame_address(0), innermost first;
 * max: at most CUF_WALK_FRAMES_MAX. When it is one of the stacks seen lately, its id is returned and nothing else done.
 * Else 0, walk is filled in, and *walk->id takes the id that the caller gives the stack (0: none).
 */
struct cuf_walked {
	uint64_t *frames;  /* by the caller: room for max. Filled in by cuf_walked_frames alone, for most have no need of them */
	uint64_t hash;     /* of the frames: cuf_frames_hash_step from 0 */
	unsigned depth;
	uint8_t stop;      /* enum cuf_stop */
	uint64_t beside;   /* by the caller: the id stands for this, too; a stack is known with the same alone */
	uint32_t *id;
	bool is_written;   /* frames are */
};
uint32_t cuf_walk_cached(
	struct cuf_walker *walker, uint64_t generation, const void *frame, unsigned max, struct cuf_walked *walked);
/* The frames, and memos->lows as above. To be called before the walker's next walk, once or more. */
void cuf_walked_frames(struct cuf_walker *walker, struct cuf_walked *walked);

/* The hash of a stack, frame by frame from 0: three instructions, for it runs beside the walk. */
static inline uint64_t cuf_frames_hash_step(uint64_t hash, uint64_t frame)
{
	return ((hash << 5 | hash >> 59) ^ frame) * 0x9E3779B97F4A7C15ull;
}

#endif
