/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One reading of NVML, for `cuflight run`. The recorder has its own reader (hooks/cuda/nvml.c): it
 * may not use libc there, and neither side may be built from the other's sources. Both follow
 * interpose/abi/nvml.h, and the same cases test both (tests/unit/fixtures/nvml_cases.h).
 *
 * Contract: called in a child process that ends afterwards, because NVML may hang or crash.
 */
#pragma once

#include <stdbool.h>
#include "interpose/abi/nvml.h"

/* Fills the functions by name. Returns false when functions are missing that every NVML has. */
bool nvml_bind(struct cuf_nvml *nvml, void *(*find)(const void *library, const char *name),
	       const void *library);

/* Reads which processes hold the device. room: CUF_NVML_ROOM_BYTES, aligned to 8. A failure is
 * stored in reading->head.failed. Names of processes are the caller's to add. */
void nvml_read(const struct cuf_nvml *nvml, const struct cuf_device *device, uint8_t *room,
	       struct cuf_gpu_reading *reading);
