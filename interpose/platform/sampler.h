/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Poisson sampling by bytes: the distance between samples is exponential with a mean (option `sample` for the malloc family), so every
 * byte has the same chance and the estimate bytes / (1 - exp(-bytes/mean)) is unbiased (gperftools, jemalloc).
 * No libm: the library needs libc alone.
 */
#ifndef CUF_SAMPLER_H
#define CUF_SAMPLER_H

#include <stdint.h>
#include "interpose/process/thread.h"

/* The next interval in bytes, at least 1. */
uint64_t cuf_sample_interval(struct cuf_thread_state *thread, uint64_t mean_bytes);

/* What one sampled block of this size stands for, in bytes. Exact blocks stand for themselves. */
uint64_t cuf_sample_weight_bytes(uint64_t bytes, uint64_t mean_bytes);

#endif
