/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's maps by address, as far as they are followed. A call may end, resize or change any
 * part of a map, so what lies in a range must be found.
 *
 * Contract: any thread, any number at once, signal handlers too. No lock, no wait: each change is
 * one exchange of the table's root, and a change that lost the race is made again on what the
 * winner left. So a thread that is suspended, killed or leaves by siglongjmp in the middle holds
 * nobody up and damages nothing; a siglongjmp loses the few nodes that it had in hand. A change
 * costs the logarithm of the number of maps. There is room for nearly CUF_MAPS_MAX maps. Beyond
 * it, nothing is added, and CUF_LOST_HOST_LEDGER counts. Addresses and ends are whole pages. The
 * table's memory is mapped as needed. errno is untouched.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CUF_MAPS_MAX (1u << 20)

enum cuf_map_kind {
	CUF_MAP_ANONYMOUS,
	CUF_MAP_FILE,
	CUF_MAP_SHARED,          /* memfd, a file of tmpfs, or anonymous and MAP_SHARED */
	CUF_MAP_ARENA,           /* of CPython's allocator: its objects are recorded, not the map */
	CUF_MAP_RESERVED,        /* addresses without access, which may become memory */
	CUF_MAP_VIEW,            /* of shared memory that is a block elsewhere (shared_views.c) */
	CUF_MAP_SMALL,           /* anonymous memory that is too small for a record so far */
	CUF_MAP_KINDS
};

struct cuf_map {
	uint64_t start, end;
	uint32_t stack;          /* of its block */
	uint32_t block;          /* kind << 24 | whether there is a block << 23 | cuf_host_birth */
};

#define CUF_MAP_HAS_BLOCK (1u << 23)

static inline enum cuf_map_kind cuf_map_kind(struct cuf_map map)
{
	return (enum cuf_map_kind)(map.block >> 24);
}

static inline uint64_t cuf_map_bytes(struct cuf_map map) { return map.end - map.start; }

static inline struct cuf_map cuf_map_make(uint64_t start, uint64_t end, enum cuf_map_kind kind)
{
	return (struct cuf_map){ start, end, 0, (uint32_t)kind << 24 };
}

/* False for what has no size of its own in the recording. */
static inline bool cuf_map_is_memory(struct cuf_map map)
{
	return cuf_map_kind(map) < CUF_MAP_RESERVED;
}

/* Adds a map. The caller has removed what it overlaps. false: no room. */
bool cuf_map_add(struct cuf_map map);

/*
 * Removes the first map by address that overlaps [start, end), and copies it to *taken. Its parts
 * outside the range stay; no thread sees the table without them. A part below piece_bytes_min is
 * CUF_MAP_SMALL if it is anonymous memory, and goes if it is other memory. false: no map overlaps.
 */
bool cuf_map_cut(uint64_t start, uint64_t end, uint64_t piece_bytes_min, struct cuf_map *taken);

/* The first map by address that ends behind addr. false: none. */
bool cuf_map_find(uint64_t addr, struct cuf_map *map);

struct cuf_map_sums {
	uint64_t bytes[CUF_MAP_KINDS], count[CUF_MAP_KINDS];
};
void cuf_map_sum(struct cuf_map_sums *sums);

/* How many maps of this kind there are: one load. */
uint64_t cuf_map_count(enum cuf_map_kind kind);
