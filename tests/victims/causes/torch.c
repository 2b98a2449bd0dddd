/* SPDX-License-Identifier: Apache-2.0 */
/* The same causes inside PyTorch's allocator (../torch), where the driver sees only segments. */
#include <stdlib.h>

#include "tests/victims/causes/fixture.h"
#include "tests/victims/torch/library.h"

typedef struct torch_block tensor;
typedef tensor *tensor_site(size_t bytes);
tensor_site module_to, scaled_dot_product_attention, lm_head, cat_cuda, static_cache,
	past_key_values, prefix_cache_put, stack_outputs, feature_map;
tensor *module_to(size_t bytes) { return torch.malloc(bytes); }
tensor *scaled_dot_product_attention(size_t bytes) { return torch.malloc(bytes); }
tensor *lm_head(size_t bytes) { return torch.malloc(bytes); }
tensor *cat_cuda(size_t bytes) { return torch.malloc(bytes); }
tensor *static_cache(size_t bytes) { return torch.malloc(bytes); }
tensor *past_key_values(size_t bytes) { return torch.malloc(bytes); }
tensor *prefix_cache_put(size_t bytes) { return torch.malloc(bytes); }
tensor *stack_outputs(size_t bytes) { return torch.malloc(bytes); }
tensor *feature_map(size_t bytes) { return torch.malloc(bytes); }

static tensor *must_have(tensor_site *at, size_t bytes)
{
	tensor *t = at(bytes);
	if (t)
		return t;
	say("framework_request %zu", whole(bytes, 512));
	say("reserved %zu", torch.books().reserved);
	give_up("PyTorch", bytes);
}

static void begin(size_t reserved_max)
{
	struct torch_settings settings = {.era = TORCH_M, .reserved_max = reserved_max};
	const char *configured = getenv("PYTORCH_CUDA_ALLOC_CONF"), *why = torch_library_open();
	if (why)
		give_up(why, 0);
	settings.expandable = configured && strstr(configured, "expandable_segments:True");
	device_functions(&settings);
	torch.open(&settings);
}

/* Weights of about so many bytes, four tensors a layer, as a state dict has them. */
static void load(size_t bytes)
{
	unsigned layers = between_whole(16, 40);
	size_t layer = bytes / layers, parts[] = {layer / 4, layer / 8, layer * 3 / 8, layer / 4};
	for (unsigned i = 0; i < layers; i++)
		for (size_t part = 0; part < COUNT(parts); part++)
			must_have(module_to, parts[part]);
}

/* One forward pass: hidden states, attention, both gone at its end. */
static void step(size_t bytes)
{
	tensor *hidden = must_have(feature_map, bytes / 2),
	       *scores = must_have(scaled_dot_product_attention, bytes);
	torch.free(hidden);
	torch.free(scores);
}

/* ---- the four causes of the GPU operator's guide ---- */

/* Model too large: at load, whatever the request. */
static void weights(void)
{
	say("cause S2a");
	say("when start");
	say_not("S1 S3 S4 S5 S6 S8");
	begin(0);
	load(share_of(between(1.1, 1.8)));
}

/* Model and activations: short prompts are served, a long one is not. */
static void prompt(void)
{
	say("cause S2b");
	say("when long");
	say_not("S1 S2a S4 S5 S6 S8");
	begin(0);
	load(share_of(between(0.5, 0.7)));
	size_t room = device_room();
	for (unsigned i = between_whole(15, 50); i; i--)
		step(around(room / 60));
	torch.free(must_have(scaled_dot_product_attention,
	                     (size_t)((double)room * between(1.15, 2)) - request.by_bytes));
}

enum { LAYERS = 6 };

static void generate(tensor **cache, unsigned layers, size_t token, unsigned prompt_tokens,
                     unsigned tokens)
{
	for (unsigned t = prompt_tokens; t <= prompt_tokens + tokens; t++)
		for (unsigned i = 0; i < layers * 2; i++) {
			tensor *longer = must_have(cat_cuda, t * token);
			if (cache[i])
				torch.free(cache[i]);
			cache[i] = longer;
		}
}

