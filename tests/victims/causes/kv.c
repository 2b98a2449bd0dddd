/* SPDX-License-Identifier: Apache-2.0 */
/* The KV cache: too large when it is created (S3), or grown too large while serving (S4). */
#include <stdlib.h>

#include "tests/victims/causes/fixture.h"

static site *kv_site(void) { return PICK(allocate_kv_cache, llama_kv_cache, create_buffers); }

/* A dummy run at the largest batch, then its memory is freed and the device queried, as vLLM,
 * SGLang and TGI do. */
static void profile_run(void)
{
	device_ptr blocks[12];
	size_t each = share_of(0.006);
	for (size_t i = 0; i < COUNT(blocks); i++)
		blocks[i] = take_bytes(run_step, "run_step", around(each));
	for (size_t i = 0; i < COUNT(blocks); i++)
		device_free(blocks[i]);
	device_room();
}

/* Equal blocks, two a layer; a rerun takes what was advised: fewer bytes in all. */
static void kv_blocks(site *at, unsigned count, size_t each)
{
	each = whole(each - request.by_bytes / count, 512);
	for (unsigned i = 0; i < count; i++)
		take_bytes(at, "allocate_kv_cache", each);
}

/* T3: a KV block for each layer after the profile run; one of the last does not fit. */
static void kv_too_large(void)
{
	struct model model = model_of(share_of(between(0.3, 0.6)));
	model_load(&model);
	profile_run();
	size_t each = whole((size_t)((double)device_room() * between(1.04, 1.5) / model.layers),
	                    64 * KiB);
	say("cause S3");
	say_not("S1 S2a S4 S5 S6 S8");
	say("kv_bytes %zu", each * model.layers);
	kv_blocks(kv_site(), model.layers, each);
}

static void context_size(void)
{
	static const char *const flags[] = {"--ctx-size", "-c", "--max-model-len"};
	setting(flags[between_whole(0, COUNT(flags) - 1)], 4096u << between_whole(0, 5));
}

/* llama.cpp: one buffer for the whole context. */
static void kv_one_buffer(void)
{
	struct model model = model_of(share_of(between(0.3, 0.7)));
	model_load(&model);
	size_t token = whole((size_t)((double)device_room() * between(1.1, 8)) / setting_planned(),
	                     512);
	size_t wanted = token * setting_value() - request.by_bytes;
	say("cause S3");
	say("when start");
	say_not("S1 S2a S4 S5 S6 S8");
	say("fits %zu", device_room() / token);
	take_bytes(llama_kv_cache, "llama_kv_cache", wanted);
}

/* Variant V: the cache took nearly all, and capturing graphs fails. */
static void kv_leaves_no_room(void)
{
	struct model model = model_of(share_of(between(0.3, 0.6)));
	device_ptr stream;
	model_load(&model);
	profile_run();
	size_t room = device_room(), graph = share_of(between(0.01, 0.02));
	size_t each = whole((size_t)((double)(room - graph * 3) / model.layers), 64 * KiB) - 64 * KiB;
	unsigned graphs = between_whole(6, 12);
	say("cause S3");
	say_not("S1 S2a S4 S5 S6 S8");
	say("without %zu", each * model.layers);
	kv_blocks(kv_site(), model.layers, each);
	stream = stream_new();
	for (unsigned i = 0; i < graphs; i++) {
		graph_capture_begin(stream);
		take_bytes(capture_graph, "capture_graph", around(graph));
		graph_capture_end(stream);
	}
}

/* A growing cache: each step a block one step larger is taken, the old one copied and freed, for
 * every layer, K and V. */
enum { LAYERS_MAX = 8 };
struct cache {
	device_ptr k[LAYERS_MAX], v[LAYERS_MAX];
	unsigned layers;
	size_t step_bytes;
	site *at;
};

static void cache_tensor(const struct cache *cache, device_ptr *tensor, size_t tokens)
{
	device_ptr longer = take_bytes(cache->at, "torch.cat", tokens * cache->step_bytes);
	if (*tensor)
		device_free(*tensor);
	*tensor = longer;
}

static void generate(struct cache *cache, unsigned prompt, unsigned tokens)
{
	for (unsigned t = prompt; t <= prompt + tokens; t++) {
		for (unsigned layer = 0; layer < cache->layers; layer++) {
			cache_tensor(cache, &cache->k[layer], t);
			cache_tensor(cache, &cache->v[layer], t);
		}
		noise(1);
	}
}

