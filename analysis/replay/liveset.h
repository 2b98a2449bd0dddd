/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of live blocks by ledger key. The blocks are in one array without holes, and an index of 8
 * bytes a slot finds them: a recording may have millions, and several passes walk all of them.
 * base/hash_index has no removal, so it does not fit.
 *
 * Contract: heap memory, freed by liveset_fini. Keys 0 and CUF_KEY_BUSY are rejected. Pointers are
 * valid until the next put or take.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "interpose/abi/format.h"

struct liveset {
	struct cuf_block *blocks;
	size_t room, count;
	uint64_t *index; /* number of a block + 1, and above it a part of the hash of its key */
	size_t slots;    /* of the index, a power of two */
	size_t kinds[CUF_KIND_MAX]; /* how many of each kind; a kind beyond these counts as NONE */
	uint64_t secret; /* 0, unless keys were chosen to collide: then the hash is secret */
};

void liveset_init(struct liveset *set, size_t expected); /* room for this many without growing */
/* Takes ownership of blocks, heap memory with room for `count`, none with a rejected key. They are
 * sorted by key; of those with one key the last one counts. */
void liveset_adopt(struct liveset *set, struct cuf_block *blocks, size_t count);
void liveset_fini(struct liveset *set);
size_t liveset_bytes(const struct liveset *set); /* of memory */
/* Adds the block or replaces the one with the same key. Returns whether it was new. */
bool liveset_put(struct liveset *set, const struct cuf_block *block);
/* block: may be NULL */
bool liveset_take(struct liveset *set, uint64_t key, struct cuf_block *block);
struct cuf_block *liveset_find(const struct liveset *set, uint64_t key);

/* Iterates: start with *at = 0; NULL at the end. The order is that of the keys where the set was
 * adopted, and always the same for the same calls. */
static inline const struct cuf_block *liveset_next(const struct liveset *set, size_t *at)
{
	if (*at >= set->count)
		return NULL;
	return &set->blocks[(*at)++];
}