static void finish(tensor **cache, unsigned layers)
{
	for (unsigned i = 0; i < layers * 2; i++) {
		torch.free(cache[i]);
		cache[i] = NULL;
	}
}

/* KV overflow: linear in the context; long requests fail, short ones succeed. */
static void kv(void)
{
	tensor *cache[LAYERS * 2] = {0};
	say("cause S4");
	say("when long");
	say_not("S1 S2a S3 S5 S8");
	begin(0);
	load(share_of(between(0.4, 0.6)));
	unsigned layers = between_whole(3, LAYERS),
		 longest = (unsigned)(between(80, 140) * request.scale);
	size_t token = whole(device_room() / (2 * layers + 1) / longest, 512);
	for (unsigned i = between_whole(8, 12); i; i--) {
		generate(cache, layers, token, between_whole(2, longest / 8),
		         between_whole(longest / 12, longest / 3));
		finish(cache, layers);
	}
	unsigned limit = request.value == UNKNOWN ? longest * 3 : (unsigned)request.value,
		 first = longest / 10;
	generate(cache, layers, token, first, limit > first ? limit - first : 0);
	finish(cache, layers);
}

static void sequences(void) { setting("--max_batch_size", 16u << between_whole(0, 3)); }

/* Batch misconfiguration: a static batch, flat and high from the first one on. */
static void batch(void)
{
	say("cause S5");
	say("when start");
	say_not("S1 S2 S3 S4 S6 S8");
	begin(0);
	load(share_of(between(0.3, 0.5)));
	size_t unit =
		whole((size_t)((double)device_room() * (1 + between(0.2, 1.2)) / setting_planned()),
	              2 * MiB);
	unit = unit < 20 * MiB ? 20 * MiB : unit;
	say("fits %zu", device_room() / unit);
	for (unsigned i = 0; i < setting_value(); i++)
		must_have(static_cache, unit);
}

/* T6, fragmentation: many segments, each pinned by one small tensor that lives on. */
static void checkerboard(void)
{
	enum { PER_SEGMENT = 8 };
	size_t each = 20 * MiB / PER_SEGMENT;
	unsigned segments = between_whole(60, 120);
	tensor **blocks = calloc(segments * PER_SEGMENT, sizeof *blocks);
	say("cause S6.F1");
	say_not("S1 S2 S3 S4 S5 S6.F2 S6.F3 S8");
	say("pinned_by prefix_cache_put");
	begin(0);
	load(device_total - segments * 20 * MiB - (size_t)(between(20, 150) * (double)MiB));
	unsigned got = 0, keep = between_whole(0, PER_SEGMENT - 1);
	for (unsigned i = 0; request.apart && i < segments; i++)
		blocks[i * PER_SEGMENT + keep] = must_have(prefix_cache_put, each);
	/* what the weights left */
	for (; got < segments * PER_SEGMENT && (got % PER_SEGMENT || device_room() >= 20 * MiB);
	     got++)
		if (!blocks[got])
			blocks[got] = must_have(prefix_cache_put, each);
	for (unsigned i = 0; i < got; i++)
		if (i % PER_SEGMENT != keep)
			torch.free(blocks[i]);
	struct torch_books books = torch.books();
	say("hole %zu", books.hole_large);
	must_have(scaled_dot_product_attention, (size_t)(between(150, 300) * (double)MiB));
}

/* ---- others ---- */

/* pytorch#35901: a large cached segment is free, middling tensors that live on are put into it, and
 * it can never be released as a whole. */
static void pinned_segment(void)
{
	say("cause S6.F1");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S8");
	begin(0);
	load(share_of(between(0.4, 0.55)));
	size_t large = device_room() / 10 * 9, middling = share_of(0.002) + 16 * MiB;
	torch.free(must_have(feature_map, large));
	for (unsigned i = between_whole(3, 8); i; i--) {
		must_have(prefix_cache_put, around(middling));
		step(around(middling));
	}
	for (unsigned i = between_whole(10, 30); i; i--)
		step(around(large / 20));
	torch.free(must_have(feature_map, large));
}

