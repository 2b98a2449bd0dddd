/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions that the recorder puts to the driver on its own behalf.
 *
 * Contract: the current context and the thread's capture mode are left as they were; errno may
 * change, so callers save it. A function that an old driver lacks answers like one that failed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/cuda_types.h"

/* Calls a function of cuf_query or cuf_real that may be missing. */
#define CUF_QUERY(name, ...) \
	(cuf_query.name ? cuf_query.name(__VA_ARGS__) : CUDA_ERROR_NOT_FOUND)
#define CUF_QUERY_REAL(name, ...) \
	(cuf_real.name ? cuf_real.name(__VA_ARGS__) : CUDA_ERROR_NOT_FOUND)

CUcontext cuf_context_current(void);         /* NULL: none */
int cuf_device_current(void);                /* -1: none */
CUcontext cuf_context_primary(int device);   /* NULL: not active; none is created */
int cuf_device_total_count(void);            /* -1: unknown */

/* cuMemGetInfo of this device. Returns false when it has no context in which to ask. */
bool cuf_memory_of(int device, uint64_t *free_bytes, uint64_t *total_bytes);

/* cuMemGetInfo of the current context. */
bool cuf_memory_here(uint64_t *free_bytes, uint64_t *total_bytes);

/* The unit of physical memory; CUF_UNKNOWN. */
uint64_t cuf_granularity_of(int device);

/* Base and size of the driver's allocation around ptr. Returns false when it has none there. */
bool cuf_range_of(CUdeviceptr ptr, CUdeviceptr *base, size_t *bytes);

/* Describes the device in the recording, once. Negative ordinals are ignored. */
void cuf_device_announce(int device);

/*
 * Makes a context of the device current for a moment: the present one, else its primary context if
 * that is active. Every borrow is followed by a return, also when it returned false.
 */
struct cuf_context_loan {
	int device;
	bool relaxed;            /* the thread's capture mode was exchanged: queries are allowed */
	bool pushed;
	CUstreamCaptureMode mode;
};
bool cuf_context_borrow(int device, struct cuf_context_loan *loan);
void cuf_context_return(struct cuf_context_loan *loan);

/* Stream captures open in this process, as far as hooks saw. Above 0, avoid queries of our own. */
extern int cuf_captures_open;
static inline bool cuf_is_capturing(void)
{
	return __atomic_load_n(&cuf_captures_open, __ATOMIC_RELAXED) > 0;
}
