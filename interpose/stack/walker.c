/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk itself: a hot loop that follows cached rules on the thread's own stack, and a careful
 * step for everything else. Owns the rule cache and decides what may be read. Must never fault:
 * the loads of the hot loop are between the frame being left and the top of a stack whose pages
 * were found readable, one by one, from there up.
 */
#include "interpose/stack/walker.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include "interpose/abi/format.h"
#include "interpose/code/cfi.h"
#include "interpose/code/modules.h"
#include "interpose/platform/options.h"
#include "interpose/platform/guarded_copy.h"
#include "interpose/platform/side_stack.h"
#include "interpose/platform/readable.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/unwinder.h"
#include "interpose/stack/own_stack.h"
#include "interpose/stack/walker_parts.h"
#include "interpose/platform/laws.h"

enum {
	RULES_BYTES = (CUF_RULES + CUF_RULES_NEAR) * sizeof(struct cuf_rule),
	MAPPED_BYTES = RULES_BYTES + sizeof(struct cuf_stack_cache),
	/* a unit that every page size is a multiple of */
	PAGE = 4096,
	/* how far below the known part of the stack a deeper part is searched */
	ADOPT_PAGES = 4096,
	/* of a frame without unwind information */
	CHAIN_MAX_BYTES = 64 << 10,
	/* of such frames, one after another */
	CHAIN_MAX_LINKS = 128,
	/* nested signal frames in one walk */
	SIGNALS_MAX = 8,
	/* read at once from a foreign stack; we may be on a small one ourselves */
	WINDOW_BYTES = 512
};

/* ---- the thread's own stack ---- */

/*
 * Drops the cached stacks without unmapping their memory. It is needed again at once, and a page
 * costs more than all events of a short thread.
 */
static void drop_cached_stacks(struct cuf_walker *walker)
{
	if (walker->cache_used)
		walker->cache->epoch++;
}

size_t cuf_walker_bytes(void) { return MAPPED_BYTES; }

void cuf_walker_use(struct cuf_walker *walker, void *memory)
{
	walker->generation = 0;
	walker->rules = memory;
	walker->cache = (struct cuf_stack_cache *)((char *)memory + RULES_BYTES);
}

int cuf_walker_init(struct cuf_walker *walker, int is_main_thread)
{
	const struct cuf_own_stack stack = cuf_own_stack_find(is_main_thread);

	walker->stack_high = stack.top & ~(uintptr_t)7;
	walker->stack_low = walker->stack_high;
	walker->stack_floor = stack.floor;
	walker->other_low = walker->other_high = 0;
	drop_cached_stacks(walker); /* of another thread's stack */
	if (!walker->rules) {
		long at = cuf_sys_mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (cuf_sys_failed(at))
			return (int)at;
		cuf_walker_use(walker, (void *)at);
	}
	return 0;
}

/*
 * True when [sp, stack_high) is the thread's own stack and readable. When the stack is deeper
 * than before, the pages between are checked from sp up. From above, the check itself would make
 * the main thread's stack grow. Readable is not enough: stacks of fibers, and those that a program
 * gives its threads, may lie next to each other without a guard, and one may be unmapped while the
 * others stay.
 */
bool cuf_walker_on_own_stack(struct cuf_walker *walker, uintptr_t sp)
{
	const uintptr_t mask = ~(uintptr_t)(PAGE - 1), page = sp & mask;
	uintptr_t at;

	if (sp - walker->stack_low < walker->stack_high - walker->stack_low)
		return true;
	if (sp < walker->stack_floor || sp > walker->stack_low ||
	    walker->stack_low - page > (uintptr_t)ADOPT_PAGES * PAGE ||
	    sp - walker->other_low < walker->other_high - walker->other_low)
		return false;
	for (at = page; at < walker->stack_low; at += PAGE) {
		/* our page and the one with the control block exist: a new thread has no others */
		if (at == ((uintptr_t)__builtin_frame_address(0) & mask) ||
		    at == (walker->stack_high & mask) || cuf_readable_page(at))
			continue;
		walker->other_low = page;
		walker->other_high = at;
		return false;
	}
	walker->stack_low = page;
	return true;
}

