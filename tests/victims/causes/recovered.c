/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures that do not matter (S0): a retry succeeded, a probe, a ladder that came down to what
 * fits. And one ladder that failed.
 */
#include <stdlib.h>

#include "tests/victims/causes/fixture.h"

enum { CACHED_MAX = 64 };
static struct { device_ptr ptr[CACHED_MAX]; unsigned count; } cached;

/* some of the device in blocks that can be freed immediately */
static size_t cache_fill(double share)
{
	unsigned count = between_whole(20, CACHED_MAX);
	size_t each = share_of(share / count);
	for (cached.count = 0; cached.count < count; cached.count++)
		cached.ptr[cached.count] = take_bytes(workspace, "workspace", each);
	return each * count;
}

static void cache_empty(void)
{
	while (cached.count)
		device_free(cached.ptr[--cached.count]);
}

static void server(double share)
{
	struct model model = model_of(share_of(share));
	model_load(&model);
}

/* T12: what a caching allocator does every day: refused, gives its cache back, served. And the
 * program goes on. */
static void cache_flush_recovers(void)
{
	server(between(0.4, 0.5));
	size_t kept = cache_fill(between(0.3, 0.4)), wanted = device_room() + kept / 2;
	say("cause S0");
	say_not("S1 S2 S3 S4 S5 S6 S8");
	for (unsigned i = between_whole(5, 30); i; i--)
		forward(around(share_of(0.004)));
	device_ptr batch = run_step(wanted);
	if (!batch) {
		cache_empty();
		batch = take_bytes(run_step, "run_step", wanted);
	}
	device_free(batch);
	for (unsigned i = between_whole(5, 30); i; i--)
		forward(around(share_of(0.004)));
}

/* T11: an arena asks for a tenth less each time, until it gets what it can. */
static void arena_ladder(void)
{
	server(between(0.3, 0.5));
	size_t wanted = (size_t)((double)device_room() * between(1.2, 1.9)), arena = wanted;
	device_ptr ptr;
	say("cause S0");
	say_not("S1 S2 S3 S4 S5 S6 S8");
	while (!(ptr = shrinking_arena_extend(arena)) && arena > wanted / 4)
		arena = arena * 9 / 10 / 256 * 256;
	for (unsigned i = between_whole(10, 40); i; i--)
		noise(2);
	device_free(ptr);
}

/* Its neighbour: the ladder comes down to the least that it can use, and that is refused, too. */
static void arena_ladder_fatal(void)
{
	server(between(0.8, 0.9));
	size_t least = (size_t)((double)device_room() * between(1.05, 1.2)), arena = least * 2;
	least -= request.by_bytes;
	device_ptr ptr;
	say("cause S2");
	say_not("S0 S1 S4 S5 S6 S8");
	say("attempts_least 3");
	while (!(ptr = shrinking_arena_extend(arena)) && arena * 9 / 10 >= least)
		arena = arena * 9 / 10 / 256 * 256;
	if (!ptr)
		give_up("shrinking_arena_extend", least);
}

/* Looks for the largest batch that fits by trying, as find_executable_batch_size does. */
static void batch_probe(void)
{
	server(between(0.4, 0.6));
	size_t wanted = device_room() * between_whole(2, 6);
	device_ptr batch;
	say("cause S0");
	say_not("S1 S2 S3 S4 S5 S6 S8");
	for (;; wanted /= 2) {
		noise(2);
		if ((batch = allocate_batch(wanted)))
			break;
	}
	for (unsigned i = between_whole(40, 90); i; i--)
		noise(4);
	device_free(batch);
}

const struct scenario recovered_scenarios[] = {
	{"cache_flush_recovers", cache_flush_recovers, NULL, 0, NULL},
	{"arena_ladder", arena_ladder, NULL, 0, NULL},
	{"arena_ladder_fatal", arena_ladder_fatal, NULL, 0, NULL},
	{"batch_probe", batch_probe, NULL, 0, NULL},
	{NULL, NULL, NULL, 0, NULL},
};
