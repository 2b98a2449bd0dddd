/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: every live block but the malloc family's, by address, never forgotten however old. Open addressing in
 * the recording itself; lock-free; any thread. Contract: no function fails but by counting (CUF_LOST_LEDGER).
 */
#ifndef CUF_LEDGER_H
#define CUF_LEDGER_H

#include <stdbool.h>
#include "interpose/abi/format.h"

/* Adds a block. When its key is live already the old entry is replaced and handed out in *old; true then. */
bool cuf_ledger_add(const struct cuf_block *block, struct cuf_block *old);
/* Takes a block out. false: unknown. Of two threads asking for one block, one gets it. */
bool cuf_ledger_take(uint64_t key, struct cuf_block *block);
bool cuf_ledger_find(uint64_t key, struct cuf_block *block);

/* Adds to the reference and map counts of a block and sets flags; *after holds it as it is then. false: unknown. */
bool cuf_ledger_refer(uint64_t key, int references, int maps, unsigned flags, struct cuf_block *after);

/* Says what a block is for (enum cuf_role); *block holds it. false: unknown. */
bool cuf_ledger_assign(uint64_t key, unsigned role, struct cuf_block *block);

/* Calls see for every live block (a copy); blocks added meanwhile may or may not be seen. */
void cuf_ledger_each(void (*see)(const struct cuf_block *block, void *context), void *context);

void cuf_ledger_atfork_child(void);

#endif
