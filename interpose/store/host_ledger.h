/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live blocks of the malloc family: 16 bytes each, buckets of one cache line, lock-free. Only a
 * prefix of the table is used. It doubles as the live set grows, up to the section's size. So the
 * part in use stays in the cache, and few pages of the recording are touched.
 *
 * Contract: any thread. A block without a free place is dropped and counted
 * (CUF_LOST_HOST_LEDGER). One thread frees a block at a time, as in any correct program. word1:
 * see struct cuf_host_block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "interpose/abi/format.h"

/* false: dropped. */
bool cuf_host_ledger_add(uint64_t addr, uint32_t birth, uint64_t word1);

/* Removes the block and copies it to *entry. false: not recorded. */
bool cuf_host_ledger_take(uint64_t addr, struct cuf_host_block *entry);

/* Calls visit for each block, which may be freed meanwhile; new ones may be missed. */
void cuf_host_ledger_each(void (*visit)(uint64_t word0, uint64_t word1));

/* Prefetches the bucket where this block will be added. To be called some time before. */
void cuf_host_ledger_expect(uint64_t addr);