/* T8: the block that fits is cached for another stream. */
static void other_stream(void)
{
	say("cause S6.F3");
	say_not("S1 S2 S3 S4 S5 S6.F1 S8");
	begin(0);
	load(share_of(between(0.4, 0.55)));
	size_t large = device_room() / 10 * 8;
	torch.use_stream(1);
	tensor *block = must_have(feature_map, large);
	must_have(prefix_cache_put, 24 * MiB);
	torch.free(block);
	/* what keeps it from being released */
	must_have(prefix_cache_put, large / 50 + 20 * MiB);
	torch.use_stream(0);
	for (unsigned i = between_whole(10, 30); i; i--)
		step(around(device_room() / 8));
	must_have(scaled_dot_product_attention,
	          device_room() + (size_t)((double)large * between(0.2, 0.5)));
}

/* Its neighbour of shortage: what is cached and pinned would not have been enough either. */
static void slack_too_small(void)
{
	say("cause S2b");
	say_not("S1 S2a S3 S4 S6 S8");
	say("evidence percent");
	begin(0);
	load(share_of(between(0.5, 0.65)));
	size_t room = device_room(), large = room / 10;
	torch.free(must_have(feature_map, large));
	must_have(prefix_cache_put, large / 50 + 20 * MiB);
	for (unsigned i = between_whole(10, 30); i; i--)
		step(around(room / 60));
	must_have(scaled_dot_product_attention,
	          device_room() + (size_t)((double)large * between(2.5, 5)));
}

