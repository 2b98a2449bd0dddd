/* SPDX-License-Identifier: Apache-2.0 */
/* As unseen.c, inside PyTorch's allocator. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/victims/causes/torch_program.h"

static void tenant_of_a_quarter(void) { tenant_of(between_whole(20, 30)); }

static void start(double share)
{
	torch_begin(0);
	torch_load(share_of(share));
}

/* A second model is loaded after some work of the first. */
static void second_model(void)
{
	say("cause S2a");
	say_not("S1 S3 S4 S5 S6 S8");
	start(between(0.4, 0.55));
	for (unsigned i = between_whole(10, 30); i; i--)
		torch_step(around(share_of(0.02)));
	torch_load(share_of(between(0.65, 0.8)));
}

/* Embeddings of each document stay on the device. */
static void embeddings_kept(void)
{
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	start(between(0.3, 0.5));
	size_t batch = device_room() / between_whole(150, 300);
	for (;;) {
		for (int layer = 0; layer < 6; layer++)
			torch_step(around(batch * 2));
		tensor_take(stack_outputs, (size_t)(between(0.8, 1.2) * (double)batch));
	}
}

/* ---- two troubles ---- */

/* The tenant makes the device smaller; the leak fills it. */
static void leak_beside_tenant(void)
{
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	start(between(0.3, 0.5));
	size_t output = device_room() / between_whole(110, 180);
	for (;;) {
		torch_step(around(output * 2));
		tensor_take(stack_outputs, output);
	}
}

/* One sequence goes on and on, on a device that is partly somebody else's. */
static void kv_beside_tenant(void)
{
	tensor *cache[8] = {0};
	say("cause S4");
	say_not("S1 S2a S3 S5 S8");
	start(between(0.3, 0.45));
	unsigned longest = between_whole(80, 140);
	size_t token = whole(device_room() / 9 / longest, 512);
	unsigned requests = between_whole(8, 12);
	for (unsigned i = 0; i <= requests; i++) {
		unsigned tokens = i < requests ? between_whole(longest / 12, longest / 3)
		                               : longest * 3;
		unsigned prompt = between_whole(2, longest / 8);
		if (prompt + tokens > request.value)
			tokens = (unsigned)request.value - prompt;
		cache_generate(cache, 4, token, prompt, tokens);
		cache_finish(cache, 4);
	}
}

/* A small leak; what is missing lies free, in a segment that a few tensors keep. */
static void small_leak_among_pins(void)
{
	say("cause S6.F1");
	say_not("S1 S2 S3 S4 S5 S8");
	start(between(0.4, 0.55));
	size_t large = device_room() / 10 * 9, middling = share_of(0.002) + 16 * MiB;
	tensor_free(tensor_take(feature_map, large));
	for (unsigned i = between_whole(3, 6); i; i--) {
		tensor_take(prefix_cache_put, around(middling));
		torch_step(around(middling));
	}
	for (unsigned i = between_whole(20, 40); i; i--) {
		torch_step(around(large / 20));
		tensor_take(stack_outputs, 16 * KiB);
	}
	tensor_free(tensor_take(feature_map, large));
}

/* Weights do not fit by far, among the rests of a warm-up. */
static void weights_among_rests(void)
{
	tensor *small[40], *large[40];
	say("cause S2a");
	say_not("S1 S3 S4 S5 S6 S8");
	torch_begin(0);
	for (unsigned i = 0; i < COUNT(small); i++) {
		large[i] = tensor_take(feature_map, 15 * MiB);
		small[i] = tensor_take(prefix_cache_put, 4 * MiB);
	}
	for (unsigned i = 0; i < COUNT(small); i++)
		tensor_free(large[i]);
	(void)small;
	torch_load(share_of(between(1.2, 1.6)));
}

const struct scenario unseen_torch_scenarios[] = {
	{"torch_second_model", second_model, NULL, 0, NULL},
	{"torch_embeddings_kept", embeddings_kept, NULL, 0, NULL},
	{"torch_leak_beside_tenant", leak_beside_tenant, tenant_of_a_quarter, 0, NULL},
	{"torch_kv_beside_tenant", kv_beside_tenant, tenant_of_a_quarter, 0, NULL},
	{"torch_small_leak_among_pins", small_leak_among_pins, NULL, 0, NULL},
	{"torch_weights_among_rests", weights_among_rests, NULL, 0, NULL},
	{NULL, NULL, NULL, 0, NULL},
};
