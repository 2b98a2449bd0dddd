/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types in the prototypes of hooked framework functions. PyTorch's c10::Device and NCCL's unique id
 * are passed by value; everything else by pointer. Contract: the layouts are those of the
 * frameworks.
 */
#pragma once

#include <stdint.h>

/* HIP: AMD's, in releases that do not call it CUDA; XPU: Intel's */
enum { C10_DEVICE_CPU = 0, C10_DEVICE_CUDA = 1, C10_DEVICE_HIP = 6, C10_DEVICE_XPU = 12 };
typedef struct { int8_t type, index; } c10_Device; /* index -1: the current one */

enum { GGML_USAGE_ANY = 0, GGML_USAGE_WEIGHTS = 1, GGML_USAGE_COMPUTE = 2 };

typedef struct { char bytes[128]; } nccl_UniqueId;
