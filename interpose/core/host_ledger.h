/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live blocks of the malloc family: 16 bytes each, buckets of one cache line, lock-free. Contract: any thread; a block
 * that finds no place is counted (CUF_LOST_HOST_LEDGER). A block is freed by one thread at a time, as in any program.
 */
#ifndef CUF_HOST_LEDGER_H
#define CUF_HOST_LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include "interpose/abi/format.h"

bool cuf_host_ledger_add(uint64_t addr, uint32_t birth, uint64_t word1);
/* Takes the block out; *entry is what it was. false: not recorded. */
bool cuf_host_ledger_take(uint64_t addr, struct cuf_host_block *entry);

#endif
