/* SPDX-License-Identifier: Apache-2.0 */
/*
 * what_if_work MODE [--at-most=N] [--share=X] [--largest=X] [--at-once=N] [--context=N] [--batch=N] [--cache=MIB]
 * [--kv=X]: runs out of 512 MiB, unless the work is changed as asked. It prints "survives 1" or "survives 0".
 *   growth    each request keeps 8 MiB; --at-most: only so many of them at once
 *   loaded    ten times 40 MiB, then 280 MiB once; --share of the ten, --largest of the other
 *   threads   eight threads with a request of 80 MiB each, at the same time; --at-once: so many
 *   context   two layers whose cache is copied into one 2 MiB larger, step after step; --context: it stays at so many
 *   batch     two layers with 4 and 2 MiB for each request of the batch, the last of 96; --batch: never more
 *   cache     entries of 4 MiB, of which every fourth goes again; --cache: the oldest go, too, above so many MiB
 *   kv        a KV cache in one block, next to weights of 200 MiB; --kv: its share
 */
#include <pthread.h>
#include <semaphore.h>
#include "tests/victims/doors.h"

enum { REQUESTS = 100, WORKERS = 8, PARTS = 4, LAYERS = 2, STEPS = 100, ENTRIES = 300 };

static double option(int argc, char **argv, const char *name, double otherwise)
{
	for (int i = 2; i < argc; i++)
		if (!strncmp(argv[i], name, strlen(name)))
			return strtod(argv[i] + strlen(name), NULL);
	return otherwise;
}

static void end(int survives)
{
	say("survives %d", survives);
	exit(0);
}

static CUdeviceptr request_memory(size_t bytes)
{
	CUdeviceptr ptr = 0;

	if (cu.alloc(&ptr, bytes))
		end(0);
	return ptr;
}

static CUdeviceptr remember(size_t bytes) { return request_memory(bytes); }
static CUdeviceptr load(size_t bytes) { return request_memory(bytes); }
static CUdeviceptr run_layer(size_t bytes) { return request_memory(bytes); }

static void growth(unsigned most)
{
	CUdeviceptr kept[REQUESTS];

	load(64 * MiB);
	for (unsigned i = 0; i < REQUESTS; i++) {
		CUdeviceptr activations = run_layer(20 * MiB);

		if (i >= most)
			MUST(cu.release(kept[i - most]));
		kept[i] = remember(8 * MiB);
		MUST(cu.release(activations));
	}
}

static void loaded(double share, double largest)
{
	for (int i = 0; i < 10; i++)
		load((size_t)(share * 40 * MiB));
	MUST(cu.release(run_layer(2 * MiB)));
	MUST(cu.release(run_layer((size_t)(largest * 280 * MiB))));
}

static CUdeviceptr extend_context(size_t bytes) { return request_memory(bytes); }

static void context(unsigned longest)
{
	CUdeviceptr layers[LAYERS], longer;

	for (int layer = 0; layer < LAYERS; layer++)
		layers[layer] = extend_context(2 * MiB);
	for (unsigned i = 1; i <= STEPS; i++)
		for (int layer = 0; layer < LAYERS; layer++) {
			unsigned steps = i < longest ? i : longest;

			longer = extend_context((size_t)(steps + 1) * 2 * MiB);
			MUST(cu.release(layers[layer]));
			layers[layer] = longer;
		}
}

static CUdeviceptr attend(size_t bytes) { return request_memory(bytes); }
static CUdeviceptr project(size_t bytes) { return request_memory(bytes); }

static void batch(unsigned largest)
{
	static const unsigned sizes[] = { 4, 6, 16, 9, 12, 4, 20, 7, 16, 10, 5, 96 };

	load(32 * MiB);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t requests = sizes[i] < largest ? sizes[i] : largest;
		CUdeviceptr heads = attend(requests * 4 * MiB), output = project(requests * 2 * MiB);

		MUST(cu.release(heads));
		MUST(cu.release(output));
	}
}

static CUdeviceptr insert_entry(size_t bytes) { return request_memory(bytes); }

/* Its oldest entries go when there is no room; every fourth goes with its request. */
static void cache(size_t most_mib)
{
	static CUdeviceptr entries[ENTRIES];
	size_t first = 0, count = 0, entry_mib = 4;

	load(64 * MiB);
	for (unsigned i = 0; i < ENTRIES; i++) {
		while (first < count && (count - first + 1) * entry_mib > most_mib)
			MUST(cu.release(entries[first++]));
		entries[count++] = insert_entry(entry_mib * MiB);
		if (i % 4 == 3)
			MUST(cu.release(entries[--count]));
	}
}

static CUdeviceptr llama_kv_cache(size_t bytes) { return request_memory(bytes); }

static void kv(double share)
{
	load(200 * MiB);
	for (int layer = 0; layer < 3; layer++)
		llama_kv_cache((size_t)(share * 100 * MiB));
}

static sem_t places;
static pthread_barrier_t warm, step;
static bool together;

static void *work(void *argument)
{
	CUdeviceptr parts[PARTS];

	door_enter();
	MUST(cu.release(run_layer(10 * MiB)));
	pthread_barrier_wait(&warm);
	sem_wait(&places);
	for (int i = 0; i < PARTS; i++) {
		parts[i] = run_layer(20 * MiB);
		if (together)
			pthread_barrier_wait(&step);
	}
	for (int i = 0; i < PARTS; i++)
		MUST(cu.release(parts[i]));
	sem_post(&places);
	return argument;
}

static void threads(unsigned at_once)
{
	pthread_t ids[WORKERS];

	together = at_once >= WORKERS;
	sem_init(&places, 0, at_once);
	pthread_barrier_init(&warm, NULL, WORKERS);
	pthread_barrier_init(&step, NULL, WORKERS);
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&ids[i], NULL, work, NULL);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(ids[i], NULL);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	door_open(1, argv);
	if (!strcmp(mode, "growth"))
		growth((unsigned)option(argc, argv, "--at-most=", REQUESTS));
	else if (!strcmp(mode, "loaded"))
		loaded(option(argc, argv, "--share=", 1), option(argc, argv, "--largest=", 1));
	else if (!strcmp(mode, "threads"))
		threads((unsigned)option(argc, argv, "--at-once=", WORKERS));
	else if (!strcmp(mode, "context"))
		context((unsigned)option(argc, argv, "--context=", STEPS));
	else if (!strcmp(mode, "batch"))
		batch((unsigned)option(argc, argv, "--batch=", 1000));
	else if (!strcmp(mode, "cache"))
		cache((size_t)option(argc, argv, "--cache=", 1e6));
	else if (!strcmp(mode, "kv"))
		kv(option(argc, argv, "--kv=", 1));
	else
		skip("growth, loaded, threads, context, batch, cache or kv");
	end(1);
	return 0;
}
