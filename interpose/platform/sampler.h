/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Poisson sampling by bytes. The distance between samples is exponential, so every byte has the
 * same chance, and the estimate bytes / (1 - exp(-bytes / mean)) is unbiased (as in gperftools
 * and jemalloc). Contract: pure, any thread. No libm: the library needs only libc.
 */
#pragma once

#include <stdint.h>

/* Mean distance of the small framework blocks whose stack is captured. */
#define CUF_FRAMEWORK_SAMPLE_MEAN_BYTES (128u << 10)

/*
 * The next interval in bytes, at least 1. *random is the state of the thread's generator, never
 * 0.
 */
uint64_t cuf_sample_interval(uint64_t *random, uint64_t mean_bytes);

/*
 * How many bytes one sampled block of this size stands for. Blocks that are always recorded stand
 * for themselves.
 */
uint64_t cuf_sample_weight_bytes(uint64_t bytes, uint64_t mean_bytes);
