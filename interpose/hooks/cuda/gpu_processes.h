/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes hold a device, read from NVML after a failed request and written to META. Only an
 * NVML that the program has loaded is used; it is never loaded for this.
 *
 * Contract: any thread; errno untouched; no lock of ours is held meanwhile. A thread of ours asks,
 * and is waited for a tenth of a second (bounded_thread.h). Readings are paced.
 * None is made on a stack that a signal interrupted, in a sandbox, or with nvml=0.
 */
#pragma once

#include <stdint.h>

/* incident: number of the failure that causes the reading. frame: __builtin_frame_address(0) of the
 * hook. */
void cuf_gpu_processes_read(unsigned device, uint64_t incident, void *frame);

/* Around each dlclose: NVML must not go while it is asked. It is found and asked without the
 * loader's lock, so no reference is held. errno untouched. */
void cuf_gpu_processes_unload_begin(void);
void cuf_gpu_processes_unload_end(void);
