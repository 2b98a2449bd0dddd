/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a PyTorch program does, for scenarios: it opens the allocator (../torch), loads weights, runs
 * forward passes and grows a cache. Contract: main thread only; torch_begin comes first. Sizes are
 * bytes. tensor_take ends the process as PyTorch does when it is refused, after it printed the
 * request and what the allocator had reserved.
 */
#pragma once

#include "tests/victims/causes/fixture.h"
#include "tests/victims/torch/c10_cuda.h"

typedef struct torch_block tensor;
typedef tensor *tensor_site(size_t bytes);
tensor_site module_to, scaled_dot_product_attention, lm_head, cat_cuda, static_cache,
	past_key_values, optimizer_state, prefix_cache_put, stack_outputs, feature_map;

tensor *tensor_take(tensor_site *at, size_t bytes);
/* reserved_max: what the program allows itself; 0: the device. The era and expandable segments are
 * those of the environment. */
void torch_begin(size_t reserved_max);
/* Weights of about so many bytes, four tensors a layer, as a state dict has them. */
void torch_load(size_t bytes);
/* One forward pass: hidden states, attention, both gone at its end. */
void torch_step(size_t bytes);
/* A cache of so many layers, K and V, that is copied into a longer tensor with each token. */
void cache_generate(tensor **cache, unsigned layers, size_t token, unsigned prompt_tokens,
                    unsigned tokens);
void cache_finish(tensor **cache, unsigned layers);

void tensor_free(tensor *t);
void torch_cache_empty(void);
void torch_stream_use(unsigned stream);
struct torch_books torch_books_now(void);