static void expandable(void) { setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", 1); }

/* T13: chunks of 20 MiB until one is refused, and all of them released; the request is the
 * sum and more. */
static void chunks_rolled_back(void)
{
	say("cause S2b");
	say_not("S1 S2a S3 S4 S6 S8");
	begin(0);
	load(share_of(between(0.5, 0.7)));
	size_t room = device_room();
	for (unsigned i = between_whole(15, 50); i; i--)
		step(around(room / 60));
	torch.free(must_have(scaled_dot_product_attention,
	                     (size_t)((double)room * between(1.15, 1.6)) - request.by_bytes));
}

/* T14: the program allows itself a share of the device; PyTorch refuses, the driver is never asked.
 */
static void fraction(void)
{
	double allowed = between(0.3, 0.6);
	say("cause S1");
	say_not("S2 S3 S4 S5 S6 S8");
	begin(share_of(allowed));
	load(share_of(allowed * between(0.7, 0.85)));
	size_t each = share_of(allowed * 0.02);
	for (;;) /* larger and larger batches, all of which the device has room for */
		step(each = each * 6 / 5);
}

/* Outputs of each request are kept: what the driver sees is a segment now and then. */
static void outputs_kept(void)
{
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	begin(0);
	load(share_of(between(0.4, 0.6)));
	size_t room = device_room(),
	       output = whole(room / (unsigned)(between(120, 200) * request.scale), 512);
	say("per_request %zu", output);
	for (;;) {
		step(around(output * 2));
		must_have(stack_outputs, output);
	}
}

/* T20: a leak has taken the device, and holes that nothing else fits into hold two fifths of what
 * is asked for. */
static void leak_and_slack(void)
{
	enum { PER_SEGMENT = 8 };
	tensor *blocks[PER_SEGMENT];
	unsigned segments = between_whole(20, 40);
	size_t output = (size_t)(between(24, 60) * (double)MiB),
	       batch_bytes = segments * 20 * MiB / 2 * 5, outputs = between_whole(120, 160);
	/* a third is the model's, on the smallest device too */
	size_t most = (device_total * 2 / 3 - batch_bytes) / outputs;
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	say("evidence percent");
	begin(0);
	output = output < most ? output : most;
	load(device_total - batch_bytes - output * outputs);
	for (unsigned i = 0; i < segments; i++) {
		for (unsigned k = 0; k < PER_SEGMENT; k++)
			blocks[k] = must_have(prefix_cache_put, 20 * MiB / PER_SEGMENT);
		for (unsigned k = 0; k < PER_SEGMENT - 1; k++)
			torch.free(blocks[k]);
	}
	torch.free(must_have(feature_map, batch_bytes)); /* a large batch in the morning */
	torch.empty_cache();
	while (device_room() > batch_bytes / 10) {
		step(output);
		must_have(stack_outputs, output);
	}
	must_have(feature_map, batch_bytes); /* and one in the evening */
}

/* T12 as PyTorch does it: refused, the cache released, served. */
static void cache_released(void)
{
	tensor *cached[24];
	say("cause S0");
	say_not("S1 S2 S3 S4 S5 S6 S8");
	begin(0);
	load(share_of(between(0.3, 0.5)));
	size_t each = device_room() / 26;
	for (size_t i = 0; i < COUNT(cached); i++)
		cached[i] = must_have(feature_map, each);
	for (size_t i = 0; i < COUNT(cached); i++)
		torch.free(cached[i]);
	torch.free(must_have(feature_map, each * 15));
	for (unsigned i = between_whole(30, 60); i; i--)
		step(around(each));
}

static void healthy(double share)
{
	say("cause none");
	say("clean leaks");
	begin(0);
	load(share_of(share));
}

/* Serves prompts of all lengths; the cache of the allocator grows and stays. */
static void healthy_serving(void)
{
	healthy(between(0.4, 0.6));
	for (unsigned i = between_whole(100, 250); i; i--)
		step((size_t)(between(0.05, 1) * (double)share_of(0.06)));
}

/* Caches grow and are freed, request after request. */
static void healthy_generation(void)
{
	tensor *cache[LAYERS * 2] = {0};
	healthy(between(0.3, 0.5));
	size_t token = share_of(0.00008);
	for (unsigned i = between_whole(10, 25); i; i--) {
		generate(cache, LAYERS, token, between_whole(2, 10), between_whole(20, 60));
		finish(cache, LAYERS);
	}
}

/* A prefix cache with a limit, filled and turned over. */
static void healthy_prefix_cache(void)
{
	tensor *entries[48] = {0};
	healthy(between(0.4, 0.5));
	for (unsigned i = 0, requests = between_whole(200, 400); i < requests; i++) {
		unsigned at = i < COUNT(entries) ? i : between_whole(0, COUNT(entries) - 1);
		step(around(share_of(0.01)));
		if (entries[at])
			torch.free(entries[at]);
		entries[at] = must_have(prefix_cache_put, around(share_of(0.003)));
	}
}

const struct scenario torch_scenarios[] = {
	{"torch_weights", weights, NULL, 0, NULL},
	{"torch_prompt", prompt, NULL, 0, NULL},
	{"torch_kv", kv, NULL, 0, NULL},
	{"torch_batch", batch, NULL, 0, sequences},
	{"torch_checkerboard", checkerboard, NULL, 0, NULL},
	{"torch_pinned_segment", pinned_segment, NULL, 0, NULL},
	{"torch_other_stream", other_stream, NULL, 0, NULL},
	{"torch_slack_too_small", slack_too_small, NULL, 0, NULL},
	{"torch_chunks_rolled_back", chunks_rolled_back, expandable, 0, NULL},
	{"torch_fraction", fraction, NULL, 0, NULL},
	{"torch_outputs_kept", outputs_kept, NULL, 0, NULL},
	{"torch_leak_and_slack", leak_and_slack, NULL, 0, NULL},
	{"torch_cache_released", cache_released, NULL, 0, NULL},
	{"healthy_torch_serving", healthy_serving, NULL, 0, NULL},
	{"healthy_torch_generation", healthy_generation, NULL, 0, NULL},
	{"healthy_torch_prefix_cache", healthy_prefix_cache, NULL, 0, NULL},
	{NULL, NULL, NULL, 0, NULL},
};
