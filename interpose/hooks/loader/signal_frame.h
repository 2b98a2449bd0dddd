/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a signal broke into what this thread was doing: then the broken code may hold a lock of whoever we would ask next.
 * Contract: walks and interns one stack, so for cold paths; errno untouched; not to be called with the thread's guard taken.
 */
#ifndef CUF_SIGNAL_FRAME_H
#define CUF_SIGNAL_FRAME_H

#include <stdbool.h>

/* frame: __builtin_frame_address(0) of the hook. True also where it cannot be told. */
bool cuf_signal_on_stack(void *frame);

#endif
