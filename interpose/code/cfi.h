/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call-frame rules: what .eh_frame says about one code address, compiled to 16 bytes that the walker can follow with
 * two loads. x86-64; elsewhere every rule is CUF_RULE_UNSUPPORTED.
 *
 * Contract: cuf_rule_compile never faults: every read of unwind tables is checked against the segment they lie in.
 * It takes no lock and allocates nothing; cold (about a microsecond). Any thread.
 */
#ifndef CUF_CFI_H
#define CUF_CFI_H

#include <stdbool.h>
#include <stdint.h>

/* sp, fp: of the frame that is being left; cfa: the value sp gets. The return address lies at cfa - 8 but where said. */
enum cuf_rule_kind {
	CUF_RULE_EMPTY = 0,   /* an unused entry of the cache */
	CUF_RULE_SP = 1,      /* cfa = sp + cfa_offset; fp = *(cfa + fp_offset), kept when fp_offset is 0 */
	CUF_RULE_FP = 2,      /* cfa = fp + cfa_offset; fp likewise */
	CUF_RULE_FP_SLOT = 3, /* cfa = *(fp + cfa_offset), fp = *(fp + fp_offset): the compiler realigned the stack */
	CUF_RULE_SP_SLOT = 4, /* cfa = *(sp + cfa_offset) + extra, fp as in SP: hand-written assembly that keeps the old sp */
	CUF_RULE_REGISTER = 5, /* cfa = the register `extra` + cfa_offset, fp as in SP */
	CUF_RULE_SIGNAL = 6,  /* cfa = *(sp + cfa_offset), fp = *(sp + fp_offset), ip = the word after cfa's, and exact */
	CUF_RULE_CHAIN = 7,   /* no unwind information in a known object: a frame pointer, if it looks right */
	CUF_RULE_FOREIGN = 8, /* the same, no object is known here (JIT): never cached, code may be loaded later */
	CUF_RULE_END = 9,     /* outermost frame */
	CUF_RULE_UNSUPPORTED = 10
};
#define CUF_RULE_OWN 0x80u /* flag of kind: code of this library */

struct cuf_rule {
	uintptr_t ip;
	int32_t cfa_offset;
	int16_t fp_offset;
	uint8_t kind; /* enum cuf_rule_kind, with CUF_RULE_OWN */
	uint8_t extra; /* see the kinds; registers by DWARF's number */
};

/* The rule for the instruction before ip: the call that ip returns to. For an exact address, ask for address + 1. */
struct cuf_rule cuf_rule_compile(uintptr_t ip);

/* Where that instruction's function has saved this register: at its cfa + *cfa_offset; 0: nowhere yet. false: not known. */
bool cuf_register_place(uintptr_t ip, unsigned reg, int64_t *cfa_offset);

#endif
