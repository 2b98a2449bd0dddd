/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two troubles on the host at once, in a memory cgroup, until the kernel ends the program. One of
 * them grows to the end, or is what a program of this limit cannot have; the other has been there
 * before, or is small beside it. Which of them decides follows from the bytes and rates of each:
 * "without endless W" and "without delay W" are what removing each would have bought.
 */
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/victims/causes/fixture.h"

void *remember_message(size_t bytes);
void *lru_entry(size_t bytes);
void *load_weights_shard(size_t bytes);
void *retrieve_page(size_t bytes);

static void *touched(size_t bytes)
{
	char *ptr = malloc(bytes);
	return memset(ptr, 1, bytes);
}

/* sites */
void *remember_message(size_t bytes) { return touched(bytes); }
void *lru_entry(size_t bytes) { return touched(bytes); }
void *load_weights_shard(size_t bytes) { return touched(bytes); }
void *retrieve_page(size_t bytes) { return touched(bytes); }

static void say_killed(const char *cause, const char *not)
{
	say("cause %s", cause);
	say_not(not);
	say("end state oom_killed");
}

static void small_model(void)
{
	struct model model = model_of(share_of(between(0.3, 0.5)));
	model_load(&model);
}

static void work(void)
{
	void *prompt = retrieve_page(around(300 * KiB) + 64 * KiB);
	forward(share_of(0.003));
	free(prompt);
	pause_us(2000);
}

/* ---- what was there before ---- */

/* Entries replace each other: full before the first third of the run. */
enum { ENTRIES = 128 };
static struct { void *entries[ENTRIES]; unsigned next; } cache;

static void cache_put(size_t cache_bytes)
{
	void **entry = &cache.entries[cache.next++ % ENTRIES];
	free(*entry);
	*entry = lru_entry(cache_bytes / ENTRIES / KiB * KiB);
}

/* From one call site, before and while something else grows: each entry keeps a message, too. */
static void cache_of(size_t bytes, unsigned entries, size_t message_bytes)
{
	for (unsigned i = 0; i < entries; i++) {
		cache_put(bytes);
		if (message_bytes || i % 4 == 0)
			work();
		if (message_bytes)
			remember_message(message_bytes);
	}
}

/* A thread frees nearly all that it took, and its arena keeps it. */
enum { BLOCKS = 3000 };

static void *worker_arena(void *freed)
{
	static __thread void *blocks[BLOCKS];
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = touched(4 * KiB);
	for (int i = 0; i < BLOCKS - 1; i++)
		free(blocks[i]);
	sem_post(freed);
	for (;;)
		pause();
	return NULL;
}

static void one_more_arena(void)
{
	pthread_t thread;
	sem_t freed;
	sem_init(&freed, 0, 0);
	if (pthread_create(&thread, NULL, worker_arena, &freed))
		exit(3);
	sem_wait(&freed);
}

static void pinned_of(size_t bytes)
{
	void *staging = pinned_malloc(bytes);
	if (staging)
		memset(staging, 1, bytes);
}

/* A child in the same cgroup, which ends with this process. */
static void neighbour_of(size_t bytes)
{
	int ready[2];
	char byte;
	if (pipe(ready))
		exit(3);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		touched(bytes);
		if (write(ready[1], "", 1) != 1)
			_exit(3);
		for (;;)
			pause();
	}
	if (read(ready[0], &byte, 1) != 1)
		exit(3);
}

/* ---- what grows to the end ---- */

static void leak_for_ever(size_t each)
{
	for (;;) {
		work();
		remember_message(each);
	}
}

static size_t message(void)
{
	return 96 * KiB + around(96 * KiB);
}

static void host_leak_beside_cache(void)
{
	small_model();
	say_killed("S9.H2", "S1 S2 S8 S9.H1 S9.H3 S9.H5");
	say("without endless the leak");
	say("without delay the cache that stopped growing");
	for (size_t each = 0;; each = message())
		cache_of(30 * MiB, each ? UINT_MAX : 2 * ENTRIES, each);
}

static void host_leak_beside_arenas(void)
{
	small_model();
	say_killed("S9.H2", "S1 S2 S8 S9.H1 S9.H3 S9.H5");
	say("without endless the leak");
	for (int i = 0; i < 3; i++)
		one_more_arena();
	leak_for_ever(message());
}

