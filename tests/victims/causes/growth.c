/* SPDX-License-Identifier: Apache-2.0 */
/* Leaks on the device (S8), and leaks next to something else. */
#include <stdlib.h>

#include "tests/victims/causes/fixture.h"

static site *leak_site(void) { return PICK(remember_session, keep_outputs, track_history); }

static void server_start(double share)
{
	struct model model = model_of(share_of(share));
	model_load(&model);
}

/* T9: a block of one size for each request, never freed, among work that is; to the end of the
 * device. */
static void leak_per_request(void)
{
	server_start(between(0.4, 0.6));
	unsigned requests = (unsigned)(between(110, 200) * request.scale);
	size_t forgotten = device_room() / (requests + 4) / (2 * MiB) * (2 * MiB) + 2 * MiB,
	       work = forgotten * between_whole(1, 3);
	site *at = leak_site();
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	say("per_request %zu", forgotten);
	for (;;) {
		forward(around(work));
		take_bytes(at, "remember_session", forgotten);
	}
}

/* The same, and the program ends before the device does: no failure, and a leak all the same. */
static void leak_without_failure(void)
{
	server_start(between(0.2, 0.4));
	unsigned requests = between_whole(60, 200);
	size_t forgotten = around(share_of(0.2) / requests), work = share_of(0.01);
	site *at = leak_site();
	say("cause S8");
	say("when long");
	say_not("S2 S4 S5 S6");
	say("per_request %zu", forgotten);
	for (unsigned i = 0; i < requests; i++) {
		forward(around(work));
		take_bytes(at, "remember_session", forgotten);
	}
}

/* Generated sequences: the cache grows step by step and is freed, except for some sequences
 * whose owner is kept. */
static void leak_of_kept_sequences(void)
{
	device_ptr blocks[24];
	server_start(between(0.3, 0.5));
	unsigned every = between_whole(2, 4),
		 requests = (unsigned)(between(60, 100) * request.scale);
	size_t block = device_room() / (requests / every * 14) / (64 * KiB) * (64 * KiB);
	site *at = PICK(append_kv, extend_cache);
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S5 S6");
	for (unsigned r = 0;; r++) {
		unsigned length = between_whole(8, 20);
		for (unsigned i = 0; i < length; i++) {
			blocks[i] = take_bytes(at, "append_kv", block);
			forward(block);
		}
		for (unsigned i = 0; r % every && i < length; i++)
			device_free(blocks[i]);
	}
}

/* A bounded cache fills and turns over, and next to it something small is forgotten. */
static void leak_beside_cache(void)
{
	device_ptr cache[64] = {0};
	server_start(between(0.3, 0.5));
	unsigned slots = between_whole(16, COUNT(cache));
	size_t entry = share_of(0.15) / slots,
	       forgotten = (device_room() - entry * slots) /
	                   (unsigned)(between(150, 220) * request.scale);
	site *keep = PICK(lru_put, prompt_cache_insert, memoize), *at = leak_site();
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	for (unsigned r = 0;; r++) {
		unsigned slot = r < slots * 2 ? r % slots : between_whole(0, slots - 1);
		if (cache[slot])
			device_free(cache[slot]);
		cache[slot] = take_bytes(keep, "lru_put", entry);
		forward(entry);
		take_bytes(at, "remember_session", forgotten);
	}
}

/* An autograd graph is kept where gradients are not needed: activations of the same stack are freed
 * in most steps, and not in some. */
static void leak_of_activations(void)
{
	server_start(between(0.4, 0.6));
	unsigned steps = (unsigned)(between(200, 300) * request.scale), every = between_whole(2, 3);
	size_t block = device_room() / (steps / every) / (64 * KiB) * (64 * KiB);
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S5 S6");
	for (unsigned i = 0;; i++) {
		device_ptr graph = take_bytes(mlp_forward, "mlp_forward", block);
		forward(block / 2 * between_whole(1, 3));
		if (i % every)
			device_free(graph);
	}
}

/* Each request keeps the whole state again: bytes grow with the square of the turns. */
static void leak_of_snapshots(void)
{
	server_start(between(0.3, 0.5));
	unsigned turns = (unsigned)(between(60, 100) * request.scale);
	size_t step = device_room() * 2 / turns / turns / KiB * KiB;
	site *at = leak_site();
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S5 S6");
	for (unsigned turn = 1;; turn++) {
		forward(share_of(0.01));
		take_bytes(at, "keep_outputs", step * turn);
	}
}

const struct scenario growth_scenarios[] = {
	{"leak_per_request", leak_per_request, NULL, 0, NULL},
	{"leak_without_failure", leak_without_failure, NULL, 0, NULL},
	{"leak_of_kept_sequences", leak_of_kept_sequences, NULL, 0, NULL},
	{"leak_beside_cache", leak_beside_cache, NULL, 0, NULL},
	{"leak_of_activations", leak_of_activations, NULL, 0, NULL},
	{"leak_of_snapshots", leak_of_snapshots, NULL, 0, NULL},
	{NULL, NULL, NULL, 0, NULL},
};
