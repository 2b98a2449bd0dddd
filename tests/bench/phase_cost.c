/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What marking work costs: phase_cost SORT COUNT. SORT is phase or request (interpose/cuflight.h)
 * or range (NVTX, through a table as in NVTX's header). Prints CPU nanoseconds for one begin and
 * end. Before the clock starts it writes about as many as the ring admits, so that first touches of
 * pages are not measured. A larger COUNT measures a flood.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "interpose/cuflight.h"

typedef void (*any_fn)(void);
static void nothing(void) { }
static any_fn functions[16] = { nothing, nothing, nothing, nothing, nothing, nothing,
	                        nothing, nothing, nothing, nothing, nothing, nothing,
	                        nothing, nothing, nothing, nothing };
static any_fn *places[16];

static int function_table(int module, any_fn ***table, unsigned *count)
{
	for (unsigned i = 0; i < 16; i++)
		places[i] = &functions[i];
	*table = places;
	*count = module == 1 ? 16 : 0;
	return 1;
}

static const void *exports(uint32_t id)
{
	static const struct {
		size_t bytes;
		int (*get)(int, any_fn ***, unsigned *);
	} callbacks = { sizeof callbacks, function_table };
	return id == 1 ? &callbacks : NULL;
}

static void phase(void)
{
	cuflight_phase_push("attention of a layer");
	cuflight_phase_pop();
}

static void request(void) { cuflight_request_end(cuflight_request_begin("generate", 0)); }

static void range(void)
{
	((int (*)(const char *))functions[9])("attention of a layer");
	((int (*)(void))functions[11])();
}

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*say)(void);
	} sorts[] = { { "phase", phase }, { "request", request }, { "range", range } };
	int (*inject)(const void *(*)(uint32_t)) =
		(int (*)(const void *(*)(uint32_t)))dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx2");
	long count = argc > 2 ? atol(argv[2]) : 0;
	if (inject)
		inject(exports);
	for (unsigned i = 0; i < sizeof sorts / sizeof *sorts && count > 0; i++) {
		double began_ns;
		if (strcmp(argv[1], sorts[i].name) != 0)
			continue;
		for (int warm = 0; warm < 10000; warm++)
			sorts[i].say();
		began_ns = now_ns();
		for (long n = 0; n < count; n++)
			sorts[i].say();
		printf("%.1f\n", (now_ns() - began_ns) / (double)count);
		return 0;
	}
	fprintf(stderr, "usage: phase_cost phase|request|range COUNT\n");
	return 2;
}