#if CUF_HAS_RULES /* elsewhere: walk_pointers.c */

/*
 * One walk. ip is the return address not yet written; sp and fp are those of the frame that it
 * returns to.
 */
struct walk {
	struct cuf_walker *walker;
	uintptr_t ip, sp, fp;
	uintptr_t above;
	uint64_t *frames;
	unsigned count, max, signals;
	/* of the frame that the last signal interrupted; 0: none */
	uintptr_t interrupted_sp;
	/* where the kernel saved it, among its other registers; 0: unknown */
	uintptr_t saved_sp_at;
	/* frame pointers were followed up to here, ahead of the walk; 0: none */
	uintptr_t chained_sp;
	enum cuf_stop stop;
};

/* Part of a foreign stack, as copied by the kernel. */
struct window {
	uintptr_t start;
	size_t bytes;
	unsigned char copy[WINDOW_BYTES];
};

/* ---- the rule cache ---- */

/*
 * With unwind=fp every function is taken to keep a frame pointer. What has none, or is no function,
 * is known by its own rule: this library, a signal's return, a stack's end.
 */
static struct cuf_rule choose_rule(uintptr_t ip)
{
	struct cuf_rule rule = cuf_rule_compile(ip);

	if (__builtin_expect(cuf_options.unwind != CUF_UNWIND_FP, 1) || !ip ||
	    (rule.kind & CUF_RULE_OWN) || rule.kind == CUF_RULE_SIGNAL ||
	    rule.kind == CUF_RULE_END)
		return rule;
	return (struct cuf_rule){
		.ip = ip, .kind = CUF_RULE_FP, .cfa_offset = 16,
		.fp_offset = -16 / CUF_RULE_FP_UNIT,
	};
}

__attribute__((noinline)) struct cuf_rule *cuf_rule_find_far(struct cuf_rule *near,
							     struct cuf_rule *rules, uintptr_t ip)
{
	struct cuf_rule rule = { .ip = 0 };

	if (near->ip) {
		*rule_entry(rules + CUF_RULES_NEAR, near->ip, CUF_RULES) = *near;
		rule = *rule_entry(rules + CUF_RULES_NEAR, ip, CUF_RULES);
	}
	if (rule.ip != ip || !ip) {
		rule = choose_rule(ip);
		if ((rule.kind & ~CUF_RULE_OWN) == CUF_RULE_FOREIGN)
			rule.ip = 0;
	}
	*near = rule;
	return near;
}

void cuf_walker_renew(struct cuf_walker *walker, uint64_t generation)
{
	if (walker->generation)
		cuf_sys_madvise(walker->rules, RULES_BYTES, MADV_DONTNEED);
	drop_cached_stacks(walker);
	walker->generation = generation;
}

/* ---- the hot loop ---- */

static inline bool is_recorded(uintptr_t sp, uintptr_t above, unsigned kind)
{
	return sp - 8 > above && kind < CUF_RULE_OWN;
}

/* The CFA by a plain rule that is not the usual one. false: a load would leave the known stack. */
static inline bool find_cfa(const struct cuf_rule *rule, uintptr_t sp, uintptr_t fp, uintptr_t high,
			    uintptr_t *cfa)
{
	const unsigned kind = rule->kind & ~CUF_RULE_OWN;
	uintptr_t below = cuf_rule_return_below(rule), least = (uintptr_t)-cuf_rule_fp_offset(rule);

	if (kind == CUF_RULE_SP) { /* of this library */
		*cfa = sp + (uint32_t)rule->cfa_offset;
		return *cfa <= high;
	}
	if (least < below)
		least = below;
	*cfa = fp + (uintptr_t)(intptr_t)rule->cfa_offset;
	return kind == CUF_RULE_FP && *cfa - 8 - sp < high - 7 - sp && *cfa - sp >= least;
}

