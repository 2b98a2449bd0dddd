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
#pragma once

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

/* What is a view in the range becomes a block, as old as that of the map that
 * ended. */
void cuf_maps_take_over(uint64_t start, uint64_t end, struct cuf_map ended);

/* What is reserved in the range became memory. */
void cuf_maps_commit(uint64_t start, uint64_t end, const void *frame);
/* Before a call that takes the access to the range away: what is memory is only reserved. */
void cuf_maps_decommit(uint64_t start, uint64_t end, struct cuf_maps_removed *removed);

/* madvise released pages of a map. */
void cuf_maps_advised(uint64_t bytes);
/* Adds "key=number" lines, for META MEMORY; nothing when no maps are recorded. */
void cuf_maps_stats(struct cuf_text *text);

/* ---- shared memory that is mapped more than once (shared_views.c) ---- */

/*
 * A file of tmpfs or a memfd that is mapped twice, a copy that mremap made: their memory is one, so
 * one of the maps is a block (CUF_MAP_SHARED), and the others are CUF_MAP_VIEW. When that one ends,
 * its block goes to the next view. Views of one file that several threads make or end at the same
 * moment may each become a block. CUF_VIEWS_MAX maps are known, more count for themselves.
 */
#define CUF_VIEWS_MAX 256

/* What is mapped: an inode, or what cuf_views_nameless made. */
struct cuf_shared_memory {
	uint64_t device, inode, offset;
};

/* Anonymous shared memory has no inode. */
struct cuf_shared_memory cuf_views_nameless(void);

/* True when a part of this memory is mapped. */
bool cuf_views_have(struct cuf_shared_memory memory, uint64_t bytes);

/* What is mapped at this address. false: nothing that is known. */
bool cuf_views_at(uint64_t addr, struct cuf_shared_memory *memory);

/* A map was made. Its parts that no other map shows are of this kind. */
void cuf_views_add(struct cuf_shared_memory memory, uint64_t start, uint64_t end,
		   enum cuf_map_kind kind, const void *frame);

/* The real call has ended these maps: others of the same memory become blocks. */
void cuf_views_ended(const struct cuf_maps_removed *removed);
