/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ggml's buffers: each is one block of memory. A graph's tensors get one, its kernels get a pool.
 */
#include "tests/victims/torch/ggml.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

enum { USAGE_COMPUTE = 2 };
struct buffer { unsigned long long base; size_t bytes; int usage; };
static struct ggml_settings set;

EXPORT void ggml_open(const struct ggml_settings *settings) { set = *settings; }

EXPORT void *ggml_backend_buft_alloc_buffer(void *type, size_t bytes)
{
	struct buffer *buffer = calloc(1, sizeof *buffer);
	if (!buffer || (bytes && set.alloc(&buffer->base, bytes)))
		abort();
	buffer->bytes = bytes;
	return buffer;
}

EXPORT size_t ggml_backend_buffer_get_size(void *buffer)
{
	return ((struct buffer *)buffer)->bytes;
}

/* As ggml does: a buffer without memory must not be asked. */
EXPORT void *ggml_backend_buffer_get_base(void *buffer)
{
	const struct buffer *b = buffer;
	if (!b->bytes)
		abort();
	return (void *)b->base;
}

EXPORT void ggml_backend_buffer_set_usage(void *buffer, int usage)
{
	((struct buffer *)buffer)->usage = usage;
}

EXPORT void ggml_backend_buffer_free(void *buffer)
{
	struct buffer *b = buffer;
	if (b->bytes && set.release(b->base))
		abort();
	free(b);
}

EXPORT _Bool ggml_gallocr_reserve_n(void *allocator, void *graph, const int *node_buffers,
                                    const int *leaf_buffers)
{
	void *buffer = ggml_backend_buft_alloc_buffer(allocator, set.compute_bytes);
	ggml_backend_buffer_set_usage(buffer, USAGE_COMPUTE);
	return true;
}

/* The pool grows once. */
EXPORT int ggml_backend_graph_compute_async(void *backend, void *graph)
{
	static unsigned long long pool;
	return pool ? 0 : set.alloc(&pool, set.scratch_bytes);
}
