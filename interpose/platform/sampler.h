/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Poisson sampling by bytes: the distance between samples is exponential with a mean (option `sample` for the malloc family), so every
 * byte has the same chance and the estimate bytes / (1 - exp(-bytes/mean)) is unbiased (gperftools, jemalloc).
 * No libm: the library needs libc alone.
 */
#ifndef CUF_SAMPLER_H
#define CUF_SAMPLER_H

#include <stdint.h>

/* Mean distance of the framework blocks whose stack is taken. */
#define CUF_FRAMEWORK_SAMPLE_MEAN_BYTES (128u << 10)

/* The next interval in bytes, at least 1. *random is the generator's state: any value but 0, one for each thread. */
uint64_t cuf_sample_interval(uint64_t *random, uint64_t mean_bytes);

/* What one sampled block of this size stands for, in bytes. Exact blocks stand for themselves. */
uint64_t cuf_sample_weight_bytes(uint64_t bytes, uint64_t mean_bytes);

#endif
