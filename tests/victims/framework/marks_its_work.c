/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks its work with interpose/cuflight.h: it loads, serves requests one after another, then two
 * at a time. Each request allocates activations and leaves a block behind. One requests more than
 * there is, and continues without it.
 */
#include <pthread.h>
#include "interpose/cuflight.h"
#include "tests/victims/doors.h"

enum { REQUESTS = 40, LAYERS = 6, GREEDY = 33, PAIRS = 5 };
#define LEFT (64 * KiB)

static size_t activation_bytes(int number) { return (4 + (size_t)(number * 7 % 9)) * MiB; }

static void load_weights(void)
{
	cuflight_phase_push("load");
	for (int i = 0; i < LAYERS; i++) {
		cuflight_phase_push("layer");
		take(16 * MiB);
		cuflight_phase_pop();
	}
	cuflight_mark("weights are there");
	cuflight_phase_pop();
}

static void ask_for_too_much(void)
{
	size_t free_then = 0, total = 0;
	CUdeviceptr space;
	MUST(cu.memory(&free_then, &total));
	cuflight_phase_push("prefill");
	if (!cu.alloc(&space, total)) {
		fprintf(stderr, "victim: the request was meant to fail\n");
		exit(BROKEN);
	}
	cuflight_phase_pop();
	say("incident api %s requested %zu outcome handled site ask_for_too_much attempts 1 free %zu total %zu",
	    api_of("cudaMalloc", "cuMemAlloc_v2"), total, free_then, total);
	say("within phase prefill request generate id %d", 1000 + GREEDY);
}

static void serve(int number)
{
	uint64_t id = cuflight_request_begin("generate", 1000 + (uint64_t)number);
	CUdeviceptr activations = take(activation_bytes(number));
	if (number == GREEDY)
		ask_for_too_much();
	take(LEFT);
	MUST(cu.release(activations));
	cuflight_request_end(id);
}

static pthread_barrier_t meeting;

static void *serve_beside(void *argument)
{
	uint64_t id = cuflight_request_begin("beside", 0);
	pthread_barrier_wait(&meeting);
	pthread_barrier_wait(&meeting);
	cuflight_request_end(id);
	return argument;
}

static void serve_pairs(void)
{
	pthread_barrier_init(&meeting, NULL, 2);
	for (int i = 0; i < PAIRS; i++) {
		pthread_t other;
		pthread_create(&other, NULL, serve_beside, NULL);
		pthread_barrier_wait(&meeting);
		uint64_t id = cuflight_request_begin("pair", 0);
		cuflight_request_end(id);
		pthread_barrier_wait(&meeting);
		pthread_join(other, NULL);
	}
}

static int by_size(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	return x < y ? -1 : x > y;
}

/* Of all requests, those in pairs take nothing; a request's peak is its activations and what it
 * leaves. */
static void say_requests(void)
{
	size_t peaks[REQUESTS + 2 * PAIRS] = { 0 }, count = REQUESTS + 2 * PAIRS;
	int largest = 0;
	for (int i = 0; i < REQUESTS; i++) {
		peaks[i] = activation_bytes(i) + LEFT;
		if (peaks[i] > peaks[largest])
			largest = i;
	}
	say("requests count %zu open 0 concurrency_max 2 name generate basis estimated largest_peak_bytes %zu largest_id %d",
	    count, peaks[largest], 1000 + largest);
	qsort(peaks, count, sizeof *peaks, by_size);
	say("requests median_peak_bytes %zu", (peaks[count / 2 - 1] + peaks[count / 2]) / 2);
}

int main(int argc, char **argv)
{
	door_open(argc, argv);
	load_weights();
	uint64_t serving = cuflight_phase_start("serving");
	for (int i = 0; i < REQUESTS; i++)
		serve(i);
	serve_pairs();
	cuflight_phase_end(serving);
	cuflight_phase_push("never ends");
	say("phase load sort phase source mark count 1 open 0 rise_bytes %zu", LAYERS * 16 * MiB);
	say("phase layer sort phase source mark count %d open 0 rise_bytes %zu", LAYERS, 16 * MiB);
	say("phase serving sort phase source mark count 1 open 0");
	say("phase prefill sort phase source mark count 1 open 0 rise_bytes 0");
	say("phase generate sort request source mark count %d open 0", REQUESTS);
	say("phase pair sort request source mark count %d open 0", PAIRS);
	say("phase weights_are_there sort mark source mark count 1 open 0");
	say("phase never_ends sort phase source mark count 1 open 1");
	say_requests();
	say("nested layer in load");
	say("leak site serve kind device bytes %zu count %d", REQUESTS * LEFT, REQUESTS);
	say("end state exit 0");
	say_device();
	return 0;
}
