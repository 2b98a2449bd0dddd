/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live maps of the program by address, so that what is unmapped can be found although it begins in the middle of a
 * map. With mmap=1 alone. Contract: any thread; a spin lock that is given up after a while (a signal may have
 * broken into its holder): then, and when the table is full, false and 0 are answered and CUF_LOST_HOST_LEDGER counts.
 * Nothing is called with the lock held. Addresses and ends are whole pages. No allocation; the memory is touched as needed.
 */
#ifndef CUF_MAP_TABLE_H
#define CUF_MAP_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct cuf_map {
	uint64_t start, end;
	bool file;               /* of a file, else anonymous */
};

/* Adds a map; the caller took out what it overlaps. */
bool cuf_map_add(struct cuf_map map);

/* Takes out every map that overlaps [start, end), the first max of them by address; what lies outside the range stays as
 * pieces of at least piece_bytes_min. Returns how many went to *taken, as they were. */
unsigned cuf_map_take(uint64_t start, uint64_t end, uint64_t piece_bytes_min, struct cuf_map *taken, unsigned max);

struct cuf_map_sums { uint64_t anonymous_bytes, anonymous_count, file_bytes, file_count; };
void cuf_map_sum(struct cuf_map_sums *sums);

/* In a forked child: its recording begins without them. */
void cuf_map_table_fork(void);

#endif
