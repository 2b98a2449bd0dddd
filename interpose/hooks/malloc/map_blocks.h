/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The maps that are followed, and what is recorded of them: a block in the ledger for each map that
 * is memory, none for addresses that are only reserved, and a sum for the arenas of CPython.
 *
 * A reservation becomes memory part by part: by mprotect, or by a map over it. Each part is a block
 * with the stack that made it memory. Parts that are too small for a record wait until they and
 * their neighbours are large enough; then the stack is that of the last one.
 *
 * Contract: any thread. No lock is held, and errno may change. Ranges are whole pages.
 */
#ifndef CUF_MAP_BLOCKS_H
#define CUF_MAP_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include "interpose/platform/say.h"
#include "interpose/hooks/malloc/map_table.h"

enum { CUF_MAPS_REMOVED_MAX = 3 };

/*
 * The maps that a call is about to end, kept until the kernel accepts it. Of a call that ends more
 * than can be kept, which is not expected to fail, only the first.
 */
struct cuf_maps_removed {
	unsigned count;
	bool was_reserved;       /* a part of the range belonged to a reservation */
	struct cuf_map maps[CUF_MAPS_REMOVED_MAX];
};

/* Smaller maps are not recorded, and reservations of less are not followed. */
uint64_t cuf_maps_bytes_min(void);

/*
 * A map was made. The caller has removed what it overlaps. Nothing happens when it is too small,
 * unless it is CUF_MAP_SMALL, in a reservation.
 */
void cuf_maps_add(uint64_t start, uint64_t end, enum cuf_map_kind kind, const void *frame);

/* Ends the maps in the range before the real call. Their parts outside of it stay. */
void cuf_maps_remove(uint64_t start, uint64_t end, struct cuf_maps_removed *removed);
/* The call failed: everything is as before. */
void cuf_maps_restore(const struct cuf_maps_removed *removed);

/* What is reserved in the range became memory. */
void cuf_maps_commit(uint64_t start, uint64_t end, const void *frame);
/* Before a call that takes the access to the range away: what is memory is only reserved. */
void cuf_maps_decommit(uint64_t start, uint64_t end, struct cuf_maps_removed *removed);

/* madvise released pages of a map. */
void cuf_maps_advised(uint64_t bytes);
/* Adds "key=number" lines, for META MEMORY; nothing when no maps are recorded. */
void cuf_maps_stats(struct cuf_text *text);

#endif
