/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that allocate as in reported failures, at the level of the driver. Those whose name has
 * "beside" or "among" have two troubles at once, of which one ended them: without it the program
 * would have gone on, or gone on for longer than without the other.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/victims/causes/fixture.h"

static void serve_from(double share)
{
	struct model model = model_of(share_of(share));
	model_load(&model);
}

static void tenant_of_a_quarter(void) { tenant_of(between_whole(20, 30)); }
static void tenant_of_a_half(void) { tenant_of(between_whole(45, 55)); }

/* ---- one trouble ---- */

/* An adapter is loaded for each new tenant, and none is ever unloaded. */
static void adapters_kept(void)
{
	serve_from(between(0.4, 0.6));
	unsigned fits = between_whole(24, 48);
	size_t adapter = whole(device_room() / fits, 2 * MiB);
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	for (;;) {
		take_bytes(adapter_load, "adapter_load", adapter);
		for (unsigned i = between_whole(3, 6); i; i--)
			forward(around(adapter / 2));
	}
}

/* Training: weights, one forward pass, gradients, and the optimizer's two moments for each
 * parameter, which are allocated by its first step. */
static void first_optimizer_step(void)
{
	struct model model = model_of(share_of(between(0.27, 0.34)));
	say("cause S2a");
	say_not("S1 S3 S4 S5 S6 S8");
	model_load(&model);
	forward(share_of(0.03));
	for (unsigned layer = 0; layer < model.layers; layer++)
		for (int part = 0; part < 4; part++)
			take_bytes(run_step, "accumulate_grad", model.part[part]);
	for (unsigned layer = 0; layer < model.layers; layer++)
		for (int part = 0; part < 4; part++)
			for (int moment = 0; moment < 2; moment++)
				take_bytes(create_buffers, "adam_init_state", model.part[part]);
}

/* A second model is loaded beside the first one, which serves already. */
static void second_model(void)
{
	serve_from(between(0.4, 0.55));
	say("cause S2a");
	say_not("S1 S3 S4 S5 S6 S8");
	for (unsigned i = between_whole(10, 30); i; i--)
		forward(around(share_of(0.01)));
	serve_from(between(0.65, 0.8));
}

/* The KV cache took what was free after the profile; the draft model comes last. */
static void draft_model_last(void)
{
	struct model model = model_of(share_of(between(0.3, 0.5)));
	say("cause S3");
	say_not("S1 S2a S4 S5 S6 S8");
	model_load(&model);
	forward(share_of(0.02));
	size_t draft = share_of(between(0.05, 0.08)), each = (device_room() - draft / 2 - request.by_bytes) / model.layers;
	device_room();
	for (unsigned i = 0; i < model.layers; i++)
		take_bytes(allocate_kv_cache, "allocate_kv_cache", each / (64 * KiB) * (64 * KiB));
	struct model small = model_of(draft);
	model_load(&small);
}

/* ---- two troubles ---- */

static void leak_until_full(unsigned requests)
{
	size_t forgotten = whole(device_room() / requests, 64 * KiB);
	site *at = PICK(remember_session, keep_outputs, track_history);
	for (;;) {
		forward(around(forgotten));
		take_bytes(at, "keep_outputs", forgotten);
	}
}

/* The tenant makes the device smaller; the leak fills it. */
static void leak_beside_tenant(void)
{
	serve_from(between(0.3, 0.45));
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	leak_until_full((unsigned)(between(100, 200) * request.scale));
}

static void requests_at_once(unsigned count, size_t bytes)
{
	device_ptr held[64];
	for (unsigned i = 0; i < count; i++)
		held[i] = take_bytes(worker_request, "worker_request", bytes);
	noise(1);
	for (unsigned i = 0; i < count; i++)
		device_free(held[(i + count / 2) % count]);
}

/* Bursts of requests of which a leak leaves less and less room. */
static void leak_beside_bursts(void)
{
	serve_from(between(0.3, 0.45));
	unsigned turns = between_whole(90, 160);
	size_t unit = device_room() / between_whole(40, 50) / (2 * MiB) * (2 * MiB),
	       forgotten = whole(device_room() / turns, 64 * KiB);
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	for (;;) {
		requests_at_once(between_whole(2, 16), unit);
		take_bytes(track_history, "track_history", forgotten);
	}
}

/* A sequence goes on and on; the tenant was there all the time. */
static void kv_grows_beside_tenant(void)
{
	device_ptr blocks[600];
	serve_from(between(0.3, 0.45));
	unsigned longest = between_whole(250, 400);
	size_t block = whole(device_room() / longest, 4 * KiB);
	say("cause S4");
	say("when long");
	say_not("S1 S2 S3 S5 S6 S8");
	for (unsigned r = between_whole(10, 20);; r--) {
		unsigned length = r ? between_whole(longest / 10, longest / 3) : COUNT(blocks);
		for (unsigned i = 0; i < length; i++) {
			blocks[i] = take_bytes(append_kv, "append_kv", block);
			if (i % 4 == 0)
				forward(block);
		}
		for (unsigned i = 0; i < length; i++)
			device_free(blocks[i]);
	}
}

/* A leak too small to matter yet; what is missing is what the tenant has. */
static void small_leak_beside_tenant(void)
{
	serve_from(between(0.3, 0.4));
	size_t usual = whole(device_room() / 40, MiB);
	say("cause S1");
	say_not("S2 S3 S4 S5 S6 S7 S8");
	for (unsigned i = between_whole(30, 60); i; i--) {
		forward(around(usual));
		take_bytes(keep_outputs, "keep_outputs", 64 * KiB);
	}
	process_holding(device_room() - usual / 2, false);
	for (unsigned i = 0; i < 60; i++)
		forward(around(usual) + usual / 2);
}

/* Weights do not fit by far; a few holes of an earlier warm-up lie about. */
static void weights_among_holes(void)
{
	enum { HOLES = 120 };
	device_ptr small[HOLES], large[HOLES];
	say("cause S2a");
	say_not("S1 S3 S4 S5 S6 S8");
	for (int i = 0; i < HOLES; i++) {
		small[i] = take_bytes(lru_put, "lru_put", 256 * KiB);
		large[i] = take_bytes(workspace, "workspace", 768 * KiB);
	}
	for (int i = 0; i < HOLES; i++)
		device_free(large[i]);
	(void)small;
	serve_from(between(1.15, 1.6));
}

const struct scenario reported_scenarios[] = {
	{"adapters_kept", adapters_kept, NULL, 0, NULL},
	{"first_optimizer_step", first_optimizer_step, NULL, 0, NULL},
	{"second_model", second_model, NULL, 0, NULL},
	{"draft_model_last", draft_model_last, NULL, 0, NULL},
	{"leak_beside_tenant", leak_beside_tenant, tenant_of_a_quarter, 0, NULL},
	{"leak_beside_large_tenant", leak_beside_tenant, tenant_of_a_half, 0, NULL},
	{"leak_beside_bursts", leak_beside_bursts, NULL, 0, NULL},
	{"kv_grows_beside_tenant", kv_grows_beside_tenant, tenant_of_a_quarter, 0, NULL},
	{"small_leak_beside_tenant", small_leak_beside_tenant, NULL, 0, NULL},
	{"weights_among_holes", weights_among_holes, NULL, 0, NULL},
	{NULL, NULL, NULL, 0, NULL},
};
