/* SPDX-License-Identifier: Apache-2.0 */
/* The same causes inside PyTorch's allocator (../torch), where the driver sees only segments. */
#include <stdlib.h>

#include "tests/victims/causes/torch_program.h"

/* ---- the four causes of the GPU operator's guide ---- */

/* Model too large: at load, whatever the request. */
static void weights(void)
{
	say("cause S2a");
	say("when start");
	say_not("S1 S3 S4 S5 S6 S8");
	torch_begin(0);
	torch_load(share_of(between(1.1, 1.8)));
}

/* Model and activations: short prompts are served, a long one is not. */
static void prompt(void)
{
	say("cause S2b");
	say("when long");
	say_not("S1 S2a S4 S5 S6 S8");
	torch_begin(0);
	torch_load(share_of(between(0.5, 0.7)));
	size_t room = device_room();
	for (unsigned i = between_whole(15, 50); i; i--)
		torch_step(around(room / 60));
	tensor_free(tensor_take(scaled_dot_product_attention,
	                     (size_t)((double)room * between(1.15, 2)) - request.by_bytes));
}

enum { LAYERS = 6 };

/* KV overflow: linear in the context; long requests fail, short ones succeed. */
static void kv(void)
{
	tensor *cache[LAYERS * 2] = {0};
	say("cause S4");
	say("when long");
	say_not("S1 S2a S3 S5 S8");
	torch_begin(0);
	torch_load(share_of(between(0.4, 0.6)));
	unsigned layers = between_whole(3, LAYERS),
		 longest = (unsigned)(between(80, 140) * request.scale);
	size_t token = whole(device_room() / (2 * layers + 1) / longest, 512);
	for (unsigned i = between_whole(8, 12); i; i--) {
		cache_generate(cache, layers, token, between_whole(2, longest / 8),
		         between_whole(longest / 12, longest / 3));
		cache_finish(cache, layers);
	}
	unsigned limit = request.value == UNKNOWN ? longest * 3 : (unsigned)request.value,
		 first = longest / 10;
	cache_generate(cache, layers, token, first, limit > first ? limit - first : 0);
	cache_finish(cache, layers);
}

static void sequences(void) { setting("--max_batch_size", 16u << between_whole(0, 3)); }

/* Batch misconfiguration: a static batch, flat and high from the first one on. */
static void batch(void)
{
	say("cause S5");
	say("when start");
	say_not("S1 S2 S3 S4 S6 S8");
	torch_begin(0);
	torch_load(share_of(between(0.3, 0.5)));
	size_t unit =
		whole((size_t)((double)device_room() * (1 + between(0.2, 1.2)) / setting_planned()),
	              2 * MiB);
	unit = unit < 20 * MiB ? 20 * MiB : unit;
	say("fits %zu", device_room() / unit);
	for (unsigned i = 0; i < setting_value(); i++)
		tensor_take(static_cache, unit);
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
	torch_begin(0);
	torch_load(device_total - segments * 20 * MiB - (size_t)(between(20, 150) * (double)MiB));
	unsigned got = 0, keep = between_whole(0, PER_SEGMENT - 1);
	for (unsigned i = 0; request.apart && i < segments; i++)
		blocks[i * PER_SEGMENT + keep] = tensor_take(prefix_cache_put, each);
	/* what the weights left */
	for (; got < segments * PER_SEGMENT && (got % PER_SEGMENT || device_room() >= 20 * MiB);
	     got++)
		if (!blocks[got])
			blocks[got] = tensor_take(prefix_cache_put, each);
	for (unsigned i = 0; i < got; i++)
		if (i % PER_SEGMENT != keep)
			tensor_free(blocks[i]);
	struct torch_books books = torch_books_now();
	say("hole %zu", books.hole_large);
	tensor_take(scaled_dot_product_attention, (size_t)(between(150, 300) * (double)MiB));
}

/* ---- others ---- */

/* pytorch#35901: a large cached segment is free, middling tensors that live on are put into it, and
 * it can never be released as a whole. */
static void pinned_segment(void)
{
	say("cause S6.F1");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S8");
	torch_begin(0);
	torch_load(share_of(between(0.4, 0.55)));
	size_t large = device_room() / 10 * 9, middling = share_of(0.002) + 16 * MiB;
	tensor_free(tensor_take(feature_map, large));
	for (unsigned i = between_whole(3, 8); i; i--) {
		tensor_take(prefix_cache_put, around(middling));
		torch_step(around(middling));
	}
	for (unsigned i = between_whole(10, 30); i; i--)
		torch_step(around(large / 20));
	tensor_free(tensor_take(feature_map, large));
}

/* T8: the block that fits is cached for another stream. */
static void other_stream(void)
{
	say("cause S6.F3");
	say_not("S1 S2 S3 S4 S5 S6.F1 S8");
	torch_begin(0);
	torch_load(share_of(between(0.4, 0.55)));
	size_t large = device_room() / 10 * 8;
	torch_stream_use(1);
	tensor *block = tensor_take(feature_map, large);
	tensor_take(prefix_cache_put, 24 * MiB);
	tensor_free(block);
	/* what keeps it from being released */
	tensor_take(prefix_cache_put, large / 50 + 20 * MiB);
	torch_stream_use(0);
	for (unsigned i = between_whole(10, 30); i; i--)
		torch_step(around(device_room() / 8));
	tensor_take(scaled_dot_product_attention,
	          device_room() + (size_t)((double)large * between(0.2, 0.5)));
}

