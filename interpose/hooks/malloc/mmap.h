/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of the program's maps, as far as they are recorded. Contract: adds "key=number" lines
 * to a bounded text; adds nothing when no maps are recorded.
 */
#ifndef CUF_MMAP_H
#define CUF_MMAP_H

#include "interpose/platform/say.h"

void cuf_mmap_stats(struct cuf_text *text);

#endif
