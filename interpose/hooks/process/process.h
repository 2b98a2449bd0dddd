/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process this is. Contract: any thread; no lock, no allocation; errno untouched.
 */
#ifndef CUF_PROCESS_H
#define CUF_PROCESS_H

#include <stdbool.h>

/* True when what is recorded now belongs to this very process: a forked child's own recording is begun if it was not
 * yet; a vfork child, which runs in its parent's memory, has none. hook: on whose behalf. */
bool cuf_process_is_recorded(unsigned hook);

#endif
