/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One reading of NVML inside the recorded process. `cuflight run` has a reader of its own
 * (analysis/cmd/target/nvml_reader.c), because neither side may be built from the other's
 * sources.
 *
 * Contract: no allocation, no lock of ours, no call into libc. One reading at a time: room and
 * reading are the caller's. Rules that both readers follow: abi/nvml.h.
 */
#pragma once

#include <stdbool.h>
#include "interpose/abi/nvml.h"

/* Fills the functions by name. find returns NULL for a name that the library lacks. Returns false
 * when functions are missing that every NVML has. */
bool cuf_nvml_bind(struct cuf_nvml *nvml, void *(*find)(const void *library, const char *name),
		   const void *library);

/* The head of a reading of which nothing is known yet. */
struct cuf_meta_gpu_processes cuf_nvml_nothing(uint32_t ordinal);

/* Reads which processes hold the device. room: CUF_NVML_ROOM_BYTES, aligned to 8. A failure is
 * stored in reading->head.failed. The caller adds the names of the processes. */
void cuf_nvml_read(const struct cuf_nvml *nvml, const struct cuf_device *device, uint8_t *room,
		   struct cuf_gpu_reading *reading);
