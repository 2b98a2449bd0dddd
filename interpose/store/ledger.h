/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: every live block except the malloc family's, by key (address and space). It forgets
 * no block, however old. Contract: open addressing inside the recording, lock-free, any thread. A
 * block without a free place is dropped and counted (CUF_LOST_LEDGER); nothing else fails.
 */
#pragma once

#include <stdbool.h>
#include "interpose/abi/format.h"

/* Adds a block. *old is the entry that it replaced, whose key was live already; its key is 0 where
 * there was none. false: there is no place for the block. */
bool cuf_ledger_add(const struct cuf_block *block, struct cuf_block *old);

/* Removes a block. false: unknown. Of two threads that remove one block, one gets it. */
bool cuf_ledger_take(uint64_t key, struct cuf_block *block);

bool cuf_ledger_find(uint64_t key, struct cuf_block *block);

/*
 * Adds to the reference and map counts of a block and sets flags. *after is the result. A count
 * never falls below 0: *references and *maps become what was really added. false: unknown.
 */
bool cuf_ledger_add_refs(uint64_t key, int *references, int *maps, unsigned flags,
			 struct cuf_block *after);

/* Sets what a block is for (enum cuf_role). *block is the result. false: unknown. */
bool cuf_ledger_assign(uint64_t key, unsigned role, struct cuf_block *block);

/*
 * Calls visit with a copy of every live block. Blocks that are added meanwhile may or may not be
 * visited.
 */
void cuf_ledger_each(void (*visit)(const struct cuf_block *block, void *context), void *context);

/*
 * A number that every added or removed block changes. Equal numbers: the same blocks are live.
 */
uint64_t cuf_ledger_changes(void);
