/* SPDX-License-Identifier: Apache-2.0 */
/* Holes and largest sites at a failure, from the ledger, without allocation: for the verdict, and for the case that the
 * ring forgets before anybody reads it. The analysis computes the same from the live set. */
#ifndef CUF_SNAPSHOT_H
#define CUF_SNAPSHOT_H

#include "interpose/abi/format.h"

/* Fills page_*, vmm_* and sites of the incident for its device; CUF_UNKNOWN where another thread has the scratch. */
void cuf_snapshot_take(struct cuf_incident *incident);

#endif