/*
 * Follows plain rules as long as every load stays inside the known part of the own stack. The
 * loop's state is in registers: address to rule to CFA to the next address is one chain of loads,
 * and nothing else may lengthen it. A branch is predicted, where a choice of the base would wait
 * for its data.
 */
static inline READS_STACKS void walk_own_stack(struct walk *walk)
{
	struct cuf_rule *const rules = walk->walker->rules;
	uint64_t *const frames = walk->frames;
	uintptr_t *const frame_sp = walk->walker->cache->frame_sp;
	const uintptr_t high = walk->walker->stack_high, above = walk->above;
	const unsigned max = walk->max;
	uintptr_t ip = walk->ip, sp = walk->sp, fp = walk->fp;
	unsigned count = walk->count;

	while (count < max) {
		const struct cuf_rule *rule = find_rule(rules, ip);
		intptr_t fp_offset = cuf_rule_fp_offset(rule);
		uintptr_t cfa;

		frames[count] = ip;
		frame_sp[count] = sp;
		if (__builtin_expect(rule->kind == CUF_RULE_SP, 1)) {
			cfa = sp + (uint32_t)rule->cfa_offset; /* beyond all loads: see cfi.h */
			if (__builtin_expect(cfa > high, 0))
				break;
			count += sp - 8 > above;
		} else { /* EMPTY too: what is not cached, and address 0 */
			if (!find_cfa(rule, sp, fp, high, &cfa))
				break;
			count += is_recorded(sp, above, rule->kind);
		}
		if (fp_offset)
			fp = ((const struct word *)(cfa + (uintptr_t)fp_offset))->value;
		ip = ((const struct word *)(cfa - cuf_rule_return_below(rule)))->value;
		ip = strip_signature(ip);
		sp = cfa;
	}
	walk->ip = ip;
	walk->sp = sp;
	walk->fp = fp;
	walk->count = count;
}

/* ---- reading what may not be readable ---- */

/* Copies the rest of the page from `at` on, or as much as fits. */
static bool fill_window(struct window *window, uintptr_t at)
{
	size_t bytes = PAGE - at % PAGE < WINDOW_BYTES ? PAGE - at % PAGE : WINDOW_BYTES;

	window->bytes = 0;
	if (!cuf_guarded_copy(window->copy, at, bytes))
		return false;
	window->start = at;
	window->bytes = bytes;
	return true;
}

/* One word of a stack: our own directly, any other through the kernel. false: it cannot be read. */
static READS_STACKS bool read_word(struct walk *walk, struct window *window, uintptr_t at,
				   uintptr_t *value)
{
	const struct cuf_walker *walker = walk->walker;

	if (at % sizeof *value)
		return false;
	if (at - walker->stack_low < walker->stack_high - walker->stack_low) {
		*value = ((const struct word *)at)->value;
		return true;
	}
	if (at - window->start >= window->bytes && !fill_window(window, at))
		return false;
	__builtin_memcpy(value, window->copy + (at - window->start), sizeof *value);
	return true;
}

static bool stop_walk(struct walk *walk, enum cuf_stop why)
{
	walk->stop = why;
	return false;
}

/* ---- registers other than sp and fp ---- */

/*
 * Where in struct sigcontext the kernel saves each register, by DWARF's number, in words. And the
 * registers that calls preserve, other than fp.
 */
#if defined __aarch64__
enum { SAVED_FP = 29, SAVED_SP = 31, REGISTERS = 32, LINK = 30 };
static inline unsigned saved_at(unsigned reg) { return reg; }
static const uint32_t kept_by_calls = 0x3ffu << 19; /* x19 to x28 */
#else
enum { SAVED_FP = 10, SAVED_SP = 15, REGISTERS = 16, LINK = 16 };
static inline unsigned saved_at(unsigned reg)
{
	static const uint8_t words[] = {
		13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7
	};

	return words[reg];
}
/* rbx, r12 to r15 */
static const uint32_t kept_by_calls = 1u << 3 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15;
#endif

