/* SPDX-License-Identifier: Apache-2.0 */
/* See torch_program.h. */
#include <stdlib.h>

#include "tests/victims/causes/torch_program.h"
#include "tests/victims/torch/library.h"

tensor *module_to(size_t bytes) { return torch.malloc(bytes); }
tensor *scaled_dot_product_attention(size_t bytes) { return torch.malloc(bytes); }
tensor *lm_head(size_t bytes) { return torch.malloc(bytes); }
tensor *cat_cuda(size_t bytes) { return torch.malloc(bytes); }
tensor *static_cache(size_t bytes) { return torch.malloc(bytes); }
tensor *past_key_values(size_t bytes) { return torch.malloc(bytes); }
tensor *optimizer_state(size_t bytes) { return torch.malloc(bytes); }
tensor *prefix_cache_put(size_t bytes) { return torch.malloc(bytes); }
tensor *stack_outputs(size_t bytes) { return torch.malloc(bytes); }
tensor *feature_map(size_t bytes) { return torch.malloc(bytes); }

tensor *tensor_take(tensor_site *at, size_t bytes)
{
	slow_down();
	tensor *t = at(bytes);
	if (t)
		return t;
	say("framework_request %zu", whole(bytes, 512));
	say("reserved %zu", torch.books().reserved);
	give_up("PyTorch", bytes);
}

void torch_begin(size_t reserved_max)
{
	struct torch_settings settings = {.era = TORCH_M, .reserved_max = reserved_max};
	const char *configured = getenv("PYTORCH_CUDA_ALLOC_CONF"), *why = torch_library_open();
	if (why)
		give_up(why, 0);
	settings.expandable = configured && strstr(configured, "expandable_segments:True");
	device_functions(&settings);
	torch.open(&settings);
}

void torch_load(size_t bytes)
{
	unsigned layers = between_whole(16, 40);
	size_t layer = bytes / layers, parts[] = {layer / 4, layer / 8, layer * 3 / 8, layer / 4};
	for (unsigned i = 0; i < layers; i++)
		for (size_t part = 0; part < COUNT(parts); part++)
			tensor_take(module_to, parts[part]);
}

void torch_step(size_t bytes)
{
	tensor *hidden = tensor_take(feature_map, bytes / 2),
	       *scores = tensor_take(scaled_dot_product_attention, bytes);
	torch.free(hidden);
	torch.free(scores);
}

void cache_generate(tensor **cache, unsigned layers, size_t token, unsigned prompt_tokens,
                     unsigned tokens)
{
	for (unsigned t = prompt_tokens; t <= prompt_tokens + tokens; t++)
		for (unsigned i = 0; i < layers * 2; i++) {
			tensor *longer = tensor_take(cat_cuda, t * token);
			if (cache[i])
				torch.free(cache[i]);
			cache[i] = longer;
		}
}

void cache_finish(tensor **cache, unsigned layers)
{
	for (unsigned i = 0; i < layers * 2; i++) {
		torch.free(cache[i]);
		cache[i] = NULL;
	}
}

void tensor_free(tensor *t) { torch.free(t); }
void torch_cache_empty(void) { torch.empty_cache(); }
void torch_stream_use(unsigned stream) { torch.use_stream(stream); }
struct torch_books torch_books_now(void) { return torch.books(); }
