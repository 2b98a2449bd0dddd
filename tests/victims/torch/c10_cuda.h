/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp): one device, a few
 * streams. Sizes are bytes. The caller passes the CUDA functions, as libc10_cuda.so has them from
 * the runtime. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/cuda_types.h"
#include "tests/victims/torch/c10.h"

enum torch_era {
	TORCH_3,
	TORCH_L,
	TORCH_M,
	TORCH_MMM,
	TORCH_ERAS
}; /* which shapes of the report functions are called */

struct torch_settings {
	CUresult (*alloc)(CUdeviceptr *, size_t);
	CUresult (*release)(CUdeviceptr);
	CUresult (*memory)(size_t *, size_t *);
	CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
	CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
	                   unsigned long long);
	CUresult (*handle_release)(CUmemGenericAllocationHandle);
	CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
	                unsigned long long);
	CUresult (*unmap)(CUdeviceptr, size_t);
	CUresult (*set_access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
	enum torch_era era;
	bool expandable;
	bool silent;           /* back-ends that report nothing: cudaMallocAsync, pluggable */
	size_t reserved_max;   /* set_per_process_memory_fraction; 0 none */
};

struct torch_block;

enum { TORCH_STREAMS = 4 };

void torch_open(const struct torch_settings *settings);

/* NULL: out of memory, after all attempts of PyTorch. */
struct torch_block *torch_malloc(size_t bytes);
void torch_free(struct torch_block *block);
void torch_empty_cache(void);
/* The stream of the following allocations: a cached block serves only its stream. Initially 0. */
void torch_use_stream(unsigned stream);
CUdeviceptr torch_address(const struct torch_block *block);
size_t torch_bytes(const struct torch_block *block);

/* The allocator's statistics: largest free block of either pool of this stream. */
struct torch_books {
	size_t allocated, reserved, hole_small, hole_large;
	uint64_t events, retries;
};
struct torch_books torch_books(void);

/* The segment of at least this many bytes that the fewest live bytes keep from being free; false:
 * none. */
struct torch_pinned {
	CUdeviceptr segment, block;
	size_t segment_bytes, live_bytes, live_count, block_bytes;
};
bool torch_most_pinned(size_t segment_bytes_least, struct torch_pinned *pinned);

/* What the functions behind the reports were given. */
struct c10_sums torch_reported(void);
