/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What walker.c and walk_known.c share; nobody else includes it. Contract: as in walker.h; walker->rules is not NULL.
 */
#ifndef CUF_WALKER_PARTS_H
#define CUF_WALKER_PARTS_H

#include <stddef.h>
#include "interpose/code/cfi.h"
#include "interpose/stack/walker.h"

enum { CUF_RULES = 1 << CUF_RULE_BITS };

/* Reads of frames that are not ours to the compiler: unaligned when damaged, in nobody's object. */
struct __attribute__((packed, may_alias)) word {
	uintptr_t value;
};
#define READS_STACKS __attribute__((no_sanitize("address", "thread", "undefined")))

/* Return addresses differ in their low bits. Every frame waits for this, so the hash is the offset in bytes itself. */
static inline struct cuf_rule *rule_entry(struct cuf_rule *rules, uintptr_t ip, size_t count)
{
	uintptr_t offset = (ip * sizeof *rules ^ ip >> 7) & (count - 1) * sizeof *rules;
	return (struct cuf_rule *)((char *)rules + offset);
}

/* The rule from the large table, or learnt; put into the near one. */
struct cuf_rule *cuf_rule_find_far(struct cuf_rule *near, struct cuf_rule *rules, uintptr_t ip);

/*
 * The table before the table is small, so that its few pages are known to the processor: an address to translate at every
 * frame would cost as much as the walk.
 */
static inline struct cuf_rule *find_rule(struct cuf_rule *rules, uintptr_t ip)
{
	struct cuf_rule *near = rule_entry(rules, ip, CUF_RULES_NEAR);
	return __builtin_expect(near->ip == ip, 1) ? near : cuf_rule_find_far(near, rules, ip);
}

/* True when [sp, top) is the thread's own stack and readable. */
bool cuf_walker_on_own_stack(struct cuf_walker *walker, uintptr_t sp);
/* Modules changed: rules and memos are dropped. */
void cuf_walker_renew(struct cuf_walker *walker, uint64_t generation);
/* Goes on with a walk that has count frames already and stands at ip, with sp and fp of the frame it returns to. */
unsigned cuf_walk_on(struct cuf_walker *walker, uintptr_t ip, uintptr_t sp, uintptr_t fp, uint64_t *frames, unsigned count, unsigned max, uint8_t *stop);

#endif
