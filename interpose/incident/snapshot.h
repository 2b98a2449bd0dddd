/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free ranges and largest call sites at a failure, from the ledger: for the verdict, and for the
 * case that the ring is overwritten before anybody reads it. The analysis computes the same from
 * the live set. Contract: the thread is entered; no allocation except one mapping.
 */
#ifndef CUF_SNAPSHOT_H
#define CUF_SNAPSHOT_H

#include "interpose/abi/format.h"

/*
 * Fills page_*, vmm_* and sites of the incident for its device; CUF_UNKNOWN when another thread
 * uses the scratch memory.
 */
void cuf_snapshot_take(struct cuf_incident *incident);

#endif
