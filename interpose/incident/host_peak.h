/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was live of host memory at its highest moment, by call site, in section HOST_PEAK: the ring
 * that would tell it may be overwritten before the end. The highest total is kept exactly. The
 * call sites are noted when the total is 5 % above the last note, for at most 1 % of the time.
 *
 * Contract: the thread is entered; any thread, no lock, no allocation. A thread that comes while
 * another one takes the note returns at once.
 */
#pragma once

#include <stdint.h>
#include "interpose/abi/format.h"

/* What a live block stands for, in bytes; the words as in struct cuf_host_block. */
typedef int64_t cuf_host_weight_fn(uint64_t word0, uint64_t word1);

/* After live_bytes has risen to this. weight NULL: each block stands for itself. */
void cuf_host_peak_rise(int64_t live_bytes, uint64_t now_ns, cuf_host_weight_fn *weight);