static void host_arenas_beside_leak(void)
{
	small_model();
	say_killed("S9.H5", "S1 S2 S8 S9.H1 S9.H3");
	for (;;) {
		for (int i = 0; i < 10; i++)
			work();
		remember_message(around(400 * KiB));
		one_more_arena();
	}
}

static void host_leak_beside_pinned(void)
{
	small_model();
	say_killed("S9.H2", "S1 S2 S8 S9.H1 S9.H3 S9.H5");
	say("without endless the leak");
	pinned_of(32 * MiB);
	leak_for_ever(message());
}

static void host_pinned_beside_leak(void)
{
	small_model();
	say_killed("S9.H4", "S1 S2 S8 S9.H1 S9.H3 S9.H5");
	for (;;) {
		for (int i = 0; i < 10; i++)
			work();
		remember_message(around(200 * KiB));
		pinned_of(2 * MiB);
	}
}

static void host_leak_beside_process(void)
{
	small_model();
	say_killed("S9.H2", "S1 S2 S8 S9.H1 S9.H3 S9.H5");
	say("without endless the leak");
	say("without delay the other processes");
	neighbour_of(28 * MiB);
	leak_for_ever(message());
}

static void host_leak_after_loading(void)
{
	size_t shard = 2 * MiB;
	say_killed("S9.H2", "S1 S2 S8 S9.H1 S9.H3 S9.H5");
	say("without endless the leak");
	for (int i = 0; i < 16; i++)
		load_weights_shard(shard);
	small_model();
	leak_for_ever(message());
}

static void host_loading_beside_leak(void)
{
	small_model();
	say_killed("S9.H1", "S1 S2 S8 S9.H3 S9.H5");
	for (int i = 0; i < 60; i++) {
		work();
		remember_message(around(100 * KiB));
	}
	for (;;) {
		load_weights_shard(around(3 * MiB));
		pause_us(20000);
	}
}

static void *serve_request(void *bytes)
{
	void *page = retrieve_page((size_t)bytes);
	sleep(20); /* the model is slow */
	free(page);
	return NULL;
}

static void host_at_once_beside_cache(void)
{
	size_t bytes = around(3 * MiB);
	pthread_t thread;
	small_model();
	say_killed("S9.H7", "S1 S2 S8 S9.H1 S9.H2 S9.H3 S9.H5");
	cache_of(24 * MiB, 2 * ENTRIES, 0);
	for (int i = 0; i < 200; i++) {
		if (pthread_create(&thread, NULL, serve_request, (void *)bytes))
			exit(3);
		pause_us(15000);
	}
	for (;;)
		pause();
}

/* Full long before, and most of the limit; a leak that needs hours; then one large prompt. */
static void host_cache_beside_small_leak(void)
{
	small_model();
	say_killed("S9.H3", "S1 S2 S8 S9.H1 S9.H2 S9.H5");
	for (int i = 0; i < 12; i++) {
		cache_of(64 * MiB, ENTRIES, 0);
		remember_message(64 * KiB);
	}
	for (;;) {
		retrieve_page(2 * MiB);
		pause_us(300);
	}
}

#define LIMIT_MIB 96
const struct scenario host_mixed_scenarios[] = {
	{"host_leak_beside_cache", host_leak_beside_cache, NULL, LIMIT_MIB, NULL},
	{"host_leak_beside_arenas", host_leak_beside_arenas, NULL, LIMIT_MIB, NULL},
	{"host_arenas_beside_leak", host_arenas_beside_leak, NULL, LIMIT_MIB, NULL},
	{"host_leak_beside_pinned", host_leak_beside_pinned, NULL, LIMIT_MIB, NULL},
	{"host_pinned_beside_leak", host_pinned_beside_leak, NULL, LIMIT_MIB, NULL},
	{"host_leak_beside_process", host_leak_beside_process, NULL, LIMIT_MIB, NULL},
	{"host_leak_after_loading", host_leak_after_loading, NULL, LIMIT_MIB, NULL},
	{"host_loading_beside_leak", host_loading_beside_leak, NULL, LIMIT_MIB, NULL},
	{"host_at_once_beside_cache", host_at_once_beside_cache, NULL, LIMIT_MIB, NULL},
	{"host_cache_beside_small_leak", host_cache_beside_small_leak, NULL, LIMIT_MIB, NULL},
	{NULL, NULL, NULL, 0, NULL},
};
