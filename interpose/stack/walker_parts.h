/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What walker.c, stack_cache.c and walk_pointers.c share; no other file includes it. Contract: as
 * in walker.h. walker->rules is not NULL.
 */
#pragma once

#include <stddef.h>
#include "interpose/code/cfi.h"
#include "interpose/stack/walker.h"

enum {
	CUF_RULES = 1 << CUF_RULE_BITS,
	/* an address is a multiple of 16 / NEAR_UNIT, and 8 is what a load multiplies by */
#if defined __aarch64__
	NEAR_UNIT = 4
#else
	NEAR_UNIT = 8
#endif
};

/*
 * A word of a stack: to the compiler it belongs to no object, and in a damaged frame it is
 * unaligned.
 */
struct __attribute__((packed, may_alias)) word {
	uintptr_t value;
};
#define READS_STACKS __attribute__((no_sanitize("address", "thread", "undefined")))

/*
 * A return address may be signed (PAC-RET). The hint strips the signature and is a no-op on older
 * processors.
 */
static inline uintptr_t strip_signature(uintptr_t ip)
{
#if defined __aarch64__
	register uintptr_t x30 __asm__("x30") = ip;

	__asm__("hint #7" : "+r"(x30));
	return x30;
#else
	return ip;
#endif
}

/*
 * Return addresses differ in their low bits.
 */
static inline struct cuf_rule *rule_entry(struct cuf_rule *rules, uintptr_t ip, size_t count)
{
	uintptr_t offset = (ip * sizeof *rules ^ ip >> 7) & (count - 1) * sizeof *rules;

	return (struct cuf_rule *)((char *)rules + offset);
}

/*
 * Puts the rule into *near. What was there goes to the large table, from where it comes back. A
 * place that was empty has nothing there, so a program of few stacks touches none of its pages.
 */
struct cuf_rule *cuf_rule_find_far(struct cuf_rule *near, struct cuf_rule *rules, uintptr_t ip);

/*
 * The first table is small, so the processor keeps its few pages translated. A translation at
 * every frame would cost as much as the walk. Its entry is found by one operation: no two return
 * addresses differ in the bit that is left out, and the bits above are as good as any.
 */
static inline struct cuf_rule *near_entry(struct cuf_rule *rules, uintptr_t ip)
{
	const uintptr_t step = sizeof(struct cuf_rule) / NEAR_UNIT;
	uintptr_t place = ip & (CUF_RULES_NEAR - 1) * step;

	return (struct cuf_rule *)((char *)rules + place * NEAR_UNIT);
}

static inline struct cuf_rule *find_rule(struct cuf_rule *rules, uintptr_t ip)
{
	struct cuf_rule *near = near_entry(rules, ip);

	if (__builtin_expect(near->ip == ip, 1))
		return near;
	return cuf_rule_find_far(near, rules, ip);
}

/*
 * The stack pointer of the caller of the function that this is part of; frame: its
 * __builtin_frame_address(0). On aarch64 the frame record is at the lower end of its frame, and
 * clang's __builtin_dwarf_cfa is that end: the function's own rule has the size.
 */
static inline __attribute__((always_inline)) uintptr_t callers_sp(struct cuf_rule *rules,
								  const struct word *frame)
{
#if defined __aarch64__
	uintptr_t here, sp;
	const struct cuf_rule *rule;

	__asm__ volatile("adr %0, .\n\tmov %1, sp" : "=r"(here), "=r"(sp));
	rule = find_rule(rules, here + 4);
	if ((rule->kind & ~CUF_RULE_OWN) == CUF_RULE_FP)
		sp = (uintptr_t)frame;
	return sp + (uintptr_t)(intptr_t)rule->cfa_offset;
#else
	(void)rules;
	return (uintptr_t)(frame + 2);
#endif
}

/* True when [sp, top) is the thread's own stack and readable. */
bool cuf_walker_on_own_stack(struct cuf_walker *walker, uintptr_t sp);

/* Modules changed: drops the rules and the cached stacks. */
void cuf_walker_renew(struct cuf_walker *walker, uint64_t generation);

/* A walk that stands at ip; sp and fp are those of the frame that ip returns to. above: cuf_walk */
struct cuf_walk_state {
	uintptr_t ip, sp, fp, above;
};

/* Continues a walk that has count frames already. Returns how many it has then. */
unsigned cuf_walk_continue(struct cuf_walker *walker, const struct cuf_walk_state *from,
			   uint64_t *frames, unsigned count, unsigned max, uint8_t *stop);
