/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of live blocks by ledger key. The slots are the blocks themselves: a recording may have
 * millions, and a node for each would double the memory. So base/hash_index, an index without
 * removal, does not fit.
 *
 * Contract: heap memory, freed by liveset_fini. Keys 0 and CUF_KEY_BUSY are rejected. Pointers are
 * valid until the next put or take.
 */
#ifndef ANALYSIS_REPLAY_LIVESET_H
#define ANALYSIS_REPLAY_LIVESET_H

#include <stdbool.h>
#include <stddef.h>
#include "interpose/abi/format.h"

struct liveset {
	struct cuf_block *slots;
	size_t room, count;
	size_t kinds[CUF_KIND_MAX]; /* how many of each kind; a kind beyond these counts as NONE */
	uint64_t secret; /* 0, unless keys were chosen to collide: then the hash is secret */
};

void liveset_init(struct liveset *set, size_t expected); /* room for this many without growing */
void liveset_fini(struct liveset *set);
/* Adds the block or replaces the one with the same key. Returns whether it was new. */
bool liveset_put(struct liveset *set, const struct cuf_block *block);
/* block: may be NULL */
bool liveset_take(struct liveset *set, uint64_t key, struct cuf_block *block);
struct cuf_block *liveset_find(const struct liveset *set, uint64_t key);

/* Iterates in no particular order: start with *at = 0; NULL at the end. */
const struct cuf_block *liveset_next(const struct liveset *set, size_t *at);

#endif
