/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live maps of the program by address, as far as they are recorded. A partial unmap must find
 * the map that contains its range.
 *
 * Contract: any thread. A spin lock protects the table. It is given up after a while, because a
 * signal may have interrupted its holder. Then, and when the table is full, the functions return
 * false or 0 and CUF_LOST_HOST_LEDGER counts. Nothing is called with the lock held. Addresses and
 * ends are whole pages. No allocation; the memory is touched as needed.
 */
#ifndef CUF_MAP_TABLE_H
#define CUF_MAP_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum cuf_map_kind {
	CUF_MAP_ANONYMOUS,
	CUF_MAP_FILE,
	CUF_MAP_SHARED,          /* memfd, a file of tmpfs, or anonymous and MAP_SHARED */
	CUF_MAP_ARENA,           /* of CPython's allocator: its objects are recorded, not the map */
	CUF_MAP_KINDS
};

struct cuf_map {
	uint64_t start, end;
	enum cuf_map_kind kind;
};

/* Adds a map. The caller has removed what it overlaps. */
bool cuf_map_add(struct cuf_map map);

/* Removes the maps that overlap [start, end), at most the first max by address. Their parts outside
 * the range stay, if they have at least piece_bytes_min. Returns how many were removed; *removed
 * has them as they were. */
unsigned cuf_map_remove(uint64_t start, uint64_t end, uint64_t piece_bytes_min,
			struct cuf_map *removed, unsigned max);

struct cuf_map_sums {
	uint64_t bytes[CUF_MAP_KINDS], count[CUF_MAP_KINDS];
};
void cuf_map_sum(struct cuf_map_sums *sums);

#endif