/* The register as the kernel saved it for frame i. false: no signal arrived in that frame. */
static bool read_interrupted(struct walk *walk, struct window *window, unsigned i, unsigned reg,
			     uintptr_t *value)
{
	return walk->saved_sp_at && walk->walker->cache->frame_sp[i] == walk->interrupted_sp &&
	       read_word(walk, window, walk->saved_sp_at + 8 * saved_at(reg) - 8 * SAVED_SP, value);
}

/*
 * A register of the frame that is being left: hand-written assembly keeps the CFA in one. Where a
 * signal arrived, all registers are known. At a call, those that calls preserve are known if the
 * callee has saved them, or if a signal arrived in the callee before it did.
 */
static bool read_register(struct walk *walk, struct window *window, unsigned reg, uintptr_t *value)
{
	unsigned i = walk->count - 1;
	int64_t offset;

	if (!walk->count || walk->walker->cache->frame_sp[i] != walk->sp || reg >= REGISTERS)
		return false;
	if (read_interrupted(walk, window, i, reg, value))
		return true;
	if (!i || !(kept_by_calls >> reg & 1) ||
	    !cuf_register_place(walk->frames[i - 1], reg, &offset))
		return false;
	if (offset)
		return read_word(walk, window, walk->sp + (uintptr_t)offset, value);
	return read_interrupted(walk, window, i - 1, reg, value);
}

/* ---- careful steps ---- */

/* A rule that the hot loop does not follow, or not here. */
static bool follow_rule(struct walk *walk, const struct cuf_rule *rule, unsigned kind,
			struct window *window)
{
	bool from_sp = kind == CUF_RULE_SP || kind == CUF_RULE_SP_SLOT || kind == CUF_RULE_SP_LOW;
	uintptr_t cfa = from_sp ? walk->sp : walk->fp;
	uintptr_t ip, fp = walk->fp, fp_at = walk->fp;

	if (kind == CUF_RULE_REGISTER && !read_register(walk, window, rule->extra, &cfa))
		return stop_walk(walk, CUF_STOP_UNSUPPORTED);
	cfa += (uintptr_t)(intptr_t)rule->cfa_offset;
	if ((kind == CUF_RULE_FP_SLOT || kind == CUF_RULE_SP_SLOT) &&
	    !read_word(walk, window, cfa, &cfa))
		return stop_walk(walk, CUF_STOP_BOUNDS);
	if (kind == CUF_RULE_SP_SLOT)
		cfa += rule->extra;
	if (kind != CUF_RULE_FP_SLOT)
		fp_at = cfa;
	fp_at += (uintptr_t)cuf_rule_fp_offset(rule);
	if (cfa <= walk->sp || !read_word(walk, window, cfa - cuf_rule_return_below(rule), &ip))
		return stop_walk(walk, CUF_STOP_BOUNDS);
	if ((rule->fp_offset || kind == CUF_RULE_FP_SLOT) && !read_word(walk, window, fp_at, &fp))
		return stop_walk(walk, CUF_STOP_BOUNDS);
	walk->ip = strip_signature(ip);
	walk->fp = fp;
	walk->sp = cfa;
	return true;
}

/* A signal arrived where the return address is in its register. It was never signed. */
static bool follow_link(struct walk *walk, const struct cuf_rule *rule, struct window *window)
{
	uintptr_t ip;

	if (!read_register(walk, window, LINK, &ip))
		return stop_walk(walk, CUF_STOP_UNSUPPORTED);
	walk->ip = strip_signature(ip);
	walk->sp += (uintptr_t)(intptr_t)rule->cfa_offset;
	return true;
}

/*
 * The kernel saved all registers where the rule refers to. The handler may have run on another
 * stack than the code it interrupted, so sp may go anywhere. The interrupted address is exact:
 * see walker.h.
 */
