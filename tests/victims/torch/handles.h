/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of libhandles.so: how to allocate device memory, and how much each kind of handle
 * takes. Results are 0 or an error.
 */
#pragma once

#include <stddef.h>

struct handles_settings {
	int (*alloc)(unsigned long long *out, size_t bytes);
	size_t communicator_bytes, handle_bytes;
};
void handles_open(const struct handles_settings *settings);

/* NCCL, cuBLAS, cuDNN by their own names. */
#include "interpose/abi/framework_types.h"
int ncclCommInitRank(void **out, int ranks, nccl_UniqueId id, int rank);
int cublasCreate_v2(void **out);
int cudnnCreate(void **out);
