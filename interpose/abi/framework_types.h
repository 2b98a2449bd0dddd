/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types in the prototypes of hooked framework functions, as far as a call passes them: PyTorch's c10::Device by value,
 * everything else by pointer, and NCCL's unique id, which C passes by value, too.
 */
#ifndef CUF_FRAMEWORK_TYPES_H
#define CUF_FRAMEWORK_TYPES_H

#include <stdint.h>

enum { C10_DEVICE_CPU = 0, C10_DEVICE_CUDA = 1 };
typedef struct { int8_t type, index; } c10_Device; /* index -1: the current one */

enum { GGML_USAGE_ANY = 0, GGML_USAGE_WEIGHTS = 1, GGML_USAGE_COMPUTE = 2 };

typedef struct { char bytes[128]; } nccl_UniqueId;

#endif
