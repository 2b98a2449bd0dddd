/* SPDX-License-Identifier: Apache-2.0 */
/* The same as in reported.c, inside PyTorch's allocator, whose segments always have some slack. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/victims/causes/torch_program.h"

/* ---- one trouble ---- */

/* Training: the loss is added up as a tensor, so that each step's graph stays. */
static void losses_kept(void)
{
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	torch_begin(0);
	torch_load(share_of(between(0.4, 0.6)));
	unsigned parts = between_whole(4, 8);
	size_t graph = device_room() / between_whole(90, 160) / parts;
	for (;;) {
		torch_step(around(share_of(0.02)));
		for (unsigned i = 0; i < parts; i++)
			tensor_take(stack_outputs, graph * (i + 1) * 2 / (parts + 1));
	}
}

/* The optimizer's moments are allocated by its first step. */
static void optimizer(void)
{
	say("cause S2a");
	say_not("S1 S3 S4 S5 S6 S8");
	torch_begin(0);
	size_t model = share_of(between(0.27, 0.34));
	torch_load(model);
	torch_step(share_of(0.05));
	for (unsigned i = 0; i < 120; i++)
		tensor_take(feature_map, model / 300 * (1 + i % 4));
	for (unsigned i = 0; i < 240; i++)
		tensor_take(optimizer_state, model / 300 * (1 + i / 2 % 4));
}

/* Somebody else comes while this process serves as ever. */
static void late_tenant(void)
{
	say("cause S1");
	say_not("S2 S3 S4 S5 S6 S7 S8");
	torch_begin(0);
	torch_load(share_of(between(0.25, 0.45)));
	size_t usual = share_of(0.04);
	for (unsigned i = between_whole(20, 50); i; i--)
		torch_step(around(usual));
	process_holding(device_room() - usual / 4, false);
	for (unsigned i = 0; i < 40; i++)
		torch_step(usual = usual * 21 / 20);
}

/* ---- two troubles ---- */

/* Outputs of all lengths are kept; each leaves a rest in its segment. */
static void leak_among_rests(void)
{
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	torch_begin(0);
	torch_load(share_of(between(0.4, 0.6)));
	size_t output = device_room() / between_whole(100, 180);
	for (;;) {
		torch_step((size_t)(between(0.3, 4) * (double)output));
		tensor_take(stack_outputs, (size_t)(between(0.4, 1.6) * (double)output));
	}
}

/* The fraction makes the device smaller; the leak fills it. */
static void leak_beside_fraction(void)
{
	double allowed = between(0.5, 0.8);
	say("cause S8");
	say("when long");
	say_not("S1 S2 S3 S4 S5 S6");
	say("refused_by S1.cap");
	torch_begin(share_of(allowed));
	torch_load(share_of(allowed * between(0.4, 0.6)));
	size_t output = share_of(allowed * 0.45) / between_whole(100, 180);
	for (;;) {
		torch_step(around(output));
		tensor_take(stack_outputs, output);
	}
}

static unsigned at_most(unsigned count)
{
	return request.value != UNKNOWN && request.value < count ? (unsigned)request.value : count;
}

static void requests_at_once(unsigned count, size_t most)
{
	tensor *held[96];
	for (unsigned i = 0; i < count; i++)
		held[i] = tensor_take(past_key_values, (size_t)(between(0.3, 1) * (double)most));
	for (unsigned i = 0; i < count; i++)
		tensor_free(held[(i + count / 2) % count]);
}

/* Requests of all lengths, more and more of them at once: their holes would not matter otherwise. */
static void bursts_among_rests(void)
{
	say("cause S5");
	say("when long");
	say_not("S1 S2 S3 S4 S6 S8");
	torch_begin(0);
	torch_load(share_of(between(0.3, 0.5)));
	unsigned fit = between_whole(10, 24);
	size_t most = (size_t)((double)device_room() / fit / 0.65);
	unsigned quiet = between_whole(30, 60), rush = quiet + 40;
	for (unsigned i = 0; i < rush; i++) {
		unsigned count = between_whole(2, fit / 2);
		if (i >= quiet)
			count = fit + (i - quiet) * fit / 10;
		requests_at_once(at_most(count < 96 ? count : 95), most);
	}
}

const struct scenario reported_torch_scenarios[] = {
	{"torch_losses_kept", losses_kept, NULL, 0, NULL},
	{"torch_optimizer", optimizer, NULL, 0, NULL},
	{"torch_late_tenant", late_tenant, NULL, 0, NULL},
	{"torch_leak_among_rests", leak_among_rests, NULL, 0, NULL},
	{"torch_leak_beside_fraction", leak_beside_fraction, NULL, 0, NULL},
	{"torch_bursts_among_rests", bursts_among_rests, NULL, 0, NULL},
	{NULL, NULL, NULL, 0, NULL},
};
