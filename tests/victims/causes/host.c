/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory (S9), and programs that another process killed for other reasons. Those with a limit
 * run in a memory cgroup (--list). Blocks are 64 KiB or larger, so that sampling records each of
 * them.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "interpose/cuflight.h"
#include "tests/victims/causes/fixture.h"

void *append_message(size_t bytes);
void *parse_tool_output(size_t bytes);
void *read_shard(size_t bytes);
void *build_prompt(size_t bytes);
void *retrieve_document(size_t bytes);
void *feed_back(size_t bytes);

static void *touched(size_t bytes)
{
	char *ptr = malloc(bytes);
	memset(ptr, 1, bytes);
	return ptr;
}

/* sites */
void *append_message(size_t bytes) { return touched(bytes); }
void *parse_tool_output(size_t bytes) { return touched(bytes); }
void *read_shard(size_t bytes) { return touched(bytes); }
void *build_prompt(size_t bytes) { return touched(bytes); }
void *retrieve_document(size_t bytes) { return touched(bytes); }
void *feed_back(size_t bytes)
{
	void *prompt = malloc(bytes);
	return prompt ? memset(prompt, 1, bytes) : NULL;
}

/* From what is mapped now. */
static void limit_address_space(size_t more)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%lu", &pages) != 1)
		exit(3);
	fclose(file);
	more += pages * (size_t)sysconf(_SC_PAGESIZE);
	setrlimit(RLIMIT_AS, &(struct rlimit){ more, more });
}

static void small_model(void)
{
	struct model model = model_of(share_of(between(0.3, 0.5)));
	model_load(&model);
}

static void turn(size_t prompt_bytes)
{
	void *prompt = build_prompt(prompt_bytes);
	forward(share_of(0.003));
	free(prompt);
}

static void pinned_fails(void)
{
	char text[64];
	snprintf(text, sizeof text, "cuMemHostAlloc:%u,cuLaunchKernel:1+", between_whole(3, 12));
	setenv("SIMCUDA_FAIL", text, 1);
}

/* T16: page-locking host memory is refused, the program does not check, and the next launch returns
 * "out of memory". */
static void page_lock_refused(void)
{
	small_model();
	say("cause S9.H6");
	say_not("S1 S2 S3 S5 S6 S8");
	while (pinned_malloc(around(2 * MiB)))
		forward(share_of(0.004));
	if (!kernel_launch())
		give_up("cudaLaunchKernel", 0);
}

/* H2: a history that is never trimmed. The program marks its requests, so that a few seconds
 * prove it; the clock of host events tells requests of 50 ms apart. */
static void host_leak_per_turn(void)
{
	unsigned turns = between_whole(40, 60);
	size_t message = around(160 * KiB);
	message = message < 64 * KiB ? 64 * KiB : message;
	small_model();
	say("cause S9.H2");
	say_not("S1 S2 S4 S6 S8 S9.H1");
	for (unsigned i = 0; i < turns; i++) {
		uint64_t marked = cuflight_request_begin("turn", i + 1);
		turn(around(512 * KiB) + 64 * KiB);
		append_message(message);
		cuflight_request_end(marked);
		pause_us(50000);
	}
}

/* T17: the same, in a cgroup, until the kernel ends it. */
static void host_killed_growing(void)
{
	size_t message = around(512 * KiB);
	small_model();
	say("cause S9.H2");
	say_not("S1 S2 S4 S6 S8 S9.H1");
	say("end state oom_killed");
	for (;;) {
		turn(around(600 * KiB) + 64 * KiB);
		parse_tool_output(message);
		pause_us(300);
	}
}

/* H1: shard after shard is read into memory, before there is any device. */
static void host_killed_loading(void)
{
	size_t shard = around(4 * MiB);
	say("cause S9.H1");
	say_not("S1 S2 S8 S9.H2");
	say("end state oom_killed");
	for (;;) {
		read_shard(shard);
		pause_us(1000);
	}
}

static void nothing(void) {}

/* H5: threads free nearly all that they took, and their arenas keep it. One after another, however
 * busy the machine is. */
static void *worker_arena(void *freed)
{
	enum { BLOCKS = 3000 };
	static __thread void *blocks[BLOCKS];
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = touched(4 * KiB);
	/* the last one stays: nothing below it can be released */
	for (int i = 0; i < BLOCKS - 1; i++)
		free(blocks[i]);
	sem_post(freed);
	for (;;)
		pause();
	return NULL;
}

/* Ten times the threads that the limit has room for. With few arenas all of them fit. */
static void host_killed_by_arenas(void)
{
	enum { WORKERS = 80 };
	pthread_t thread;
	sem_t freed;
	sem_init(&freed, 0, 0);
	small_model();
	say("cause S9.H5");
	say_not("S1 S2 S8 S9.H1 S9.H2");
	say("end state oom_killed");
	for (unsigned i = 0; i < WORKERS; i++) {
		if (pthread_create(&thread, NULL, worker_arena, &freed))
			exit(3);
		sem_wait(&freed);
		pause_us(15000);
	}
}

/* H3: a prompt cache within its bound, which is most of the limit; then a prompt that is large, and
 * that may come slowly. */
