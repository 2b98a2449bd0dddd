/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small inference server with a history: `model_server --commit=N [--run=R]` behaves like its
 * N-th commit, from 1 to 12. Runs of one commit differ by what R seeds.
 *
 *  1 the first version              7 REGRESSION: a larger workspace, peak +6 %
 *  2 a clean-up                     8 the workspace is as before
 *  3 noise: order of loading        9 noise: two workers, timing
 *  4 REGRESSION: 1 MiB a request   10 REGRESSION: small blocks fragment pages
 *  5 the leak is fixed             11 that is fixed
 *  6 noise: peak varies by 1 %     12 REGRESSION: page-locked memory grows
 *
 * Noise stays once it is there. The program prints which function is to blame: "guilty F", or
 * "clean".
 */
#include "tests/victims/doors.h"

#include <pthread.h>
#include <time.h>
#include "interpose/cuflight.h"

enum { REQUESTS = 24, LAYERS = 16, SMALL_BLOCKS = 512, KEPT_EVERY = 32 };
#define LAYER_BYTES (12 * MiB)
#define WORKSPACE_BYTES (24 * MiB)

static int commit = 1;
static uint64_t noise = 1;

/* Marsaglia's xorshift: the same run has the same noise. */
static uint64_t random_below(uint64_t limit)
{
	noise ^= noise << 13;
	noise ^= noise >> 7;
	noise ^= noise << 17;
	return noise % limit;
}

static CUdeviceptr load_layer(int index)
{
	/* sizes differ, so that their order matters to an allocator */
	return take(LAYER_BYTES + (size_t)(index % 4) * 128 * KiB);
}

static void load_model(void)
{
	int order[LAYERS];

	for (int i = 0; i < LAYERS; i++)
		order[i] = i;
	for (int i = LAYERS - 1; commit >= 3 && i > 0; i--) {
		int other = (int)random_below((uint64_t)i + 1), kept = order[i];
		order[i] = order[other];
		order[other] = kept;
	}
	for (int i = 0; i < LAYERS; i++)
		load_layer(order[i]);
}

/* Commit 10: a table of small blocks, most of which are dropped again. */
static void build_index(void)
{
	CUdeviceptr blocks[SMALL_BLOCKS];

	for (int i = 0; i < SMALL_BLOCKS; i++)
		blocks[i] = take(64 * KiB);
	for (int i = 0; i < SMALL_BLOCKS; i++)
		if (i % KEPT_EVERY)
			MUST(cu.release(blocks[i]));
}

/* Commit 7: room for a second batch that is never used: 14 MiB of 228. */
static CUdeviceptr allocate_workspace(void)
{
	size_t bytes = WORKSPACE_BYTES;

	if (commit >= 6)
		bytes += (size_t)random_below(2 * MiB + 1);
	if (commit == 7)
		bytes += 14 * MiB;
	return take(bytes);
}

/* Commit 4: the trace of each request is kept. */
static void keep_trace(void) { take(MiB); }

/* Commit 12: each prompt is staged in memory of its own, which is never freed. */
static void stage_prompt(void)
{
	void *staged;

	MUST(cu.pinned(&staged, 512 * KiB, 0));
}

static void run_layers(CUdeviceptr activations)
{
	struct timespec pause = { 0, commit >= 9 ? (long)random_below(300000) : 20000 };

	nanosleep(&pause, NULL);
	MUST(cu.release(activations));
}

static void serve_request(int number)
{
	uint64_t id = cuflight_request_begin("generate", 0);

	if (commit == 4)
		keep_trace();
	if (commit == 12)
		stage_prompt();
	run_layers(take(2 * MiB));
	cuflight_request_end(id);
}

static void *serve_half(void *unused)
{
	door_enter();
	for (int i = 0; i < REQUESTS / 2; i++)
		serve_request(i);
	return NULL;
}

/* From commit 9 on, a second worker serves half of the requests. */
static void serve(void)
{
	pthread_t worker;

	if (commit < 9) {
		for (int i = 0; i < REQUESTS; i++)
			serve_request(i);
		return;
	}
	pthread_create(&worker, NULL, serve_half, NULL);
	for (int i = 0; i < REQUESTS / 2; i++)
		serve_request(i);
	pthread_join(worker, NULL);
}

static void read_arguments(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--commit=", 9))
			commit = atoi(argv[i] + 9);
		if (!strncmp(argv[i], "--run=", 6))
			noise = 88172645463325252ull + strtoull(argv[i] + 6, NULL, 10) * 7919;
	}
}

int main(int argc, char **argv)
{
	static const char *const guilty[13] = { [4] = "keep_trace", [7] = "allocate_workspace",
						[10] = "build_index", [12] = "stage_prompt" };

	read_arguments(argc, argv);
	door_open(argc, argv);
	if (commit == 10)
		build_index();
	load_model();
	allocate_workspace();
	serve();
	if (guilty[commit])
		say("guilty %s", guilty[commit]);
	else
		say("clean");
	return 0;
}
