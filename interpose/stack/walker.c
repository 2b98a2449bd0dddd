/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk itself: a hot loop that follows cached rules on the thread's own stack, and a careful step for all else.
 * Owns the rule cache and the idea of what may be read. Must never fault: the loads of the hot loop lie between the
 * frame being left and the top of a stack whose pages were found readable, one by one, from there up.
 */
#include "interpose/stack/walker.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include "interpose/abi/format.h"
#include "interpose/code/cfi.h"
#include "interpose/code/modules.h"
#include "interpose/platform/readable.h"
#include "interpose/platform/sys.h"
#include "interpose/stack/walker_parts.h"
#include "interpose/platform/laws.h"

enum {
	RULES_BYTES = (CUF_RULES + CUF_RULES_NEAR) * sizeof(struct cuf_rule),
	MAPPED_BYTES = RULES_BYTES + sizeof(struct cuf_memos),
	PAGE = 4096,                /* a unit that every page size is a multiple of */
	ADOPT_PAGES = 4096,         /* how far below the known part of the stack a deeper part is looked for */
	CHAIN_MAX_BYTES = 64 << 10, /* of a frame without unwind information */
	CHAIN_MAX_LINKS = 128,      /* of frames without unwind information, one after another */
	SIGNALS_MAX = 8,            /* nested signal frames in one walk */
	WINDOW_BYTES = 512          /* read at once from a foreign stack; we may be on a small one ourselves */
};

/* The stack's start as ld.so saw it; weak, so that ld.so is not linked. */
extern void *__libc_stack_end __attribute__((weak));

/* Without giving their memory back: it is wanted again at once, and a page costs more than all of a short thread's events. */
static void forget_memos(struct cuf_walker *walker)
{
	if (!walker->has_memos)
		return;
	walker->memos->epoch++;
}

