/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory pools that this process uses, so that a failure can list them. Bytes in use are
 * counted from recorded blocks; reserved bytes are known to the driver only and are queried.
 *
 * Contract: any thread, no lock, no allocation. 64 pools are held; further ones are not listed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "interpose/abi/format.h"

struct cuf_pool {
	uint64_t pool;           /* the driver's handle; 0: free slot */
	int64_t used_bytes;      /* of blocks in the ledger */
	uint64_t reserved_bytes; /* as last queried */
	int device;              /* -1: located on the host */
	uint8_t kind;            /* of its blocks: ASYNC, or MANAGED for managed pools of CUDA 13 */
};

/* NULL: unknown. The entry stays valid, but may become another pool's after cuf_pool_remove. */
struct cuf_pool *cuf_pool_find(uint64_t pool);
void cuf_pool_add(uint64_t pool, int device, unsigned kind);
/* Call it before the real destroy: afterwards the driver may reuse the handle. */
void cuf_pool_remove(struct cuf_pool *pool);

/* A block was freed by any function, or its free was refused (freed false): adjusts the bytes in
 * use of its pool, if it came from one. */
void cuf_pool_block_freed(const struct cuf_block *block, bool freed);

/* The driver's figures of a pool; each CUF_UNKNOWN where it does not report it. */
struct cuf_pool_level cuf_pool_query(uint64_t pool);
uint64_t cuf_pool_threshold(uint64_t pool);

/* The figures of the device's pools, largest reserved first. Returns their number, at most max. */
unsigned cuf_pools_read(int device, struct cuf_pool_level *levels, unsigned max);
