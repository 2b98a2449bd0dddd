/* SPDX-License-Identifier: Apache-2.0 */
/* Batch size and concurrency (S5), and their neighbour: not even one request fits (S2). */
#include <pthread.h>
#include <stdlib.h>

#include "tests/victims/causes/fixture.h"

static unsigned advised(unsigned planned)
{
	return request.value == UNKNOWN ? planned : (unsigned)request.value;
}

static void slot_count(void)
{
	static const char *const flags[] = { "--parallel", "-np", "--max-num-seqs",
		                             "--max_batch_size" };
	setting(flags[between_whole(0, COUNT(flags) - 1)], 32u << between_whole(0, 4));
}

/* T5: a block for each slot, at start; so many slots do not fit. */
static void slots_too_many(void)
{
	struct model model = model_of(share_of(between(0.2, 0.5)));
	model_load(&model);
	unsigned slots = setting_planned();
	size_t unit = whole((size_t)((double)device_room() *
	                             (1 + between(0.15, 1.5) * request.scale) / slots),
	                    2 * MiB);
	site *at = PICK(create_slot_buffers, allocate_batch);
	say("cause S5");
	say("when start");
	say_not("S1 S2 S3 S6 S8");
	say("fits %zu", device_room() / unit);
	for (unsigned i = 0; i < setting_value(); i++)
		take_bytes(at, "create_slot_buffers", unit);
	noise(4);
}

/* Its neighbour: the same start, and the first slot is already too much. */
static void one_slot_too_large(void)
{
	struct model model = model_of(share_of(between(0.6, 0.9)));
	model_load(&model);
	say("cause S2");
	say("when start");
	say_not("S1 S3 S5 S6 S8");
	take_bytes(create_slot_buffers, "create_slot_buffers",
	           whole((size_t)((double)device_room() * between(1.1, 1.9)), MiB) -
	                   request.by_bytes);
}

static void sequence_count(void) { setting("--max-num-seqs", 512u << between_whole(0, 1)); }

/* vLLM: logits of as many dummy requests as may run at once, in the sampler's warm-up. */
static void sampler_warm_up(void)
{
	static const size_t vocabularies[] = {32000, 128256, 151936, 256000};
	struct model model = model_of(share_of(between(0.3, 0.5)));
	size_t vocabulary = vocabularies[between_whole(0, 3)], requests = setting_planned(),
	       logits = requests * vocabulary * 4;
	model_load(&model);
	size_t left = (size_t)((double)logits * between(0.15, 0.9));
	say("cause S5");
	say_not("S1 S2a S3 S4 S6 S8");
	for (unsigned i = 0; i < model.layers; i++)
		take_bytes(workspace, "workspace",
		           (device_room() - left) / (model.layers - i) / (2 * MiB) * (2 * MiB));
	take_bytes(dummy_sampler_run, "_dummy_sampler_run", setting_value() * vocabulary * 4);
}

/* Requests run side by side, each with blocks of its own while it lasts. How many is up to the
 * callers. */
enum { WORKERS_MAX = 48, PARTS = 3 };
static struct load {
	size_t part[PARTS];
	pthread_barrier_t turn;
	unsigned most;
	bool full;
	device_ptr held[WORKERS_MAX][PARTS];
} load;

static bool worker_begin(unsigned worker)
{
	for (int i = 0; i < PARTS; i++)
		if (!(load.held[worker][i] = worker_request(load.part[i])))
			return false;
	return true;
}

static void worker_end(unsigned worker)
{
	for (int i = 0; i < PARTS; i++)
		device_free(load.held[worker][i]);
}

static void wave(unsigned width)
{
	for (unsigned i = 0; i < width; i++)
		if (!worker_begin(i))
			give_up("worker_request", load.part[0]);
	noise(1);
	for (unsigned i = 0; i < width; i++)
		worker_end((i + width / 2) % width);
}

/* a model, and requests of one size of which so many fit */
static unsigned load_plan(void)
{
	struct model model = model_of(share_of(between(0.3, 0.6)));
	unsigned fit = between_whole(5, 24);
	model_load(&model);
	noise(12);
	size_t unit = device_room() / fit / (8 * MiB) * (8 * MiB);
	load.part[0] = unit / 2;
	load.part[1] = load.part[2] = unit / 4;
	say("fits %zu", device_room() / unit);
	return fit;
}

/* An event loop: one thread, many requests under way; quiet hours, then everybody at once. */
static void concurrency_too_high(void)
{
	unsigned fit = load_plan(), most;
	say("cause S5");
	say("when load");
	say_not("S1 S2 S3 S4 S6 S8");
	for (unsigned i = between_whole(25, 60); i; i--)
		wave(between_whole(1, fit * 2 / 3));
	most = (unsigned)(fit * between(1.15, 1.9)) + 1;
	for (unsigned i = 0; i < 6; i++)
		wave(most < advised(most) ? most : advised(most));
}

static void *worker_thread(void *argument)
{
	unsigned worker = (unsigned)(uintptr_t)argument;
	device_use(0);
	for (unsigned round = 0; round < 24; round++) {
		/* more threads have work in later rounds; all of them in the last ones */
		bool works = round >= 20 ||
		             (worker * 5 + round * 3) % load.most < load.most * round / 40;
		bool refused = works && !worker_begin(worker);
		if (refused)
			__atomic_store_n(&load.full, true, __ATOMIC_RELAXED);
		/* how many fit is known when every thread has been served or refused */
		pthread_barrier_wait(&load.turn);
		if (refused)
			give_up("worker_request", load.part[0]);
		if (__atomic_load_n(&load.full, __ATOMIC_RELAXED))
			break;
		if (works)
			worker_end(worker);
		pthread_barrier_wait(&load.turn);
	}
	return NULL;
}

/* The same with a thread for each request. */
static void threads_too_many(void)
{
	unsigned fit = load_plan(), planned = (unsigned)(fit * between(1.15, 1.9)) + 1;
	pthread_t threads[WORKERS_MAX];
	say("cause S5");
	say("when load");
	say_not("S1 S2 S3 S4 S6 S8");
	load.most = planned < advised(planned) ? planned : advised(planned);
	pthread_barrier_init(&load.turn, NULL, load.most);
	for (unsigned i = 0; i < load.most; i++)
		pthread_create(&threads[i], NULL, worker_thread, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < load.most; i++)
		pthread_join(threads[i], NULL);
}

const struct scenario batch_scenarios[] = {
	{"slots_too_many", slots_too_many, NULL, 0, slot_count},
	{"one_slot_too_large", one_slot_too_large, NULL, 0, NULL},
	{"sampler_warm_up", sampler_warm_up, NULL, 0, sequence_count},
	{"concurrency_too_high", concurrency_too_high, NULL, 0, NULL},
	{"threads_too_many", threads_too_many, NULL, 0, NULL},
	{NULL, NULL, NULL, 0, NULL},
};
