/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks by libunwind (option unwind=libunwind). It takes the loader's lock, reads unwind tables
 * by itself and may open two descriptors, which our own walker does not; so it is a choice of the
 * person who starts the program.
 *
 * Contract: cuf_unwinder.step is not NULL. Frames, above, max and stop are as in cuf_walk
 * (walker.h), and walker->cache->frame_sp belongs to the frames. errno may change.
 */
#pragma once

#include "interpose/stack/walker.h"

unsigned cuf_unwinder_walk(struct cuf_walker *walker, uintptr_t above, uint64_t *frames,
			   unsigned max, uint8_t *stop);
