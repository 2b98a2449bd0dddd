/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the blocks of a framework were: the ranges of device memory and of reserved addresses
 * ("homes"), which of them are segments of the framework, and which segments belong together.
 *
 * No report states on which stream or for which graph a block was requested, and an allocator puts
 * a block only into memory of its own stream. So segments are distinguished by what the allocator
 * did not do: if it left a free range that fits better and took another, then the two are of
 * different streams. Segments between which nothing like that was seen count as one group. Free
 * memory that still waited for another stream's work looks the same, so there may be too many
 * groups.
 *
 * Contract: heap memory, freed by homes_free. Addresses are those of the device; sizes are bytes. A
 * home is a number from 0, HOME_NONE where the address is in none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOME_NONE UINT32_MAX

struct homes;
struct homes *homes_new(void);
void homes_free(struct homes *homes); /* NULL is fine */

/* A range begins or ends. A reservation is one home, whatever is mapped in it. Its end forgets the
 * address, the home keeps its number. */
uint32_t homes_open(struct homes *homes, uint64_t addr, uint64_t bytes, bool is_reservation);
void homes_close(struct homes *homes, uint64_t addr, bool is_reservation);
/* The reservation that has an address. */
uint32_t homes_reservation(const struct homes *homes, uint64_t addr);

/* A block of the framework begins; its home becomes a segment. is_old: not requested now.
 * is_private: a stream captures. */
uint32_t homes_alloc(struct homes *homes, uint64_t addr, uint64_t bytes, bool is_old,
		     bool is_private);
void homes_give(struct homes *homes, uint32_t home, uint64_t addr, uint64_t bytes);

bool homes_is_segment(const struct homes *homes, uint32_t home);
bool homes_is_private(const struct homes *homes, uint32_t home);
/* Gives each segment its group; afterwards homes_group tells it. Returns how many there are. */
unsigned homes_settle(struct homes *homes);
unsigned homes_group(const struct homes *homes, uint32_t home);
