/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who else holds a device: NVML's list of processes, read into META after a failed request, where the program has NVML
 * loaded already; it is never loaded for this. Contract: paced; errno untouched; no lock of ours is held meanwhile, and
 * nothing is asked on a stack that a signal broke into, in a sandbox, or with nvml=0. NVML's initialisations are counted by
 * NVML, and ours are paired, so the program finds NVML as it left it.
 */
#ifndef CUF_TENANTS_H
#define CUF_TENANTS_H

#include <stdint.h>

/* incident: number of the failure that is the occasion. frame: __builtin_frame_address(0) of the hook. */
void cuf_tenants_read(unsigned device, uint64_t incident, void *frame);

#endif