static void cache_drop(struct cache *cache)
{
	for (unsigned layer = 0; layer < cache->layers; layer++) {
		device_free(cache->k[layer]);
		device_free(cache->v[layer]);
		cache->k[layer] = cache->v[layer] = 0;
	}
}

/* The longest sequence that fits has about so many tokens: all tensors, and one of them twice. */
static struct cache cache_for(unsigned tokens)
{
	struct cache cache = {
		.layers = between_whole(3, LAYERS_MAX),
		.at = PICK(dynamic_layer_update, append_kv, extend_cache),
	};
	cache.step_bytes = whole(device_room() / (2 * cache.layers + 1) / tokens, 512);
	return cache;
}

/* T4: requests of ordinary length come and go; one goes on and on. */
static void kv_grows(void)
{
	struct model model = model_of(share_of(between(0.4, 0.7)));
	model_load(&model);
	unsigned longest = (unsigned)(between(70, 120) * request.scale),
		 requests = between_whole(8, 14);
	struct cache cache = cache_for(longest);
	say("cause S4");
	say("when long");
	say_not("S1 S2a S3 S6 S8");
	for (unsigned i = 0; i < requests; i++) {
		generate(&cache, between_whole(2, longest / 8),
		         between_whole(longest / 12, longest / 3));
		cache_drop(&cache);
	}
	unsigned limit = request.value == UNKNOWN ? longest * 3 : (unsigned)request.value;
	unsigned prompt = longest / 10;
	generate(&cache, prompt, limit > prompt ? limit - prompt : 0);
	cache_drop(&cache);
}

/* T4 with only one request: no request ended, so a leak cannot be excluded, and the report must
 * state that. */
static void kv_grows_once(void)
{
	struct model model = model_of(share_of(between(0.4, 0.7)));
	model_load(&model);
	struct cache cache = cache_for((unsigned)(between(90, 200) * request.scale));
	say("cause S4");
	say_not("S1 S2a S3 S6");
	say("evidence caveat");
	unsigned prompt = between_whole(2, 20);
	unsigned limit = request.value == UNKNOWN ? 100000 : (unsigned)request.value;
	generate(&cache, prompt, limit > prompt ? limit - prompt : 0);
}

/* The hard neighbour of a leak: paged blocks of one size, many sequences at once, all grow and all
 * end in time. */
enum { SEQUENCES = 12, BLOCKS_MAX = 1024 };
struct sequence { device_ptr blocks[BLOCKS_MAX]; unsigned count, length; };

static void sequence_end(struct sequence *s)
{
	while (s->count)
		device_free(s->blocks[--s->count]);
}

static void kv_grows_paged(void)
{
	static struct sequence sequences[SEQUENCES];
	struct model model = model_of(share_of(between(0.4, 0.65)));
	model_load(&model);
	unsigned live = between_whole(4, SEQUENCES), usual = between_whole(8, 16), lengthens;
	size_t block = whole(device_room() / live / usual / 8, 512);
	site *at = PICK(append_kv, extend_cache);
	say("cause S4");
	say("when long");
	say_not("S1 S2a S3 S6 S8");
	for (unsigned turn = 0, ended = 0;; turn++) {
		struct sequence *s = &sequences[turn % live];
		/* contexts get long after a while: agents pass on their whole history */
		lengthens = ended < live * 8 ? 1 : ended - live * 8 + 1;
		if (s->count >= s->length) {
			ended += s->length != 0;
			sequence_end(s);
			s->length = (unsigned)(between(0.5, 1.5) * usual * (1 + lengthens / 8.0));
			if (s->length > BLOCKS_MAX)
				s->length = BLOCKS_MAX;
		}
		s->blocks[s->count++] = take_bytes(at, "append_kv", block);
		if (turn % live == 0)
			forward(block);
	}
}

const struct scenario kv_scenarios[] = {
	{"kv_too_large", kv_too_large, NULL, 0, NULL},
	{"kv_one_buffer", kv_one_buffer, NULL, 0, context_size},
	{"kv_leaves_no_room", kv_leaves_no_room, NULL, 0, NULL},
	{"kv_grows", kv_grows, NULL, 0, NULL},
	{"kv_grows_once", kv_grows_once, NULL, 0, NULL},
	{"kv_grows_paged", kv_grows_paged, NULL, 0, NULL},
	{NULL, NULL, NULL, 0, NULL},
};
