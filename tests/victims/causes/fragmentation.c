/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free memory that a request cannot use (S6), at the level of the driver: 2 MiB pages, pools, a
 * pool of buffers in the program. Also its neighbours, where packing would not have helped. torch.c
 * has the same inside a framework's allocator.
 */
#include <stdlib.h>

#include "tests/victims/causes/fixture.h"

/* Fills what is free with small blocks, four to a page, and frees all but one of each page. Returns
 * the pages. */
static size_t pin_pages(size_t bytes)
{
	enum { SLOT = 512 };
	size_t pages = bytes / (2 * MiB), block = 512 * KiB;
	device_ptr *blocks = calloc(pages * 4, sizeof *blocks);
	/* apart: those that stay, then the others; else as they come */
	for (int round = request.apart ? 0 : 2; round < 3; round++)
		for (size_t i = 0; i < pages * 4; i++)
			if (round == 2 ? !blocks[i] : round == 0 && i % 4 == 1)
				blocks[i] = take_bytes(lru_put, "lru_put", block - i % 3 * SLOT);
	for (size_t i = 0; i < pages * 4; i++)
		if (i % 4 != 1)
			device_free(blocks[i]);
	free(blocks);
	return pages;
}

/* Small blocks that live on, one in each page; the request would fit into what lies between them.
 */
static void pages_pinned(void)
{
	struct model model = model_of(device_total - whole(around(1500 * MiB), 2 * MiB));
	model_load(&model);
	noise(12);
	size_t room = device_room(), pages = pin_pages(room / 8 * 7), left = room - pages * 2 * MiB,
	       hole = pages * 3 * 512 * KiB;
	say("cause S6");
	say_not("S1 S2 S3 S4 S5 S8");
	say("pinned_by lru_put");
	forward(left / 4);
	take_bytes(run_step, "run_step",
	           left + whole((size_t)((double)hole * between(0.35, 0.6)), MiB));
}

/* The neighbour: what lies in the holes is less than what is missing. A share of the blame in
 * percent, and not the cause. */
static void pages_pinned_too_few(void)
{
	struct model model = model_of(device_total - whole(around(1500 * MiB), 2 * MiB));
	model_load(&model);
	noise(12);
	size_t room = device_room(), pages = pin_pages(room / 16), left = device_room(),
	       hole = pages * 3 * 512 * KiB;
	say("cause S2b");
	say_not("S1 S3 S4 S6 S8");
	say("evidence percent");
	for (unsigned i = between_whole(8, 20); i; i--)
		forward(around(left / 32));
	take_bytes(attention_forward, "attention_forward",
	           left + whole((size_t)((double)hole * between(2, 5)), MiB) - request.by_bytes);
}

/* Blocks of many sizes in an asynchronous pool that keeps what is freed; survivors lie everywhere.
 */
static void pool_fragmented(void)
{
	enum { BLOCKS = 400 };
	device_ptr blocks[BLOCKS], stream = stream_new(), pool = pool_new();
	size_t held = 0, left;
	unsigned count = 0;
	struct model model = model_of(share_of(between(0.4, 0.6)));
	model_load(&model);
	size_t unit = device_room() / 300;
	while (count < BLOCKS && device_room() > unit * 4) {
		size_t bytes = around(unit);
		blocks[count] = pool_malloc(pool, stream, bytes);
		if (!blocks[count++])
			give_up("cudaMallocFromPoolAsync", bytes);
		held += bytes;
	}
	for (unsigned i = 0; i < count; i++)
		if (i % 3)
			pool_free(blocks[i], stream);
	device_synchronize();
	left = device_room();
	say("cause S6");
	say_not("S1 S2 S3 S4 S5 S8");
	if (!pool_malloc(pool, stream, left + held / 4))
		give_up("cudaMallocFromPoolAsync", left + held / 4);
}

/* F3: another pool keeps what was freed in it; this one may not have it. Nothing is fragmented: it
 * is stranded. */
static void stranded_in_pool(void)
{
	device_ptr block, stream = stream_new(), stranded = pool_new(), own = pool_new();
	struct model model = model_of(share_of(between(0.4, 0.6)));
	model_load(&model);
	size_t most = share_of(between(0.2, 0.3)), left;
	if (!(block = pool_malloc(stranded, stream, most)))
		give_up("cudaMallocFromPoolAsync", most);
	/* what keeps this pool from being trimmed to nothing */
	if (!pool_malloc(stranded, stream, 4 * MiB))
		give_up("cudaMallocFromPoolAsync", 4 * MiB);
	pool_free(block, stream);
	device_synchronize();
	if (!pool_malloc(own, stream, share_of(0.05)))
		give_up("cudaMallocFromPoolAsync", share_of(0.05));
	left = device_room();
	say("cause S6.F3");
	say_not("S1 S2 S3 S4 S5 S6.F1 S8");
	if (!pool_malloc(own, stream, left + most / 2))
		give_up("cudaMallocFromPoolAsync", left + most / 2);
}

/*
 * T7: ggml's pool of buffers as it was: a freed buffer is kept for the next request that it can
 * serve; each request is one twentieth above the last, so none ever does.
 */
static void size_ladder(void)
{
	enum { SLOTS = 256 };
	device_ptr slots[SLOTS];
	size_t kept[SLOTS];
	unsigned used = 0;
	struct model model = model_of(share_of(between(0.3, 0.6)));
	model_load(&model);
	double bytes = (double)device_room() / between(3000, 6000);
	say("cause S6.F2");
	say_not("S1 S2 S3 S5 S6.F1");
	for (; used < SLOTS; bytes *= 1 + 0.05 * between(0.8, 1.2)) {
		unsigned fits = 0;
		while (fits < used && kept[fits] < (size_t)bytes)
			fits++;
		if (fits == used) {
			kept[used] = whole((size_t)(bytes * 1.01), 256);
			slots[used] = take_bytes(legacy_pool_alloc, "ggml_cuda_pool_leg::alloc",
			                         kept[used]);
			used++;
		}
		if (chance(0.3))
			forward((size_t)bytes / 16 + KiB);
	}
	while (used)
		device_free(slots[--used]);
}

const struct scenario fragmentation_scenarios[] = {
	{"pages_pinned", pages_pinned, NULL, 0, NULL},
	{"pages_pinned_too_few", pages_pinned_too_few, NULL, 0, NULL},
	{"pool_fragmented", pool_fragmented, NULL, 0, NULL},
	{"stranded_in_pool", stranded_in_pool, NULL, 0, NULL},
	{"size_ladder", size_ladder, NULL, 0, NULL},
	{NULL, NULL, NULL, 0, NULL},
};