static void host_killed_beside_cache(void)
{
	enum { ENTRIES = 140 };
	static void *cache[ENTRIES];
	unsigned piece_us = chance(0.5) ? 300 : 10000;
	size_t entry = 72 * MiB / ENTRIES / KiB * KiB;
	small_model();
	say("cause S9.H3");
	say_not("S1 S2 S8 S9.H1 S9.H2");
	say("end state oom_killed");
	for (unsigned i = 0; i < ENTRIES * 4; i++) {
		free(cache[i % ENTRIES]);
		cache[i % ENTRIES] = append_message(entry);
		turn(around(256 * KiB) + 64 * KiB);
	}
	for (unsigned i = 0; i < 64; i++) {
		parse_tool_output(2 * MiB);
		pause_us(piece_us);
	}
}

/* H4: page-locked buffers, each rounded up to a power of two as PyTorch's host allocator does. */
static void host_killed_by_pinned(void)
{
	small_model();
	say("cause S9.H4");
	say("recorded all");
	say_not("S1 S2 S8 S9.H1 S9.H2");
	say("end state oom_killed");
	for (;;) {
		size_t wanted = around(1200 * KiB), rounded = 512 * KiB;
		while (rounded < wanted)
			rounded *= 2;
		void *staging = pinned_malloc(rounded);
		if (staging)
			memset(staging, 1, rounded);
		pause_us(500);
	}
}

/* H7: a batch whose requests all run at once, each with a document that it frees when it is done. */
enum { REQUESTS = 64 };
static struct document { size_t bytes; void *block; } documents[REQUESTS];

static void *serve_request(void *document)
{
	struct document *own = document;
	own->block = retrieve_document(own->bytes);
	sleep(20); /* the model is slow */
	free(own->block);
	return NULL;
}

static void host_killed_at_once(void)
{
	pthread_t thread;
	size_t bytes = around(4 * MiB);
	small_model();
	say("cause S9.H7");
	say_not("S1 S2 S8 S9.H1 S9.H2");
	say("end state oom_killed");
	for (unsigned i = 0; i < REQUESTS; i++) {
		documents[i].bytes = bytes;
		if (pthread_create(&thread, NULL, serve_request, &documents[i]))
			exit(3);
		pause_us(15000);
	}
	for (;;)
		pause();
}

/* H8: each prompt has the last prompt and its answer in it, until malloc refuses one. */
static void host_refused_doubling(void)
{
	size_t bytes = around(96 * KiB);
	char *prompt = feed_back(bytes), *longer;
	small_model();
	limit_address_space(between_whole(64, 100) * MiB);
	say("cause S9.H8");
	say_not("S1 S2 S8 S9.H1 S9.H2");
	while ((longer = feed_back(bytes *= 2))) {
		free(prompt);
		prompt = longer;
		turn(around(256 * KiB) + 64 * KiB);
		pause_us(20000);
	}
	give_up("malloc", bytes);
}

/* H9: no machine has the addresses for it. */
static void host_refused_larger_than_all(void)
{
	size_t bytes = between_whole(130, 4000) * 1024 * GiB;
	small_model();
	say("cause S9.H9");
	say_not("S1 S2 S8 S9.H1 S9.H2 S9.H8");
	append_message(around(8 * MiB));
	for (unsigned i = between_whole(5, 30); i; i--)
		turn(around(600 * KiB) + 64 * KiB);
	if (!feed_back(bytes))
		give_up("malloc", bytes);
}

static void serve_a_while(size_t resident_bytes)
{
	small_model();
	append_message(resident_bytes);
	for (unsigned i = between_whole(30, 80); i; i--)
		turn(around(600 * KiB) + 64 * KiB);
}

/* The neighbour of a kill for lack of memory: a supervisor kills, with memory to spare. */
static void killed_by_supervisor(void)
{
	say("cause none");
	say("clean leaks");
	say("end state killed");
	serve_a_while(around(16 * MiB));
	kill(getpid(), SIGKILL);
}

/* The same with the cgroup full of files that were read: they go when somebody needs the memory. */
static void killed_by_supervisor_beside_files(void)
{
	static char buffer[1 << 20];
	FILE *file = tmpfile();
	say("cause none");
	say("clean leaks");
	say("end state killed");
	for (int i = 0; file && i < 120; i++)
		fwrite(buffer, sizeof buffer, 1, file);
	if (file)
		fflush(file), fdatasync(fileno(file));
	serve_a_while(around(8 * MiB));
	kill(getpid(), SIGKILL);
}

const struct scenario host_scenarios[] = {
	{"page_lock_refused", page_lock_refused, pinned_fails, 0, NULL},
	{"host_leak_per_turn", host_leak_per_turn, NULL, 0, NULL},
	{"host_killed_growing", host_killed_growing, NULL, 96, NULL},
	{"host_killed_loading", nothing, host_killed_loading, 96, NULL},
	{"host_killed_by_arenas", host_killed_by_arenas, NULL, 96, NULL},
	{"host_killed_beside_cache", host_killed_beside_cache, NULL, 96, NULL},
	{"host_killed_by_pinned", host_killed_by_pinned, NULL, 96, NULL},
	{"host_killed_at_once", host_killed_at_once, NULL, 96, NULL},
	{"host_refused_doubling", host_refused_doubling, NULL, 0, NULL},
	{"host_refused_larger_than_all", host_refused_larger_than_all, NULL, 0, NULL},
	{"killed_by_supervisor", killed_by_supervisor, NULL, 96, NULL},
	{"killed_by_supervisor_beside_files", killed_by_supervisor_beside_files, NULL, 96, NULL},
	{NULL, NULL, NULL, 0, NULL},
};
