/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What mmap=1 knows of the program's maps. Contract: adds lines to a bounded text; nothing with mmap=0.
 */
#ifndef CUF_MMAP_H
#define CUF_MMAP_H

#include "interpose/platform/say.h"

void cuf_mmap_books(struct cuf_text *text);

#endif
