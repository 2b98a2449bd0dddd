/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a caller tells the recorder of one request: types only. Unknown quantities are CUF_UNKNOWN.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/format.h"

/* A request for memory, as the program made it. */
struct cuf_request {
	uint64_t bytes;
	uint64_t aux;        /* of the block: pool, handle, offset; see enum cuf_kind */
	uint32_t context;    /* folded CUcontext, 0 unknown */
	uint8_t kind;        /* enum cuf_kind */
	uint8_t device;      /* CUF_DEVICE_NONE: none */
	uint8_t flags;       /* CUF_EVENT_* */
	bool unsized;        /* a launch or a load: it runs out of memory without naming a size */
};

/* What the driver reports of a device, at a failure or when free memory is read. */
struct cuf_driver_view {
	uint64_t free_bytes;
	uint64_t total_bytes;
	uint64_t probed_bytes; /* the largest request that succeeds; measured only with probe=1 */
	unsigned pool_count;
	struct cuf_pool_level pools[CUF_POOLS_MAX];
};

/* The name of a phase. Texts are borrowed for the call. */
struct cuf_phase_text {
	const char *domain;
	size_t domain_bytes;   /* 0: no domain */
	const char *text;
	size_t bytes;
	uint32_t stack;        /* which of the thread's stacks a push goes to; any number */
};

enum { CUF_PHASE_NAME_BYTES = 119 }; /* longer names are cut */