static bool cross_signal(struct walk *walk, const struct cuf_rule *rule, struct window *window)
{
	uintptr_t at = walk->sp + (uintptr_t)(intptr_t)rule->cfa_offset;
	uintptr_t fp_at = walk->sp + (uintptr_t)cuf_rule_fp_offset(rule);
	uintptr_t sp, ip, fp;

	if (walk->signals++ == SIGNALS_MAX || !read_word(walk, window, fp_at, &fp) ||
	    !read_word(walk, window, at, &sp) || !read_word(walk, window, at + 8, &ip))
		return stop_walk(walk, CUF_STOP_SIGNAL);
	walk->ip = ip + 1;
	walk->sp = sp;
	walk->fp = fp;
	walk->interrupted_sp = sp;
	walk->saved_sp_at = 0;
	if (rule->cfa_offset - cuf_rule_fp_offset(rule) == 8 * (SAVED_SP - SAVED_FP))
		walk->saved_sp_at = at;
	walk->chained_sp = 0; /* of the stack that was left */
	walk->above = 0;
	return true;
}

/* One link of a chain of frame pointers: fp leads a little way up the same stack. */
static bool read_link(struct walk *walk, struct window *window, uintptr_t sp, uintptr_t at,
		      uintptr_t *fp, uintptr_t *ip)
{
	return at - sp <= CHAIN_MAX_BYTES &&
	       cuf_walker_on_own_stack(walk->walker, at) ==
		       cuf_walker_on_own_stack(walk->walker, sp) &&
	       read_word(walk, window, at, fp) && read_word(walk, window, at + 8, ip);
}

/*
 * No unwind information. Frame pointers are trusted when they lead, link by link, to an address
 * in a known object: JIT-compiled code that was called from compiled code. Only code that has
 * called something is likely to have a frame. And a fiber's outermost frame often still holds the
 * pointer of the stack that made it.
 */
static bool follow_chain(struct walk *walk, struct window *window)
{
	uintptr_t fp, ip, sp = walk->sp, at = walk->fp;
	struct cuf_object object;

	if (walk->sp == walk->interrupted_sp)
		return stop_walk(walk, CUF_STOP_NO_RULE);
	for (unsigned links = 0; walk->sp >= walk->chained_sp; links++) {
		if (links == CHAIN_MAX_LINKS || !read_link(walk, window, sp, at, &fp, &ip))
			return stop_walk(walk, CUF_STOP_NO_RULE);
		sp = at + 16;
		at = fp;
		if (cuf_object_find(ip - 1, &object))
			walk->chained_sp = sp;
	}
	if (!read_link(walk, window, walk->sp, walk->fp, &fp, &ip))
		return stop_walk(walk, CUF_STOP_NO_RULE);
	walk->ip = strip_signature(ip);
	walk->sp = walk->fp + 16;
	walk->fp = fp;
	return true;
}

static bool step_carefully(struct walk *walk, const struct cuf_rule *rule, struct window *window)
{
	unsigned kind = rule->kind & ~CUF_RULE_OWN;

	switch (kind) {
	case CUF_RULE_SP:
	case CUF_RULE_SP_LOW:
	case CUF_RULE_FP:
	case CUF_RULE_FP_SLOT:
	case CUF_RULE_SP_SLOT:
	case CUF_RULE_REGISTER: return follow_rule(walk, rule, kind, window);
	case CUF_RULE_LINK: return follow_link(walk, rule, window);
	case CUF_RULE_SIGNAL: return cross_signal(walk, rule, window);
	case CUF_RULE_CHAIN:
	case CUF_RULE_FOREIGN: return follow_chain(walk, window);
	case CUF_RULE_END: return stop_walk(walk, CUF_STOP_END);
	}
	return stop_walk(walk, CUF_STOP_UNSUPPORTED);
}

