/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack walker: return addresses of the calling thread, innermost first. It takes no lock,
 * allocates nothing, and makes no system call once a code address was met. DWARF call-frame rules
 * are compiled to 16 bytes a return address and cached per thread. An address that is met for the
 * first time has its rule read from .eh_frame.
 *
 * Contract: reads the thread's own stack from the current stack pointer up to its top, and the
 * .eh_frame segments of loaded objects. Everything else (alternate signal stacks, fibers, also
 * those next to the thread's stack, what a damaged frame points to) is read through the kernel,
 * which refuses instead of faulting. So code without unwind information, damaged rules and foreign
 * stacks cost frames, never the process: the walk stops early and states why. errno is untouched.
 * One walker belongs to one thread and is not reentrant; the caller guards it. x86-64 and aarch64;
 * elsewhere frame pointers are followed (walk_pointers.c) and no rules exist.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Cached rules: 256 KiB of address space a thread, touched as code addresses are met. */
#define CUF_RULE_BITS 14
/* Copies of the rules in use. */
#define CUF_RULES_NEAR 2048u
#define CUF_WALK_FRAMES_MAX 256u
/* Frames of this library that one walk can leave out. */
#define CUF_WALK_OWN 4u

#define CUF_CACHE_SETS 128u
/* A multiple of four; a cached stack is three cache lines. */
#define CUF_CACHE_WORDS 68u
#define CUF_CACHE_LAST 64u

struct cuf_rule;

/* ---- the stack cache (stack_cache.c) ---- */

/*
 * One walk that was made: where it began, and where the words of the stack were that decided
 * where it went on. A walk is a function of those words only. So when all of them are unchanged
 * (compared by a hash of 64 bits, as stacks are), the stack is the same. Reading them is a
 * fraction of the walk.
 */
struct cuf_cached_stack {
	uintptr_t ip;
	/* the frame of the hook, which the program called */
	uintptr_t start;
	uint64_t words_hash;
	/* what else the id stands for, as given by the caller */
	uint64_t extra_key;
	/* the caller's id of this stack; 0: not yet known */
	uint32_t id;
	/*
	 * the cache's when it was made; another one means another thread, or modules that are
	 * gone
	 */
	uint32_t epoch;
	/* the walk's limit */
	uint16_t max;
	uint16_t words;
	/* where the words are, in words above start */
	uint16_t at[CUF_CACHE_WORDS];
};

/* What libunwind needs for one walk (unwinder.h); too large for a small stack. Not touched else. */
struct cuf_unwinder_memory {
	_Alignas(16) unsigned char context[8192], cursor[4096];
};

/*
 * Cached stacks, found by the innermost frames. Of each pair one was met again and stays; the
 * other is the newest.
 */
struct cuf_stack_cache {
	/* by where the walk began: loops allocate from the same frame again and again */
	struct cuf_cached_stack *last[CUF_CACHE_LAST];
	uint32_t epoch;
	uint8_t newest[CUF_CACHE_SETS];
	/* of the innermost frames: an entry that cannot match is not even touched */
	uint16_t tags[CUF_CACHE_SETS][2];
	_Alignas(64) struct cuf_cached_stack entries[CUF_CACHE_SETS][2];

	/*
	 * the walk in progress: its addresses, and where in words above start each next one was
	 * read
	 */
	uint64_t ips[CUF_WALK_FRAMES_MAX + CUF_WALK_OWN];
	_Alignas(16) uint16_t at[2 * (CUF_WALK_FRAMES_MAX + CUF_WALK_OWN)];
	/* how many, and which of them are this library's */
	unsigned count, own_count, own[CUF_WALK_OWN];
	uintptr_t start;
	/* the stack pointer at which its first frame begins */
	uintptr_t first_sp;
	/* of the frames that a walk wrote: the stack pointer at which each frame begins */
	uintptr_t frame_sp[CUF_WALK_FRAMES_MAX + CUF_WALK_OWN];
	struct cuf_unwinder_memory unwinder;
};

/* ---- the walker ---- */

struct cuf_walker {
	/* CUF_RULES_NEAR entries, then 1 << CUF_RULE_BITS, mapped by init; NULL: mapping failed */
	struct cuf_rule *rules;
	/* mapped with the rules */
	struct cuf_stack_cache *cache;
	bool cache_used;
	/* takes the id of walks that are not cached */
	uint32_t no_id;
	/* the readable part of the thread's own stack; low moves down as it grows */
	uintptr_t stack_low, stack_high;
	/* where the thread's stack ends, so low never goes below; see own_stack.h */
	uintptr_t stack_floor;
	/* where a walk last began on another stack: known not to reach ours */
	uintptr_t other_low, other_high;
	/* of the modules that the rules were made for; another one drops the cache */
	uint64_t generation;
};

/* Memory for the caches of a zeroed walker, zeroed as well, where the caller has some. */
size_t cuf_walker_bytes(void);
void cuf_walker_use(struct cuf_walker *walker, void *memory);

/*
 * Finds both ends of the calling thread's stack (own_stack.h). Maps the caches once: a walker
 * starts zeroed, and one whose thread died may be initialised again. Returns 0, or -errno; then the
 * walker is still safe and its stacks are empty.
 */
int cuf_walker_init(struct cuf_walker *walker, int is_main_thread);

/*
 * Writes at most max return addresses to frames and returns their number. Frames at or below
 * `above` on the stack (__builtin_frame_address(0) of a hook; 0: none) are left out: the
 * recorder's and the runtime's. So are frames inside this library, wherever they are. The
 * instruction that a frame executes is the one before its address. That holds after a signal too:
 * there the address is the interrupted instruction's plus one.
 *
 * *stop: enum cuf_stop of format.h. generation: cuf_modules_generation() of now.
 * walker->cache->frame_sp belongs to the frames.
 */
unsigned cuf_walk(struct cuf_walker *walker, uint64_t generation, uintptr_t above,
		  uint64_t *frames, unsigned max, uint8_t *stop);

/* A stack that was walked because it is not cached. */
struct cuf_walked {
	/*
	 * the caller's, with room for max; written by cuf_walked_frames only, as most callers
	 * need none
	 */
	uint64_t *frames;
	/* of the frames: cuf_frames_hash_step from 0 */
	uint64_t hash;
	unsigned depth;
	/* the caller's: the stack that created the thread; 0: none */
	uint32_t creator;
	/* enum cuf_stop */
	uint8_t stop;
	/* the caller's: the id stands for this too, and a stack is recognized only with the same */
	uint64_t extra_key;
	/* takes the id that the caller gives the stack; 0: none */
	uint32_t *id;
	/* frames are written */
	bool is_written;
};

/*
 * The stack of the caller of a function that is still running, from its
 * __builtin_frame_address(0). max: at most CUF_WALK_FRAMES_MAX. Returns the id when the stack is
 * cached, and does nothing else. Otherwise returns 0 and fills *walked in.
 */
uint32_t cuf_walk_cached(struct cuf_walker *walker, uint64_t generation, const void *frame,
			 unsigned max, struct cuf_walked *walked);

/*
 * Writes the frames and their cache->frame_sp. To be called before the walker's next walk, once
 * or more.
 */
void cuf_walked_frames(struct cuf_walker *walker, struct cuf_walked *walked);

/*
 * The hash of a stack, frame by frame from 0. Only three instructions, because it is part of the
 * walk's loop.
 */
static inline uint64_t cuf_frames_hash_step(uint64_t hash, uint64_t frame)
{
	return ((hash << 5 | hash >> 59) ^ frame) * 0x9E3779B97F4A7C15ull;
}
