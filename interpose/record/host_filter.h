/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampled mode: counts of recorded live blocks by address, so that a free knows whether there is
 * something to do. The small table, which the fast path reads, is described in host_fast.h; the
 * large one is for frees that pass the small one.
 *
 * Contract: any thread, no lock. A count that reached 255 stays there: how many blocks it stands
 * for is unknown.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "interpose/record/host_fast.h"

extern uint8_t cuf_host_filter_large[1u << CUF_HOST_FILTER_LARGE_BITS];

/* False: no recorded block is at this address. True: perhaps. */
static inline bool cuf_host_filter_has(uint64_t addr)
{
	uint32_t place = cuf_host_filter_place(addr, CUF_HOST_FILTER_LARGE_BITS);
	return __atomic_load_n(&cuf_host_filter_large[place], __ATOMIC_RELAXED) != 0;
}

void cuf_host_filter_add(uint64_t addr);
void cuf_host_filter_remove(uint64_t addr);

/* Takes away the one that each entry of the small table begins with. Once. */
void cuf_host_filter_begin_skipping(void);
/* No block is recorded any more: in a forked child. Addresses of cuf_host_keep stay. */
void cuf_host_filter_clear(void);
