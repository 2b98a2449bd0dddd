/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates as llama.cpp does with ggml's buffers (torch/ggml.c, a shared library as published):
 * weights, a KV cache, a graph's tensors, a pool for its kernels. A staging buffer is freed, and
 * another may take its place in the heap. One buffer has no memory.
 */
#include "tests/victims/doors.h"
#include "tests/victims/torch/ggml.h"
#include "tests/victims/torch/library.h"

enum { WEIGHTS = 1 };

static struct {
	typeof(&ggml_open) open;
	typeof(&ggml_backend_buft_alloc_buffer) alloc;
	typeof(&ggml_backend_buffer_set_usage) usage;
	typeof(&ggml_backend_buffer_free) free;
	typeof(&ggml_gallocr_reserve_n) reserve;
	typeof(&ggml_backend_graph_compute_async) compute;
} ggml;

void load_tensors(size_t bytes);
void llama_kv_cache(size_t bytes);

void load_tensors(size_t bytes)
{
	void *weights, *staging = ggml.alloc(NULL, 4 * MiB);
	ggml.usage(staging, WEIGHTS);
	ggml.free(staging);
	weights = ggml.alloc(NULL, bytes);
	ggml.usage(weights, WEIGHTS);
}

void llama_kv_cache(size_t bytes) { ggml.alloc(NULL, bytes); }

int main(int argc, char **argv)
{
	const struct torch_function rows[] = {
		{ "ggml_open", (void **)&ggml.open },
		{ "ggml_backend_buft_alloc_buffer", (void **)&ggml.alloc },
		{ "ggml_backend_buffer_set_usage", (void **)&ggml.usage },
		{ "ggml_backend_buffer_free", (void **)&ggml.free },
		{ "ggml_gallocr_reserve_n", (void **)&ggml.reserve },
		{ "ggml_backend_graph_compute_async", (void **)&ggml.compute },
	};
	door_open(argc, argv);
	const struct ggml_settings settings = {
		(int (*)(unsigned long long *, size_t))(void *)cu.alloc,
		(int (*)(unsigned long long))(void *)cu.release, 24 * MiB, 16 * MiB
	};
	const char *why = torch_find("libggml-base.so", rows, sizeof rows / sizeof *rows);
	if (why)
		skip(why);
	ggml.open(&settings);
	ggml.free(ggml.alloc(NULL, 0));
	load_tensors(96 * MiB);
	llama_kv_cache(48 * MiB);
	if (!ggml.reserve(NULL, NULL, NULL, NULL) || ggml.compute(NULL, NULL))
		return BROKEN;
	say("role weights bytes %zu", 96 * MiB);
	say("role kv bytes %zu", 48 * MiB);
	say("role activations bytes %zu", 24 * MiB);
	say("role workspace bytes %zu", 16 * MiB);
	say("live kind device bytes %zu count 4", 184 * MiB);
	say("clean leaks");
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
