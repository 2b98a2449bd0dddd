/* SPDX-License-Identifier: Apache-2.0 */
/* What the rest of this room needs of host.c. */
#ifndef CUF_HOST_H
#define CUF_HOST_H

#include "interpose/process/thread.h"

/*
 * Once, when the settings are read: allocations and frees that are skipped go straight to the real
 * functions.
 */
void cuf_host_begin_skipping(void);

/*
 * What this thread records from here on is later than any time read before: its coarse clock is
 * moved forward.
 */
void cuf_host_mark_time(struct cuf_thread_state *thread);

#endif
