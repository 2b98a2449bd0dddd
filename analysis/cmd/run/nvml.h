/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML asked by a process of ours. Contract: each question is put by a child that loads the library and ends, so that neither a
 * driver that hangs nor one that crashes takes us along; it takes at most two seconds. Single-threaded callers.
 */
#ifndef CMD_NVML_H
#define CMD_NVML_H

#include <stdbool.h>
#include "interpose/abi/nvml.h"

/* false: there is no NVML here. What it refused, and no answer in time, is in the reading. Times are CLOCK_MONOTONIC. */
bool nvml_ask(const struct cuf_device *device, struct cuf_gpu_reading *reading);

#endif