int cuf_walker_init(struct cuf_walker *walker, int is_main_thread)
{
	static uintptr_t main_thread; /* first set by the constructor, in the true main thread */
	uintptr_t thread = (uintptr_t)__builtin_thread_pointer();
	long at;
	if (is_main_thread && !main_thread)
		main_thread = thread;
	if (thread == main_thread)
		walker->stack_high = &__libc_stack_end ? (uintptr_t)__libc_stack_end : 0;
	else
		walker->stack_high = thread; /* NPTL puts the control block at the top of the stack */
	walker->stack_high &= ~(uintptr_t)7;
	walker->stack_low = walker->stack_high;
	walker->other_low = walker->other_high = 0;
	forget_memos(walker); /* of another stack */
	if (walker->rules)
		return 0;
	walker->generation = 0;
	at = cuf_sys_mmap(
		NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (cuf_sys_failed(at))
		return (int)at;
	walker->rules = (struct cuf_rule *)at;
	walker->memos = (struct cuf_memos *)(at + RULES_BYTES);
	return 0;
}

void cuf_walker_fini(struct cuf_walker *walker)
{
	if (walker->rules)
		cuf_sys_munmap(walker->rules, MAPPED_BYTES);
	walker->rules = NULL;
}

/*
 * True when [sp, stack_high) is the thread's own stack and readable. When the stack is deeper than it was seen before,
 * the pages between are tried from sp up: from above, the probing itself would make the main thread's stack grow.
 */
bool cuf_walker_on_own_stack(struct cuf_walker *w, uintptr_t sp)
{
	const uintptr_t mask = ~(uintptr_t)(PAGE - 1), page = sp & mask;
	uintptr_t at;
	if (sp - w->stack_low < w->stack_high - w->stack_low)
		return true;
	if (sp > w->stack_low || w->stack_low - page > (uintptr_t)ADOPT_PAGES * PAGE ||
		sp - w->other_low < w->other_high - w->other_low)
		return false;
	for (at = page; at < w->stack_low; at += PAGE) {
		/* the page that we run on and the one with the thread's control block are there: a new thread has no others */
		if (at == ((uintptr_t)__builtin_frame_address(0) & mask) || at == (w->stack_high & mask) || cuf_readable_page(at))
			continue;
		w->other_low = page;
		w->other_high = at;
		return false;
	}
	w->stack_low = page;
	return true;
}

#if defined __x86_64__ /* elsewhere: walk_pointers.c */

/* One walk. ip is the return address not yet written; sp and fp are those of the frame that it returns to. */
struct walk {
	struct cuf_walker *walker;
	uintptr_t ip, sp, fp;
	uintptr_t above;
	uint64_t *frames;
	unsigned count, max, signals;
	uintptr_t interrupted_sp; /* of the frame that a signal broke into last; 0 none */
	uintptr_t saved_sp_at;    /* where the kernel saved it, among its other registers; 0 not known */
	uintptr_t chained_sp;     /* frame pointers were followed to here ahead of the walk; 0 none */
	enum cuf_stop stop;
};

/* Part of a foreign stack, as the kernel copied it. */
struct window {
	uintptr_t start;
	size_t bytes;
	unsigned char copy[WINDOW_BYTES];
};

/* From the large table, or learnt. */
__attribute__((noinline)) struct cuf_rule *cuf_rule_find_far(struct cuf_rule *near, struct cuf_rule *rules, uintptr_t ip)
{
	struct cuf_rule *far = rule_entry(rules + CUF_RULES_NEAR, ip, CUF_RULES), rule = *far;
	if (rule.ip != ip || !ip) {
		rule = cuf_rule_compile(ip);
		if ((rule.kind & ~CUF_RULE_OWN) == CUF_RULE_FOREIGN)
			rule.ip = 0;
		else
			*far = rule;
	}
	*near = rule;
	return near;
}

static inline bool is_recorded(uintptr_t sp, uintptr_t above, unsigned kind)
{
	return sp - 8 > above && kind < CUF_RULE_OWN;
}

/*
 * Follows plain rules as long as every load stays inside the known part of the own stack. What is in flight lives in
 * registers: address to rule to CFA to the next address is one chain of loads, and nothing else may lengthen it.
 */
static inline READS_STACKS void walk_own_stack(struct walk *w)
{
	struct cuf_rule *const rules = w->walker->rules;
	uint64_t *const frames = w->frames;
	uintptr_t *const lows = w->walker->memos->lows;
	const uintptr_t high = w->walker->stack_high, above = w->above;
	const unsigned max = w->max;
	uintptr_t ip = w->ip, sp = w->sp, fp = w->fp;
	unsigned count = w->count;
	while (count < max) {
		struct cuf_rule *rule = find_rule(rules, ip);
		uintptr_t cfa;
		unsigned kind = rule->kind & ~CUF_RULE_OWN;
		if (__builtin_expect(kind == CUF_RULE_SP, 1)) { /* a branch, which is guessed; a choice of base would be waited for */
			cfa = sp + (uint32_t)rule->cfa_offset; /* upwards: see cfi.c */
			if (__builtin_expect(cfa > high || cfa - sp < (uintptr_t) - (intptr_t)rule->fp_offset, 0))
				break;
		} else if (kind == CUF_RULE_FP) {
			cfa = fp + (uintptr_t)(intptr_t)rule->cfa_offset;
			if (cfa - 8 - sp >= high - 7 - sp || cfa - sp < (uintptr_t) - (intptr_t)rule->fp_offset)
				break;
		} else {
			break; /* EMPTY too: what is not cached, and address 0 */
		}
		frames[count] = ip;
		lows[count] = sp;
		count += is_recorded(sp, above, rule->kind);
		if (rule->fp_offset)
			fp = ((const struct word *)(cfa + (uintptr_t)(intptr_t)rule->fp_offset))->value;
		ip = ((const struct word *)(cfa - 8))->value;
		sp = cfa;
	}
	w->ip = ip;
	w->sp = sp;
	w->fp = fp;
	w->count = count;
}

/* One word of a stack: the own one directly, else through the kernel. false: it cannot be read. */
static READS_STACKS bool read_word(struct walk *w, struct window *window, uintptr_t at, uintptr_t *value)
{
	if (at % sizeof *value)
		return false;
	if (at - w->walker->stack_low < w->walker->stack_high - w->walker->stack_low) {
		*value = ((const struct word *)at)->value;
		return true;
	}
	if (at - window->start >= window->bytes) {
		size_t bytes = PAGE - at % PAGE < WINDOW_BYTES ? PAGE - at % PAGE : WINDOW_BYTES;
		struct iovec to = {window->copy, bytes}, from = {(void *)at, bytes};
		long self = cuf_sys(SYS_gettid, 0, 0, 0, 0, 0, 0);
		long got = cuf_sys(SYS_process_vm_readv, self, (long)&to, 1, (long)&from, 1, 0);
		window->bytes = 0;
		if (got != (long)bytes)
			return false;
		window->start = at;
		window->bytes = bytes;
	}
	__builtin_memcpy(value, window->copy + (at - window->start), sizeof *value);
	return true;
}

static bool stop_walk(struct walk *w, enum cuf_stop why)
{
	w->stop = why;
	return false;
}

/* Where in struct sigcontext the kernel saves each register, by DWARF's number. */
static const uint8_t saved_at[] = {13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7};
enum { SAVED_FP = 10, SAVED_SP = 15 };

/* Where the kernel saved this register for frame i, should a signal have arrived there. */
static bool read_interrupted(struct walk *w, struct window *window, unsigned i, unsigned reg, uintptr_t *value)
{
	return w->saved_sp_at && w->walker->memos->lows[i] == w->interrupted_sp &&
	       read_word(w, window, w->saved_sp_at + 8 * saved_at[reg] - 8 * SAVED_SP, value);
}

/*
 * A register of the frame that is being left: hand-written assembly has the CFA in one. Where a signal arrived, all are known.
 * At a call, those that calls keep: if the function that was called has saved it, or a signal arrived there before it did.
 */
static bool read_register(struct walk *w, struct window *window, unsigned reg, uintptr_t *value)
{
	static const unsigned kept_by_calls = 1u << 3 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15; /* rbx, r12 and up */
	unsigned i = w->count - 1;
	int64_t offset;
	if (!w->count || w->walker->memos->lows[i] != w->sp || reg >= sizeof saved_at)
		return false;
	if (read_interrupted(w, window, i, reg, value))
		return true;
	if (!i || !(kept_by_calls >> reg & 1) || !cuf_register_place(w->frames[i - 1], reg, &offset))
		return false;
	return offset ? read_word(w, window, w->sp + (uintptr_t)offset, value) : read_interrupted(w, window, i - 1, reg, value);
}

/* A rule that the hot loop does not follow, or not here. */
static bool follow_rule(struct walk *w, const struct cuf_rule *rule, unsigned kind, struct window *window)
{
	bool from_sp = kind == CUF_RULE_SP || kind == CUF_RULE_SP_SLOT;
	uintptr_t cfa = from_sp ? w->sp : w->fp;
	uintptr_t ip, fp = w->fp, fp_at = w->fp;
	if (kind == CUF_RULE_REGISTER && !read_register(w, window, rule->extra, &cfa))
		return stop_walk(w, CUF_STOP_UNSUPPORTED);
	cfa += (uintptr_t)(intptr_t)rule->cfa_offset;
	if ((kind == CUF_RULE_FP_SLOT || kind == CUF_RULE_SP_SLOT) && !read_word(w, window, cfa, &cfa))
		return stop_walk(w, CUF_STOP_BOUNDS);
	if (kind == CUF_RULE_SP_SLOT)
		cfa += rule->extra;
	if (kind != CUF_RULE_FP_SLOT)
		fp_at = cfa;
	if (cfa <= w->sp || !read_word(w, window, cfa - 8, &ip))
		return stop_walk(w, CUF_STOP_BOUNDS);
	if ((rule->fp_offset || kind == CUF_RULE_FP_SLOT) &&
		!read_word(w, window, fp_at + (uintptr_t)(intptr_t)rule->fp_offset, &fp))
		return stop_walk(w, CUF_STOP_BOUNDS);
	w->ip = ip;
	w->fp = fp;
	w->sp = cfa;
	return true;
}

/* The kernel saved all registers where the rule says; the handler may have run on another stack than what it broke
 * into, so sp may go anywhere. The interrupted address is exact: see walker.h. */
static bool cross_signal(struct walk *w, const struct cuf_rule *rule, struct window *window)
{
	uintptr_t at = w->sp + (uintptr_t)(intptr_t)rule->cfa_offset, sp, ip, fp;
	if (w->signals++ == SIGNALS_MAX || !read_word(w, window, w->sp + (uintptr_t)(intptr_t)rule->fp_offset, &fp) ||
		!read_word(w, window, at, &sp) || !read_word(w, window, at + 8, &ip))
		return stop_walk(w, CUF_STOP_SIGNAL);
	w->ip = ip + 1;
	w->sp = sp;
	w->fp = fp;
	w->interrupted_sp = sp;
	w->saved_sp_at = rule->cfa_offset - rule->fp_offset == 8 * (SAVED_SP - SAVED_FP) ? at : 0;
	w->chained_sp = 0; /* of the stack that was left */
	w->above = 0;
	return true;
}

/* One link of a chain of frame pointers: fp leads a little way up this very stack. */
static bool read_link(struct walk *w, struct window *window, uintptr_t sp, uintptr_t at, uintptr_t *fp, uintptr_t *ip)
{
	return at - sp <= CHAIN_MAX_BYTES && cuf_walker_on_own_stack(w->walker, at) == cuf_walker_on_own_stack(w->walker, sp) &&
	       read_word(w, window, at, fp) && read_word(w, window, at + 8, ip);
}

/*
 * No unwind information. Frame pointers are believed when they lead, link by link, to an address in a known object:
 * JIT-compiled code called from code that was not. Only code that has called something is likely to have a frame, and
 * a fiber's outermost frame often still holds the pointer of the stack that made it.
 */
static bool follow_chain(struct walk *w, struct window *window)
{
	uintptr_t fp, ip, sp = w->sp, at = w->fp;
	struct cuf_object object;
	if (w->sp == w->interrupted_sp)
		return stop_walk(w, CUF_STOP_NO_RULE);
	for (unsigned links = 0; w->sp >= w->chained_sp; links++) {
		if (links == CHAIN_MAX_LINKS || !read_link(w, window, sp, at, &fp, &ip))
			return stop_walk(w, CUF_STOP_NO_RULE);
		sp = at + 16;
		at = fp;
		if (cuf_object_find(ip - 1, &object))
			w->chained_sp = sp;
	}
	if (!read_link(w, window, w->sp, w->fp, &fp, &ip))
		return stop_walk(w, CUF_STOP_NO_RULE);
	w->ip = ip;
	w->sp = w->fp + 16;
	w->fp = fp;
	return true;
}

static bool step_carefully(struct walk *w, const struct cuf_rule *rule, struct window *window)
{
	unsigned kind = rule->kind & ~CUF_RULE_OWN;
	switch (kind) {
	case CUF_RULE_SP:
	case CUF_RULE_FP:
	case CUF_RULE_FP_SLOT:
	case CUF_RULE_SP_SLOT:
	case CUF_RULE_REGISTER: return follow_rule(w, rule, kind, window);
	case CUF_RULE_SIGNAL: return cross_signal(w, rule, window);
	case CUF_RULE_CHAIN:
	case CUF_RULE_FOREIGN: return follow_chain(w, window);
	case CUF_RULE_END: return stop_walk(w, CUF_STOP_END);
	}
	return stop_walk(w, CUF_STOP_UNSUPPORTED);
}

/* One step of any kind, and more until the own stack is reached. false: the walk is over. */
static __attribute__((noinline, cold)) bool walk_carefully(struct walk *w)
{
	struct window window;
	window.start = window.bytes = 0;
	do {
		struct cuf_rule rule;
		if (!w->ip)
			return stop_walk(w, CUF_STOP_END);
		rule = *find_rule(w->walker->rules, w->ip);
		if (is_recorded(w->sp, w->above, rule.kind)) {
			if (w->count == w->max)
				return stop_walk(w, CUF_STOP_DEPTH);
			w->walker->memos->lows[w->count] = w->sp;
			w->frames[w->count++] = w->ip + ((rule.kind & ~CUF_RULE_OWN) == CUF_RULE_SIGNAL);
		}
		if (!step_carefully(w, &rule, &window))
			return false;
	} while (!cuf_walker_on_own_stack(w->walker, w->sp));
	return true;
}

void cuf_walker_renew(struct cuf_walker *walker, uint64_t generation)
{
	if (walker->generation)
		cuf_sys_madvise(walker->rules, RULES_BYTES, MADV_DONTNEED);
	forget_memos(walker);
	walker->generation = generation;
}

static inline void run_walk(struct walk *w)
{
	if (cuf_walker_on_own_stack(w->walker, w->sp) || walk_carefully(w)) {
		do
			walk_own_stack(w);
		while (walk_carefully(w));
	}
}

/* Starts at its own caller: asking for its frame address gives it a frame pointer, so the first step needs no rule. */
__attribute__((noinline)) READS_STACKS unsigned cuf_walk(
	struct cuf_walker *walker, uint64_t generation, uintptr_t above, uint64_t *frames, unsigned max, uint8_t *stop)
{
	const struct word *frame = __builtin_frame_address(0);
	struct walk walk = {.walker = walker,
		.ip = frame[1].value,
		.sp = (uintptr_t)(frame + 2),
		.fp = frame[0].value,
		.above = above,
		.frames = frames,
		.max = max,
		.stop = CUF_STOP_UNSUPPORTED};
	if (walker->rules) {
		if (walker->generation != generation)
			cuf_walker_renew(walker, generation);
		run_walk(&walk);
	}
	*stop = (uint8_t)walk.stop;
	return walk.count;
}

unsigned cuf_walk_on(struct cuf_walker *walker, uintptr_t ip, uintptr_t sp, uintptr_t fp, uint64_t *frames, unsigned count, unsigned max, uint8_t *stop)
{
	struct walk walk = {.walker = walker,
		.ip = ip,
		.sp = sp,
		.fp = fp,
		.frames = frames,
		.count = count,
		.max = max,
		.stop = CUF_STOP_UNSUPPORTED};
	run_walk(&walk);
	*stop = (uint8_t)walk.stop;
	return walk.count;
}
#endif
