/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs with nothing wrong, in shapes that look wrong. What grows is bounded, is freed in time,
 * or lives from start to end. None frees anything at its exit. A report may name no leak and no
 * cause.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/victims/causes/fixture.h"

static void start(double share)
{
	struct model model = model_of(share_of(share));
	say("cause none");
	say("clean leaks");
	say("clean incidents");
	model_load(&model);
}

/* T10: a cache that fills to its limit and turns over. */
static void cache_fills(void)
{
	device_ptr cache[96] = {0};
	start(between(0.3, 0.5));
	unsigned slots = between_whole(24, COUNT(cache)), requests = slots * between_whole(3, 6);
	size_t entry = share_of(0.3) / slots;
	site *at = PICK(lru_put, prompt_cache_insert, memoize);
	for (unsigned r = 0; r < requests; r++) {
		unsigned slot = r % slots;
		forward(around(entry));
		if (cache[slot])
			device_free(cache[slot]);
		cache[slot] = take_bytes(at, "lru_put", entry);
	}
}

/* A cache by content: new entries get rare as most are known, and none is ever dropped. */
static void cache_saturates(void)
{
	bool known[80] = {false};
	start(between(0.3, 0.5));
	unsigned keys = between_whole(30, COUNT(known)), requests = keys * 8;
	size_t entry = share_of(0.3) / keys;
	site *at = PICK(memoize, prompt_cache_insert);
	for (unsigned r = 0; r < requests; r++) {
		unsigned key = between_whole(0, keys - 1);
		forward(around(entry));
		if (!known[key])
			known[key] = take_bytes(at, "memoize", entry);
	}
}

/* Kernels are compiled for new shapes during the first requests, each with a buffer; then all
 * shapes are known. */
static void warm_up(void)
{
	start(between(0.4, 0.6));
	unsigned requests = between_whole(100, 200), warm = requests / between_whole(4, 6);
	for (unsigned r = 0; r < requests; r++) {
		if (r < warm)
			take_bytes(jit_buffer, "jit_buffer", around(share_of(0.002)));
		forward(around(share_of(0.01)));
	}
}

/* Each request grows a cache and gives all of it back. */
static void sawtooth(void)
{
	device_ptr blocks[64];
	start(between(0.4, 0.6));
	site *at = PICK(append_kv, extend_cache);
	for (unsigned r = between_whole(15, 40); r; r--) {
		unsigned length = between_whole(10, COUNT(blocks));
		for (unsigned i = 0; i < length; i++) {
			blocks[i] = take_bytes(at, "append_kv", share_of(0.004));
			noise(1);
		}
		for (unsigned i = 0; i < length; i++)
			device_free(blocks[i]);
	}
}

/* T19: weights, workspaces and results, all live at the end. */
static void frees_nothing_at_exit(void)
{
	start(between(0.5, 0.8));
	for (unsigned i = between_whole(3, 30); i; i--)
		take_bytes(workspace, "workspace", around(share_of(0.002)));
	for (unsigned r = between_whole(20, 100); r; r--)
		forward(around(share_of(0.01)));
}

static void *pool_thread(void *bytes)
{
	device_use(0);
	/* until the thread's end, and that is the program's */
	device_ptr own = workspace((size_t)(uintptr_t)bytes);
	for (int i = 0; own && i < 20; i++) {
		device_ptr ptr = worker_request((size_t)(uintptr_t)bytes / 4);
		pause_us(100);
		if (ptr)
			device_free(ptr);
	}
	return NULL;
}

/* Threads begin one after another as the load comes, each with a workspace of its own; then there
 * are enough. */
