/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live blocks of the malloc family: 16 bytes each, buckets of one cache line, lock-free. The table is used from its
 * beginning and grows with what is live (by doubling, up to its section), so that the part in use stays in the cache
 * and few pages of the recording are ever touched. Contract: any thread; a block that finds no place is counted
 * (CUF_LOST_HOST_LEDGER). A block is freed by one thread at a time, as in any program.
 */
#ifndef CUF_HOST_LEDGER_H
#define CUF_HOST_LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include "interpose/abi/format.h"

bool cuf_host_ledger_add(uint64_t addr, uint32_t birth, uint64_t word1);
/* Takes the block out; *entry is what it was. false: not recorded. */
bool cuf_host_ledger_take(uint64_t addr, struct cuf_host_block *entry);
/* Has the cache fetch where this block will be entered: to be called some time before. */
void cuf_host_ledger_expect(uint64_t addr);
/* In a forked child: the table is empty again. */
void cuf_host_ledger_atfork_child(void);

#endif
