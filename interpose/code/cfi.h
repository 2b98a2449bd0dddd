/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call-frame rules: the .eh_frame information about one code address, compiled to 16 bytes that
 * the walker follows with two loads. x86-64 only; elsewhere every rule is CUF_RULE_UNSUPPORTED.
 *
 * Contract: never faults, because every read of an unwind table is checked against the segment
 * that holds it. No lock, no allocation; cold (about a microsecond). Any thread.
 *
 * Rules exist for x86-64 and aarch64 (CUF_HAS_RULES). On x86-64 a call pushes the return address,
 * so it is at cfa - 8. On aarch64 a call leaves it in a register, and the function saves it, most
 * often next to fp.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#if defined __x86_64__ || defined __aarch64__
#define CUF_HAS_RULES 1
#else
#define CUF_HAS_RULES 0
#endif

/*
 * sp and fp are those of the frame that is being left, and cfa is the new sp. The return address
 * is cuf_rule_return_below the cfa unless stated otherwise. "fp as in SP" means: the new fp is
 * *(cfa + fp_offset), or unchanged when fp_offset is 0.
 */
enum cuf_rule_kind {
	/* an unused entry of the cache */
	CUF_RULE_EMPTY = 0,
	/* cfa = sp + cfa_offset; all that is saved is between sp and cfa */
	CUF_RULE_SP = 1,
	/* cfa = fp + cfa_offset, fp as in SP */
	CUF_RULE_FP = 2,
	/* cfa = *(fp + cfa_offset), fp = *(fp + fp_offset): the compiler realigned the stack */
	CUF_RULE_FP_SLOT = 3,
	/*
	 * cfa = *(sp + cfa_offset) + extra, fp as in SP: hand-written assembly that saves the old
	 * sp
	 */
	CUF_RULE_SP_SLOT = 4,
	/* cfa = the register `extra` + cfa_offset, fp as in SP */
	CUF_RULE_REGISTER = 5,
	/* cfa = *(sp + cfa_offset), fp = *(sp + fp_offset), ip = the word after cfa's, and exact */
	CUF_RULE_SIGNAL = 6,
	/* no unwind information in a known object: a frame pointer, if it looks right */
	CUF_RULE_CHAIN = 7,
	/* the same outside every known object (JIT): never cached, as code may be loaded later */
	CUF_RULE_FOREIGN = 8,
	/* outermost frame */
	CUF_RULE_END = 9,
	CUF_RULE_UNSUPPORTED = 10,
	/*
	 * aarch64: cfa = sp + cfa_offset, fp unchanged, and the return address is still in its
	 * register, which is known only where a signal arrived
	 */
	CUF_RULE_LINK = 11,
	/* as SP, and fp is saved elsewhere: below sp, where a signal arrived in an epilogue */
	CUF_RULE_SP_LOW = 12
};

/* Flag of kind: code of this library. */
#define CUF_RULE_OWN 0x80u

struct cuf_rule {
	uintptr_t ip;
	int32_t cfa_offset;
	/* in units of CUF_RULE_FP_UNIT bytes: frames of aarch64 are saved at their lower end */
	int16_t fp_offset;
	/* enum cuf_rule_kind, with CUF_RULE_OWN */
	uint8_t kind;
	/* see the kinds and cuf_rule_return_below; registers have DWARF's numbers */
	uint8_t extra;
};

#if defined __aarch64__
#define CUF_RULE_FP_UNIT 8
#else
#define CUF_RULE_FP_UNIT 1
#endif

static inline intptr_t cuf_rule_fp_offset(const struct cuf_rule *rule)
{
	return rule->fp_offset * (intptr_t)CUF_RULE_FP_UNIT;
}

/* How far below the cfa the return address is, in bytes. */
static inline uintptr_t cuf_rule_return_below(const struct cuf_rule *rule)
{
#if defined __aarch64__
	if (rule->extra && (rule->kind & ~CUF_RULE_OWN) <= CUF_RULE_FP)
		return rule->extra * 8u;
	return (uintptr_t)-cuf_rule_fp_offset(rule) - 8; /* next to fp */
#else
	(void)rule;
	return 8;
#endif
}

/*
 * The rule for the instruction before ip, which is the call that ip returns to. For an exact
 * address pass address + 1.
 */
struct cuf_rule cuf_rule_compile(uintptr_t ip);

/*
 * Where the function of that instruction has saved this register: at its cfa + *cfa_offset, or 0
 * when it has not saved it yet. false: unknown.
 */
bool cuf_register_place(uintptr_t ip, unsigned reg, int64_t *cfa_offset);
