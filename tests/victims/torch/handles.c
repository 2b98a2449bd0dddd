/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three libraries in one, for torch_allocator: a communicator and handles that allocate device
 * memory while they are created.
 */
#include <stddef.h>
#include "interpose/abi/framework_types.h"
#include "tests/victims/torch/handles.h"

#define EXPORT __attribute__((visibility("default")))

static struct handles_settings set;

EXPORT void handles_open(const struct handles_settings *settings) { set = *settings; }

static int take(size_t bytes)
{
	unsigned long long ptr;
	return set.alloc(&ptr, bytes);
}

/* The id comes by value, 128 bytes of it: its last one must arrive. */
EXPORT int ncclCommInitRank(void **out, int ranks, nccl_UniqueId id, int rank)
{
	*out = &set;
	return id.bytes[0] == 1 && id.bytes[sizeof id.bytes - 1] == 2 && ranks == 8 && rank == 7
	               ? take(set.communicator_bytes)
	               : -1;
}

EXPORT int cublasCreate_v2(void **out)
{
	*out = &set;
	return take(set.handle_bytes);
}

EXPORT int cudnnCreate(void **out)
{
	*out = &set;
	return take(set.handle_bytes);
}
