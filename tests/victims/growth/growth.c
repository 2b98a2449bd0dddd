/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growth NAME [SECONDS]: one program of programs.txt. A leak keeps 20 MB a second, one request
 * every 10 ms, and prints how many it served in what time. The line that allocates what is kept ends
 * with a comment that names the program.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 2000, EACH = 100, SCRATCH = 50, SLOTS = 16000 };

static double seconds = 8;

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *filled(void *block, size_t bytes) { return memset(block, 1, bytes); }

/* Each request also allocates something that it frees. */
static void serve(void (*request)(void))
{
	double start_s = now_s();
	unsigned served = 0;
	for (unsigned left = (unsigned)(seconds * 80); left > 0; left--) {
		void *scratch[SCRATCH];
		for (unsigned i = 0; i < SCRATCH; i++)
			scratch[i] = filled(malloc(3000), 3000);
		for (unsigned i = 0; request && i < EACH; i++)
			request();
		for (unsigned i = 0; i < SCRATCH; i++)
			free(scratch[i]);
		served++;
		usleep(10000);
	}
	printf("served %u requests of %u blocks in %f s\n", served, EACH, now_s() - start_s);
}

/* ---- leaks ---- */

static void forget_answer(void)
{
	filled(malloc(BLOCK), BLOCK); /* leak: forgotten_answers */
}

struct connection {
	struct connection *next;
	char state[BLOCK];
};
static struct connection *connections;

static void open_connection(void)
{
	struct connection *fresh = calloc(1, sizeof *fresh); /* leak: connections_in_a_list */
	fresh->next = connections;
	connections = fresh;
}

static void keep_name(void)
{
	static char *volatile table[4096];
	static unsigned count;
	char name[BLOCK];
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = 0;
	table[count++ % 4096] = strdup(name); /* leak: names_overwritten */
}

static void open_session(void)
{
	char *session;
	if (posix_memalign((void **)&session, 64, BLOCK)) /* leak: aligned_sessions */
		abort();
	filled(session, BLOCK);
}

/* ---- healthy ---- */

static void *slots[SLOTS];

static void replace_next(void)
{
	static unsigned at;
	free(slots[at]);
	slots[at] = filled(malloc(BLOCK), BLOCK);
	at = (at + 1) % SLOTS;
}

static void replace_random(void)
{
	unsigned at = (unsigned)rand() % (SLOTS / 4);
	free(slots[at]);
	slots[at] = filled(malloc(4 * BLOCK), 4 * BLOCK);
}

static void fill_random(void)
{
	unsigned at = (unsigned)rand() % (SLOTS / 4); /* nearly full after two seconds */
	if (!slots[at])
		slots[at] = filled(malloc(4 * BLOCK), 4 * BLOCK);
}

static void load_and_end(void)
{
	for (unsigned i = 0; i < 100000; i++)
		filled(malloc(BLOCK), BLOCK);
}

static void load_then_serve(void)
{
	load_and_end();
	serve(NULL);
}

static const struct {
	const char *name;
	void (*request)(void);
	void (*run)(void);
} programs[] = {
	{ "forgotten_answers", forget_answer, NULL },
	{ "connections_in_a_list", open_connection, NULL },
	{ "names_overwritten", keep_name, NULL },
	{ "aligned_sessions", open_session, NULL },
	{ "ring_of_answers", replace_next, NULL },
	{ "random_eviction", replace_random, NULL },
	{ "table_that_fills", fill_random, NULL },
	{ "batch_that_ends_large", NULL, load_and_end },
	{ "loading_then_work", NULL, load_then_serve },
};

int main(int argc, char **argv)
{
	if (argc > 2)
		seconds = strtod(argv[2], NULL);
	for (unsigned i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++) {
		if (strcmp(programs[i].name, argv[1]))
			continue;
		if (programs[i].run)
			programs[i].run();
		else
			serve(programs[i].request);
		return 0;
	}
	return 2;
}