/* Its neighbour of shortage: what is cached and pinned would not have been enough either. */
static void slack_too_small(void)
{
	say("cause S2b");
	say_not("S1 S2a S3 S4 S6 S8");
	say("evidence percent");
	torch_begin(0);
	torch_load(share_of(between(0.5, 0.65)));
	size_t room = device_room(), large = room / 10;
	tensor_free(tensor_take(feature_map, large));
	tensor_take(prefix_cache_put, large / 50 + 20 * MiB);
	for (unsigned i = between_whole(10, 30); i; i--)
		torch_step(around(room / 60));
	tensor_take(scaled_dot_product_attention,
	          device_room() + (size_t)((double)large * between(2.5, 5)) - request.by_bytes);
}

static void expandable(void) { setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", 1); }

/* T13: chunks of 20 MiB until one is refused, and all of them released; the request is the
 * sum and more. */
static void chunks_rolled_back(void)
{
	say("cause S2b");
	say_not("S1 S2a S3 S4 S6 S8");
	torch_begin(0);
	torch_load(share_of(between(0.5, 0.7)));
	size_t room = device_room();
	for (unsigned i = between_whole(15, 50); i; i--)
		torch_step(around(room / 60));
	tensor_free(tensor_take(scaled_dot_product_attention,
	                     (size_t)((double)room * between(1.15, 1.6)) - request.by_bytes));
}

/* T14: the program allows itself a share of the device; PyTorch refuses, the driver is never asked.
 */
static void fraction(void)
{
	double allowed = between(0.3, 0.6);
	say("cause S1");
	say_not("S2 S3 S4 S5 S6 S8");
	torch_begin(request.whole ? 0 : share_of(allowed));
	torch_load(share_of(allowed * between(0.7, 0.85)));
	size_t each = share_of(allowed * 0.02);
	/* larger and larger batches, all of which the device has room for */
	for (unsigned i = 0; i < 16 && each < share_of(allowed * 0.3); i++)
		torch_step(each = each * 6 / 5);
}

/* Outputs of each request are kept: what the driver sees is a segment now and then. */
static void outputs_kept(void)
{
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	torch_begin(0);
	torch_load(share_of(between(0.4, 0.6)));
	size_t room = device_room(),
	       output = whole(room / (unsigned)(between(120, 200) * request.scale), 512);
	say("per_request %zu", output);
	for (;;) {
		torch_step(around(output * 2));
		tensor_take(stack_outputs, output);
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
	torch_begin(0);
	output = output < most ? output : most;
	torch_load(device_total - batch_bytes - output * outputs);
	for (unsigned i = 0; i < segments; i++) {
		for (unsigned k = 0; k < PER_SEGMENT; k++)
			blocks[k] = tensor_take(prefix_cache_put, 20 * MiB / PER_SEGMENT);
		for (unsigned k = 0; k < PER_SEGMENT - 1; k++)
			tensor_free(blocks[k]);
	}
	tensor_free(tensor_take(feature_map, batch_bytes)); /* a large batch in the morning */
	torch_cache_empty();
	while (device_room() > batch_bytes / 10) {
		torch_step(output);
		tensor_take(stack_outputs, output);
	}
	tensor_take(feature_map, batch_bytes); /* and one in the evening */
}

/* T12 as PyTorch does it: refused, the cache released, served. */
static void cache_released(void)
{
	tensor *cached[24];
	say("cause S0");
	say_not("S1 S2 S3 S4 S5 S6 S8");
	torch_begin(0);
	torch_load(share_of(between(0.3, 0.5)));
	size_t each = device_room() / 26;
	for (size_t i = 0; i < COUNT(cached); i++)
		cached[i] = tensor_take(feature_map, each);
	for (size_t i = 0; i < COUNT(cached); i++)
		tensor_free(cached[i]);
	tensor_free(tensor_take(feature_map, each * 15));
	for (unsigned i = between_whole(30, 60); i; i--)
		torch_step(around(each));
}

static void healthy(double share)
{
	say("cause none");
	say("clean leaks");
	torch_begin(0);
	torch_load(share_of(share));
}

/* Serves prompts of all lengths; the cache of the allocator grows and stays. */
static void healthy_serving(void)
{
	healthy(between(0.4, 0.6));
	for (unsigned i = between_whole(100, 250); i; i--)
		torch_step((size_t)(between(0.05, 1) * (double)share_of(0.06)));
}

/* Caches grow and are freed, request after request. */
static void healthy_generation(void)
{
	tensor *cache[LAYERS * 2] = {0};
	healthy(between(0.3, 0.5));
	size_t token = share_of(0.00008);
	for (unsigned i = between_whole(10, 25); i; i--) {
		cache_generate(cache, LAYERS, token, between_whole(2, 10), between_whole(20, 60));
		cache_finish(cache, LAYERS);
	}
}

/* A prefix cache with a limit, filled and turned over. */
static void healthy_prefix_cache(void)
{
	tensor *entries[48] = {0};
	healthy(between(0.4, 0.5));
	for (unsigned i = 0, requests = between_whole(200, 400); i < requests; i++) {
		unsigned at = i < COUNT(entries) ? i : between_whole(0, COUNT(entries) - 1);
		torch_step(around(share_of(0.01)));
		if (entries[at])
			tensor_free(entries[at]);
		entries[at] = tensor_take(prefix_cache_put, around(share_of(0.003)));
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
