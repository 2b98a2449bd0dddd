/* SPDX-License-Identifier: Apache-2.0 */
/* libggml-base.so for ggml_buffers: ggml's functions around buffers, with their names and types. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ggml_settings {
	int (*alloc)(unsigned long long *out, size_t bytes);
	int (*release)(unsigned long long ptr);
	size_t compute_bytes, scratch_bytes;
};
void ggml_open(const struct ggml_settings *settings);

void *ggml_backend_buft_alloc_buffer(void *type, size_t bytes);
void *ggml_backend_buffer_get_base(void *buffer);
size_t ggml_backend_buffer_get_size(void *buffer);
void ggml_backend_buffer_set_usage(void *buffer, int usage);
void ggml_backend_buffer_free(void *buffer);
_Bool ggml_gallocr_reserve_n(void *allocator, void *graph, const int *node_buffers,
                             const int *leaf_buffers);
int ggml_backend_graph_compute_async(void *backend, void *graph);
