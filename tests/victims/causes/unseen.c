/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More programs as in reported failures, with and without a second trouble. They were written after
 * the rules had been set on reported.c, so that they show what the rules are worth elsewhere.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/victims/causes/fixture.h"

static void serve_from(double share)
{
	struct model model = model_of(share_of(share));
	model_load(&model);
}

static void tenant_of_a_third(void) { tenant_of(between_whole(28, 38)); }
static void small_tenant(void) { tenant_of(12); }

/* ---- one trouble ---- */

/* Outputs of all sizes are kept. */
static void outputs_of_all_sizes(void)
{
	serve_from(between(0.4, 0.6));
	size_t usual = device_room() / between_whole(80, 160);
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	for (;;) {
		forward((size_t)(between(0.5, 3) * (double)usual));
		take_bytes(keep_outputs, "keep_outputs",
		           (size_t)(between(0.3, 1.7) * (double)usual));
	}
}

/* Only requests with an error leave something behind: one in five. */
static void leak_now_and_then(void)
{
	serve_from(between(0.4, 0.6));
	size_t lost = device_room() / between_whole(40, 70);
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	for (;;) {
		for (unsigned i = between_whole(3, 7); i; i--)
			forward(around(lost));
		take_bytes(remember_session, "remember_session", lost);
	}
}

/* The same weights are loaded again for each of several workers of one process. */
static void model_for_each_worker(void)
{
	struct model model = model_of(share_of(between(0.24, 0.32)));
	say("cause S2a");
	say("when start");
	say_not("S1 S3 S4 S6 S8");
	for (int worker = 0; worker < 8; worker++)
		model_load(&model);
}

/* Graphs are captured for more batch sizes than there is room for, behind the cache. */
static void graphs_after_cache(void)
{
	struct model model = model_of(share_of(between(0.35, 0.55)));
	say("cause S3");
	say_not("S1 S2a S4 S5 S6 S8");
	model_load(&model);
	forward(share_of(0.02));
	size_t graph = share_of(0.006), each = (device_room() - graph * 8 - request.by_bytes) / model.layers;
	device_room();
	for (unsigned i = 0; i < model.layers; i++)
		take_bytes(allocate_kv_cache, "allocate_kv_cache",
		           each / (2 * MiB) * (2 * MiB));
	device_ptr stream = stream_new();
	for (unsigned i = 0; i < 40; i++) {
		graph_capture_begin(stream);
		take_bytes(capture_graph, "capture_graph", around(graph));
		graph_capture_end(stream);
	}
}

/* ---- two troubles ---- */

/* The cache has two fifths of the device from the start, and a leak has the rest. */
static void leak_beside_kv_cache(void)
{
	struct model model = model_of(share_of(between(0.2, 0.35)));
	model_load(&model);
	forward(share_of(0.02));
	device_room();
	for (unsigned i = 0; i < model.layers; i++)
		take_bytes(allocate_kv_cache, "allocate_kv_cache",
		           share_of(0.4) / model.layers / (64 * KiB) * (64 * KiB));
	size_t lost = device_room() / between_whole(90, 180);
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	for (;;) {
		forward(around(lost));
		take_bytes(track_history, "track_history", lost);
	}
}

/* Small blocks that live on hold pages open; what fills the device is a leak. */
static void leak_among_holes(void)
{
	enum { HOLES = 200 };
	device_ptr large[HOLES];
	serve_from(between(0.4, 0.6));
	for (int i = 0; i < HOLES; i++) {
		take_bytes(lru_put, "lru_put", 256 * KiB);
		large[i] = take_bytes(workspace, "workspace", 768 * KiB);
	}
	for (int i = 0; i < HOLES; i++)
		device_free(large[i]);
	size_t lost = whole(device_room() / between_whole(90, 180), 2 * MiB);
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	for (;;) {
		forward(2 * MiB);
		take_bytes(keep_outputs, "keep_outputs", lost);
	}
}

/* More requests at once than ever, on a device of which a third is somebody else's. */
static void bursts_beside_tenant(void)
{
	device_ptr held[64];
	serve_from(between(0.2, 0.3));
	unsigned fit = between_whole(6, 10), quiet = between_whole(30, 60);
	size_t unit = device_room() / fit / (2 * MiB) * (2 * MiB);
	say("cause S5");
	say_not("S1 S2 S3 S4 S6 S8");
	for (unsigned turn = 0; turn < quiet + 6; turn++) {
		unsigned count = turn < quiet ? between_whole(1, 3) : 48;
		if (request.value < count)
			count = (unsigned)request.value;
		for (unsigned i = 0; i < count; i++)
			held[i] = take_bytes(worker_request, "worker_request", unit);
		noise(1);
		for (unsigned i = 0; i < count; i++)
			device_free(held[(i + count / 2) % count]);
	}
}

/* A prompt that an empty device would not hold either. */
static void long_prompt_beside_tenant(void)
{
	serve_from(between(0.3, 0.4));
	size_t room = device_room();
	say("cause S2b");
	say_not("S1 S2a S3 S4 S5 S6 S8");
	for (unsigned i = between_whole(20, 50); i; i--)
		forward(around(room / 60));
	take_bytes(attention_forward, "attention_forward", device_total * 2 - request.by_bytes);
}

/* Half of what a prompt lacks has leaked, at most; the prompt is ten times larger than any. */
static void long_prompt_beside_small_leak(void)
{
	serve_from(between(0.5, 0.6));
	size_t room = device_room();
	say("cause S2b");
	say_not("S1 S2a S3 S4 S5 S6 S8");
	for (unsigned i = between_whole(40, 60); i; i--) {
		forward(around(room / 80));
		take_bytes(keep_outputs, "keep_outputs", 512 * KiB);
	}
	take_bytes(attention_forward, "attention_forward",
	           room + room / 2 - request.by_bytes);
}

/* Weights that are too large for the device, beside a tenant who has an eighth of it. */
static void weights_beside_small_tenant(void)
{
	say("cause S2a");
	say_not("S1 S3 S4 S5 S6 S8");
	serve_from(between(1.3, 1.6));
}

const struct scenario unseen_scenarios[] = {
	{"outputs_of_all_sizes", outputs_of_all_sizes, NULL, 0, NULL},
	{"leak_now_and_then", leak_now_and_then, NULL, 0, NULL},
	{"model_for_each_worker", model_for_each_worker, NULL, 0, NULL},
	{"graphs_after_cache", graphs_after_cache, NULL, 0, NULL},
	{"leak_beside_kv_cache", leak_beside_kv_cache, NULL, 0, NULL},
	{"leak_among_holes", leak_among_holes, NULL, 0, NULL},
	{"bursts_beside_tenant", bursts_beside_tenant, tenant_of_a_third, 0, NULL},
	{"long_prompt_beside_tenant", long_prompt_beside_tenant, tenant_of_a_third, 0, NULL},
	{"long_prompt_beside_small_leak", long_prompt_beside_small_leak, NULL, 0, NULL},
	{"weights_beside_small_tenant", weights_beside_small_tenant, small_tenant, 0, NULL},
	{NULL, NULL, NULL, 0, NULL},
};
