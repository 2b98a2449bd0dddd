/* SPDX-License-Identifier: Apache-2.0 */
/* The malloc family's side of the recorder, as the rest of the core sees it (hooks use recorder.h). */
#ifndef CUF_HOST_H
#define CUF_HOST_H

#include <stdint.h>

/* Live bytes of the malloc family as recorded: exact in full mode, an estimate in sampled mode; CUF_UNKNOWN when off. */
uint64_t cuf_host_live_bytes(void);

#endif
