/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running totals that are in private memory: what a framework last reported of its allocator, and
 * what malloc's recorded blocks stand for. Contract: any thread, no lock. One thread at a time
 * reports for a device: the framework has its allocator locked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* As last reported for a device; CUF_UNKNOWN before the first report. */
struct cuf_framework_level {
	uint64_t allocated_bytes, reserved_bytes;
};
struct cuf_framework_level cuf_framework_level(unsigned device);
/* True when the framework reserves more than at its last report. */
bool cuf_framework_level_set(unsigned device, struct cuf_framework_level level);

/* The sequence number of the last block that a framework allocated on the device; 0 none. */
uint64_t cuf_framework_alloc_seq(unsigned device);
void cuf_framework_alloc_seq_set(unsigned device, uint64_t seq);

/* Sampled mode: the bytes that the recorded live blocks stand for. May be below 0 for a moment. */
extern int64_t cuf_host_live_estimate;
static inline int64_t cuf_host_live_add(int64_t bytes)
{
	return __atomic_add_fetch(&cuf_host_live_estimate, bytes, __ATOMIC_RELAXED);
}

/*
 * Live bytes of the malloc family as recorded: exact in full mode, an estimate in sampled mode;
 * CUF_UNKNOWN when off.
 */
uint64_t cuf_host_live_bytes(void);
