/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free ranges and largest call sites at a failure, from the ledger: for the verdict, and for the
 * case that the ring is overwritten before anybody reads it. The analysis computes the same from
 * the live set. Contract: the thread is entered; no allocation except one mapping, where addresses
 * are reserved or mapped.
 */
#pragma once

#include "interpose/abi/format.h"

/*
 * Fills page_*, vmm_* and sites of the incident for its device. CUF_UNKNOWN, and no sites, when
 * another thread uses the scratch memory, or when refusals follow each other so quickly that their
 * snapshots would take more than a fiftieth of the time.
 */
void cuf_snapshot_take(struct cuf_incident *incident);
