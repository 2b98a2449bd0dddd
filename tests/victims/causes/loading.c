/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Too large to load, or too large for the first or the longest prompt (S2). Another process has the
 * device (S1). The driver's own memory grows slowly (S7).
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/victims/causes/fixture.h"

/* T1: never enough for the weights. */
static void weights_too_large(void)
{
	double need = between(1.1, 2.2) * request.scale;
	struct model model = model_of(share_of(need < 1.1 ? 1.1 : need));
	say("cause S2a");
	say("when start");
	say_not("S1 S3 S4 S5 S6 S8");
	model_load(&model);
}

static void other_takes_most(void)
{
	tenant_of((unsigned)(between(55, 80) + 8 * (request.scale - 1)));
}

/* T2: the same script, a model that an empty device holds with ease, and a tenant who was there
 * first. */
static void other_tenant_at_load(void)
{
	struct model model = model_of(share_of(between(1.12, 1.5)));
	say("cause S1");
	say_not("S2 S3 S5 S6 S7 S8");
	model_load(&model);
}

/* The tenant leaves room for the weights, and not for the work. */
static void other_tenant_serving(void)
{
	struct model model = model_of(share_of(between(0.55, 0.75)));
	say("cause S1");
	say_not("S2 S3 S5 S6 S7 S8");
	model_load(&model);
	size_t room = device_room(), usual = whole(room / 40 + KiB, KiB);
	for (unsigned i = between_whole(10, 40); i; i--)
		forward(around(usual) / 2);
	/* batches are larger by day */
	for (unsigned i = 0; i < 19; i++)
		forward(usual = usual * 5 / 4);
}

/* The device was ours, until somebody else came. */
static void tenant_comes_late(void)
{
	struct model model = model_of(share_of(between(0.25, 0.45)));
	model_load(&model);
	size_t usual = share_of(0.02);
	say("cause S1");
	say_not("S2 S3 S4 S5 S6 S7 S8");
	for (unsigned i = between_whole(10, 30); i; i--)
		forward(around(usual));
	process_holding(device_room() - usual / 2, false);
	for (unsigned i = 0; i < 60; i++)
		forward(around(usual) + usual / 2);
}

/* A second worker of the same service, recorded as well: its copy of the model is what is missing
 * here. */
static void worker_beside(void)
{
	process_holding(share_of(between(0.55, 0.75)), true);
	struct model model = model_of(share_of(between(0.5, 0.7)));
	say("cause S1");
	say_not("S2 S3 S5 S6 S7 S8");
	model_load(&model);
}

static void modules_take_memory(void)
{
	char bytes[32];
	snprintf(bytes, sizeof bytes, "%uMiB",
	         (unsigned)(between(24, 64) * request.scale) / 2 * 2 + 2);
	setenv("SIMCUDA_MODULE", bytes, 1);
}

/* The neighbour of S1: what nobody allocated is this process's own: a kernel library loads a module
 * for each new shape. */
static void modules_creep(void)
{
	struct model model = model_of(share_of(between(0.6, 0.75)));
	size_t work = share_of(0.02);
	say("cause S7");
	say("when long");
	say_not("S1 S2 S4 S6 S8");
	model_load(&model);
	for (;;) {
		module_load();
		for (int i = 0; i < 4; i++)
			forward(work);
	}
}

/* Weights fit, prompts of usual length too; then one that is far longer than any before. */
static void prompt_too_long(void)
{
	struct model model = model_of(share_of(between(0.5, 0.7)));
	model_load(&model);
	size_t room = device_room(), usual = whole(room / 60, KiB),
	       wanted = whole((size_t)((double)room * between(1.15, 2.5)), KiB) - request.by_bytes;
	say("cause S2b");
	say("when long");
	say_not("S1 S2a S4 S5 S6 S8");
	for (unsigned i = between_whole(15, 60); i; i--)
		forward(around(usual));
	device_ptr scores = take_bytes(attention_forward, "attention_forward", wanted);
	device_free(scores);
}

/* The neighbour of it: scores of a prompt so long that no device of this size has room for them. */
static void prompt_over_device(void)
{
	struct model model = model_of(share_of(between(0.2, 0.7)));
	model_load(&model);
	size_t usual = whole(device_room() / 60, KiB),
	       wanted = whole(share_of(between(1.2, 6)), KiB) - request.by_bytes;
	say("cause S2b");
	say("when long");
	say_not("S1 S2a S3 S4 S5 S6 S8");
	for (unsigned i = between_whole(3, 60); i; i--)
		forward(around(usual));
	device_ptr scores = take_bytes(attention_forward, "attention_forward", wanted);
	device_free(scores);
}

/* Weights leave so little that the first forward pass fails: hidden states fit, attention fits,
 * logits do not. */
static void first_forward(void)
{
	struct model model = model_of(share_of(between(0.86, 0.94)));
	model_load(&model);
	size_t room = device_room();
	say("cause S2b");
	say_not("S1 S2a S4 S5 S6 S8");
	take_bytes(mlp_forward, "mlp_forward",
	           whole((size_t)((double)room * between(0.1, 0.25)), KiB));
	device_ptr scores = take_bytes(attention_forward, "attention_forward",
	                               whole((size_t)((double)room * between(0.1, 0.3)), KiB));
	device_free(scores);
	take_bytes(compute_logits, "compute_logits",
	           whole((size_t)((double)room * between(1.05, 1.8)), KiB) - request.by_bytes);
}

static void four_devices(void) { setenv("SIMCUDA_DEVICES", "4", 1); }

/* T18: everything was put on one device of four. */
static void one_device_of_four(void)
{
	struct model model = model_of(share_of(between(1.2, 2.5)));
	int full = (int)between_whole(0, 3);
	say("cause S2a");
	say("when start");
	say_not("S1 S3 S5 S6 S8");
	say("evidence other_devices");
	for (int device = 0; device < device_count(); device++) {
		device_use(device);
		take_bytes(workspace, "workspace", 8 * MiB);
	}
	device_use(full);
	model_load(&model);
}

const struct scenario loading_scenarios[] = {
	{"weights_too_large", weights_too_large, NULL, 0, NULL},
	{"other_tenant_at_load", other_tenant_at_load, other_takes_most, 0, NULL},
	{"other_tenant_serving", other_tenant_serving, other_takes_most, 0, NULL},
	{"tenant_comes_late", tenant_comes_late, NULL, 0, NULL},
	{"worker_beside", worker_beside, NULL, 0, NULL},
	{"modules_creep", modules_creep, modules_take_memory, 0, NULL},
	{"prompt_too_long", prompt_too_long, NULL, 0, NULL},
	{"prompt_over_device", prompt_over_device, NULL, 0, NULL},
	{"first_forward", first_forward, NULL, 0, NULL},
	{"one_device_of_four", one_device_of_four, four_devices, 0, NULL},
	{NULL, NULL, NULL, 0, NULL},
};