/* One step of any kind, and more until the own stack is reached. false: the walk is over. */
static __attribute__((noinline, cold)) bool walk_carefully(struct walk *walk)
{
	struct window window;

	window.start = window.bytes = 0;
	do {
		struct cuf_rule rule;

		if (!walk->ip)
			return stop_walk(walk, CUF_STOP_END);
		rule = *find_rule(walk->walker->rules, walk->ip);
		if (is_recorded(walk->sp, walk->above, rule.kind)) {
			if (walk->count == walk->max)
				return stop_walk(walk, CUF_STOP_DEPTH);
			walk->walker->cache->frame_sp[walk->count] = walk->sp;
			walk->frames[walk->count++] =
				walk->ip + ((rule.kind & ~CUF_RULE_OWN) == CUF_RULE_SIGNAL);
		}
		if (!step_carefully(walk, &rule, &window))
			return false;
	} while (!cuf_walker_on_own_stack(walk->walker, walk->sp));
	return true;
}

/* ---- whole walks ---- */

/* Where the hot loop stopped: at the end of the thread or of the room, as nearly always. */
static inline bool ends_here(struct walk *walk)
{
	const struct cuf_rule *rule = find_rule(walk->walker->rules, walk->ip);
	bool is_end = !walk->ip || (rule->kind & ~CUF_RULE_OWN) == CUF_RULE_END;

	if (walk->ip && is_recorded(walk->sp, walk->above, rule->kind)) {
		if (walk->count == walk->max) {
			walk->stop = CUF_STOP_DEPTH;
			return true;
		}
		walk->walker->cache->frame_sp[walk->count] = walk->sp;
		walk->frames[walk->count] = walk->ip;
		walk->count += is_end;
	}
	if (is_end)
		walk->stop = CUF_STOP_END;
	return is_end;
}

/* All of a walk, as nearly always: no other stack, which would cost as much as the walk. */
static inline bool walk_quickly(struct walk *walk)
{
	if (!cuf_walker_on_own_stack(walk->walker, walk->sp))
		return false;
	walk_own_stack(walk);
	return ends_here(walk);
}

static void walk_on(void *argument)
{
	struct walk *walk = argument;

	if (cuf_walker_on_own_stack(walk->walker, walk->sp))
		walk_own_stack(walk);
	while (walk_carefully(walk))
		walk_own_stack(walk);
}

/*
 * Starts at its caller. Asking for the frame address gives this function a frame pointer, so the
 * first step needs no rule.
 */
__attribute__((noinline)) READS_STACKS unsigned cuf_walk(struct cuf_walker *walker,
							 uint64_t generation, uintptr_t above,
							 uint64_t *frames, unsigned max,
							 uint8_t *stop)
{
	const struct word *frame = __builtin_frame_address(0);
	struct walk walk = {
		.walker = walker,
		.ip = strip_signature(frame[1].value),
		.fp = frame[0].value,
		.above = above,
		.frames = frames,
		.max = max,
		.stop = CUF_STOP_UNSUPPORTED,
	};

	if (walker->rules) {
		if (walker->generation != generation)
			cuf_walker_renew(walker, generation);
		walk.sp = callers_sp(walker->rules, frame);
		if (!walk_quickly(&walk)) /* careful steps need more stack than a hook may take */
			cuf_on_side_stack(walk_on, &walk);
	}
	*stop = (uint8_t)walk.stop;
	return walk.count;
}

unsigned cuf_walk_continue(struct cuf_walker *walker, const struct cuf_walk_state *from,
			   uint64_t *frames, unsigned count, unsigned max, uint8_t *stop)
{
	struct walk walk = {
		.walker = walker,
		.ip = from->ip,
		.sp = from->sp,
		.fp = from->fp,
		.above = from->above,
		.frames = frames,
		.count = count,
		.max = max,
		.stop = CUF_STOP_UNSUPPORTED,
	};

	cuf_on_side_stack(walk_on, &walk);
	*stop = (uint8_t)walk.stop;
	return walk.count;
}
#endif
