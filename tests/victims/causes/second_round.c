/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs whose cause is found by arithmetic only: several things are unusual at once, and the
 * question is without which of them the program would have gone on. They follow reports of which a
 * person's verdict is known, and none of them was looked at when the rules were written.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/victims/causes/fixture.h"

static struct model serve_from(double share)
{
	struct model model = model_of(share_of(share));
	model_load(&model);
	return model;
}

static void second_engine(void) { tenant_of(between_whole(24, 30)); }
static void tenant_of_a_tenth(void) { tenant_of(between_whole(8, 12)); }

/* The engine takes its share of the whole device, as if it were alone. */
static void share_of_whole_device(void)
{
	size_t whole_device = strtoull(getenv("SIMCUDA_TOTAL"), NULL, 10) * GiB;
	struct model model = serve_from(between(0.2, 0.35));
	say("cause S1");
	say_not("S2 S3 S4 S5 S6 S8");
	forward(share_of(0.02));
	device_room();
	size_t cache = (size_t)((double)whole_device * between(0.82, 0.88)) - model.bytes;
	for (unsigned i = 0; i < model.layers; i++)
		take_bytes(allocate_kv_cache, "allocate_kv_cache",
		           cache / model.layers / (2 * MiB) * (2 * MiB));
	for (unsigned i = 0; i < 30; i++)
		forward(around(share_of(0.01)));
}

/* A buffer for each new size, each a step larger, and none is freed. */
static void buffer_for_each_size(void)
{
	serve_from(between(0.4, 0.6));
	unsigned sizes = between_whole(40, 70);
	size_t step = device_room() / sizes / sizes * 2 / (4 * KiB) * (4 * KiB);
	site *at = PICK(jit_buffer, capture_graph, workspace);
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	for (unsigned size = 1;; size++) {
		for (unsigned i = between_whole(2, 5); i; i--)
			forward(around(share_of(0.005)));
		take_bytes(at, "new_size", step * size);
	}
}

/* The loader asks for all layers in one buffer, which is more than the device has. */
static void layers_in_one_buffer(void)
{
	say("cause S2a");
	say("when start");
	say_not("S1 S3 S4 S5 S6 S8");
	noise(4);
	device_ptr layers = take_bytes(PICK(llama_load_tensors, load_tensors), "load",
	                               whole(share_of(between(1.1, 1.9)), MiB) - request.by_bytes);
	device_free(layers);
}

/* The cache was sized before the draft model came, which needs more than what it left. */
static void draft_model_after_cache(void)
{
	struct model model = serve_from(between(0.3, 0.45));
	say("cause S3");
	say_not("S1 S2 S4 S5 S6 S8");
	forward(share_of(0.02));
	size_t draft = share_of(between(0.1, 0.16)),
	       cache = device_room() - draft / 4 - request.by_bytes;
	if (chance(0.5))
		take_bytes(llama_kv_cache, "llama_kv_cache", cache);
	else
		for (unsigned i = 0; i < model.layers; i++)
			take_bytes(allocate_kv_cache, "allocate_kv_cache",
			           cache / model.layers / (64 * KiB) * (64 * KiB));
	struct model small = model_of(draft);
	model_load(&small);
}

static void requests_at_once(unsigned count, size_t bytes)
{
	device_ptr held[96];
	for (unsigned i = 0; i < count; i++)
		held[i] = take_bytes(worker_request, "worker_request", bytes);
	noise(1);
	for (unsigned i = 0; i < count; i++)
		device_free(held[(i + count / 2) % count]);
}

/* Without the tenant one or two more requests would have fitted; there were twice as many. */
static void crowd_beside_small_tenant(void)
{
	serve_from(between(0.25, 0.4));
	unsigned fit = between_whole(10, 20), quiet = between_whole(30, 60), most = fit * 2;
	size_t unit = device_room() / fit / (2 * MiB) * (2 * MiB);
	say("cause S5");
	say("when load");
	say_not("S1 S2 S3 S4 S6 S8");
	if (request.value < most)
		most = (unsigned)request.value;
	for (unsigned turn = 0; turn < quiet + 6; turn++)
		requests_at_once(turn < quiet ? between_whole(1, fit / 3) : most, unit);
}

/* All prompts of one batch are prefilled in one burst; a prompt alone was served before. */
static void batch_in_one_burst(void)
{
	enum { PROMPTS = 8 };
	device_ptr held[PROMPTS * 64];
	struct model model = serve_from(between(0.35, 0.55));
	unsigned prompts = PROMPTS, used = 0;
	site *at = PICK(worker_request, run_step);
	size_t each = device_room() / between_whole(5, 6) / model.layers / (64 * KiB) * (64 * KiB);
	say("cause S5");
	say_not("S1 S2 S3 S4 S6 S8");
	for (unsigned turn = between_whole(1, 3); turn; turn--) {
		for (used = 0; used < model.layers; used++)
			held[used] = take_bytes(at, "prompt", each);
		forward(each);
		while (used)
			device_free(held[--used]);
	}
	if (request.value < prompts)
		prompts = (unsigned)request.value;
	for (used = 0; used < prompts * model.layers; used++)
		held[used] = take_bytes(at, "prompt", each);
	while (used)
		device_free(held[--used]);
}

/* An arena that doubles asks for far more than is needed, comes down to the need, and that is
 * refused, too: another arena took the rest, and most of it for nothing. */
static void arena_comes_down_to_need(void)
{
	size_t extent = share_of(0.02);
	struct model model = serve_from(between(0.45, 0.6));
	(void)model;
	size_t need = share_of(0.015);
	say("cause S2");
	say_not("S1 S3 S4 S5 S8");
	for (;; extent *= 2) {
		size_t asked = extent;
		while (!shrinking_arena_extend(asked)) {
			if (asked == need)
				give_up("shrinking_arena_extend", need);
			asked = asked * 9 / 10 / 256 * 256;
			if (asked < need)
				asked = need;
		}
	}
}

const struct scenario second_round_scenarios[] = {
	{"share_of_whole_device", share_of_whole_device, second_engine, 0, NULL},
	{"buffer_for_each_size", buffer_for_each_size, NULL, 0, NULL},
	{"layers_in_one_buffer", layers_in_one_buffer, NULL, 0, NULL},
	{"draft_model_after_cache", draft_model_after_cache, NULL, 0, NULL},
	{"crowd_beside_small_tenant", crowd_beside_small_tenant, tenant_of_a_tenth, 0, NULL},
	{"batch_in_one_burst", batch_in_one_burst, NULL, 0, NULL},
	{"arena_comes_down_to_need", arena_comes_down_to_need, NULL, 0, NULL},
	{NULL, NULL, NULL, 0, NULL},
};