static void thread_pool(void)
{
	pthread_t threads[16];
	start(between(0.3, 0.5));
	unsigned count = between_whole(4, COUNT(threads));
	for (unsigned i = 0; i < count; i++) {
		pthread_create(&threads[i], NULL, pool_thread,
		               (void *)(uintptr_t)whole(share_of(0.01), MiB));
		for (unsigned r = between_whole(2, 5); r; r--)
			forward(around(share_of(0.01)));
	}
	for (unsigned r = between_whole(20, 60); r; r--)
		forward(around(share_of(0.01)));
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* Adapters are loaded and unloaded as tenants come and go; their number stays. */
static void adapters_swap(void)
{
	device_ptr adapters[12] = {0};
	start(between(0.4, 0.6));
	unsigned live = between_whole(3, COUNT(adapters));
	for (unsigned r = between_whole(60, 150); r; r--) {
		unsigned i = between_whole(0, live - 1);
		if (adapters[i])
			device_free(adapters[i]);
		adapters[i] = take_bytes(adapter_load, "adapter_load", around(share_of(0.01)));
		forward(around(share_of(0.01)));
	}
}

/* Results are kept and written out now and then: the floor rises, and falls to where it began. */
static void batches_flushed(void)
{
	device_ptr kept[24];
	start(between(0.3, 0.5));
	unsigned batch = between_whole(8, COUNT(kept));
	for (unsigned rounds = between_whole(6, 14); rounds; rounds--) {
		for (unsigned i = 0; i < batch; i++) {
			forward(around(share_of(0.01)));
			kept[i] = take_bytes(keep_outputs, "keep_outputs", share_of(0.01));
		}
		for (unsigned i = 0; i < batch; i++)
			device_free(kept[i]);
	}
}

/* Load rises to a peak and falls again; sessions last for many requests. */
static void day_and_night(void)
{
	device_ptr sessions[40] = {0};
	start(between(0.3, 0.5));
	unsigned most = between_whole(12, COUNT(sessions)), hours = between_whole(60, 120),
		 live = 0;
	for (unsigned hour = 0; hour <= hours; hour++) {
		unsigned wanted = hour * 2 <= hours ? most * hour * 2 / hours
		                                    : most * 2 * (hours - hour) / hours;
		for (; live < wanted; live++)
			sessions[live] = take_bytes(remember_session, "remember_session",
			                            around(share_of(0.008)));
		while (live > wanted)
			device_free(sessions[--live]);
		forward(around(share_of(0.01)));
	}
}

/* A scratch pool that grows to the largest request it met, and is never released. */
static void high_water(void)
{
	start(between(0.3, 0.5));
	size_t held = 0;
	for (unsigned r = between_whole(80, 200); r; r--) {
		size_t wanted = (size_t)(between(0.1, 1) * (double)share_of(0.2));
		if (wanted > held) {
			take_bytes(legacy_pool_alloc, "ggml_cuda_pool_vmm::alloc",
			           whole(wanted - held, 2 * MiB));
			held += whole(wanted - held, 2 * MiB);
		}
		forward(around(share_of(0.01)));
	}
}

/* Graphs are captured for each batch size at start, each with memory of its own. */
static void graphs_captured(void)
{
	start(between(0.4, 0.6));
	device_ptr stream = stream_new();
	for (unsigned i = between_whole(4, 20); i; i--) {
		graph_capture_begin(stream);
		take_bytes(capture_graph, "capture_graph", around(share_of(0.004)));
		graph_capture_end(stream);
	}
	for (unsigned r = between_whole(40, 100); r; r--)
		forward(around(share_of(0.01)));
}

/* Everything through an asynchronous pool that keeps what it has. */
static void pool_churns(void)
{
	device_ptr stream = stream_new(), pool = pool_new(), live[16] = {0};
	start(between(0.3, 0.5));
	for (unsigned r = between_whole(150, 400); r; r--) {
		unsigned i = between_whole(0, COUNT(live) - 1);
		if (live[i])
			pool_free(live[i], stream);
		if (!(live[i] = pool_malloc(pool, stream, around(share_of(0.005)))))
			give_up("cudaMallocFromPoolAsync", 0);
		if (r % 16 == 0)
			device_synchronize();
	}
}

/* Host memory: prompts come and go, a conversation is cut to its last messages. */
static void trimmed_history(void)
{
	enum { KEPT = 16 };
	void *messages[KEPT] = {0};
	start(between(0.3, 0.5));
	for (unsigned i = 0, turns = between_whole(80, 200); i < turns; i++) {
		size_t bytes = around(200 * KiB) + 64 * KiB;
		void *prompt = malloc(bytes * 2);
		forward(share_of(0.003));
		free(messages[i % KEPT]);
		messages[i % KEPT] = malloc(bytes);
		free(prompt);
	}
}

/* One long conversation at the end of many short ones: it is longer, it is within its bounds, and
 * it is done when the program is. */
static void long_last_session(void)
{
	device_ptr blocks[160];
	start(between(0.4, 0.5));
	for (unsigned r = between_whole(12, 30); r; r--) {
		unsigned length = r == 1 ? COUNT(blocks) : between_whole(10, 40);
		for (unsigned i = 0; i < length; i++) {
			blocks[i] = take_bytes(append_kv, "append_kv", share_of(0.002));
			forward(share_of(0.002));
		}
		for (unsigned i = 0; r > 1 && i < length; i++)
			device_free(blocks[i]);
	}
}

const struct scenario healthy_scenarios[] = {
	{"healthy_cache_fills", cache_fills, NULL, 0, NULL},
	{"healthy_cache_saturates", cache_saturates, NULL, 0, NULL},
	{"healthy_warm_up", warm_up, NULL, 0, NULL},
	{"healthy_sawtooth", sawtooth, NULL, 0, NULL},
	{"healthy_frees_nothing_at_exit", frees_nothing_at_exit, NULL, 0, NULL},
	{"healthy_thread_pool", thread_pool, NULL, 0, NULL},
	{"healthy_adapters_swap", adapters_swap, NULL, 0, NULL},
	{"healthy_batches_flushed", batches_flushed, NULL, 0, NULL},
	{"healthy_day_and_night", day_and_night, NULL, 0, NULL},
	{"healthy_high_water", high_water, NULL, 0, NULL},
	{"healthy_graphs_captured", graphs_captured, NULL, 0, NULL},
	{"healthy_pool_churns", pool_churns, NULL, 0, NULL},
	{"healthy_trimmed_history", trimmed_history, NULL, 0, NULL},
	{"healthy_long_last_session", long_last_session, NULL, 0, NULL},
	{NULL, NULL, NULL, 0, NULL},
};
