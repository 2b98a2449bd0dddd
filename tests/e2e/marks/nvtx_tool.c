/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tool for NVTX, as Nsight is one: named by the environment, it takes some functions of the core
 * modules and counts their calls. Its ids begin at 1,000, its handles differ from the recorder's,
 * and at the end it prints the calls.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

typedef void (*any_fn)(void);
struct callbacks {
	size_t bytes;
	int (*get_module_function_table)(int module, any_fn ***table, unsigned *count);
};

static unsigned pushes, pops, wrong;
static uint64_t started = 1000, ended;

static int push(const char *text) { return (int)pushes++ + 100 + (text == NULL); }
static int pop(void) { return (int)pops++ + 200; }
static uint64_t start(const char *text) { return started++ + (text == NULL); }
static uint64_t start_wide(const wchar_t *text) { return started++ + (text == NULL); }
static void end(uint64_t id) { wrong += id < 1000 || id >= started; ended++; }
static void *domain(const char *name) { return (void *)name; }
static void say(void)
{
	fprintf(stderr, "tool: %u pushes, %u pops, %u started, %u ended, %u wrong\n", pushes, pops,
	        (unsigned)started - 1000, (unsigned)ended, wrong);
}

int InitializeInjectionNvtx2(const void *(*exports)(uint32_t));
int InitializeInjectionNvtx2(const void *(*exports)(uint32_t))
{
	const struct callbacks *c = exports(1);
	any_fn **core, **core2;
	unsigned count, count2;
	if (getenv("NVTX_TOOL_FAILS") || !c->get_module_function_table(1, &core, &count) ||
	    !c->get_module_function_table(5, &core2, &count2))
		return 0;
	*core[5] = (any_fn)start;
	*core[6] = (any_fn)start_wide;
	*core[7] = (any_fn)end;
	*core[9] = (any_fn)push;
	*core[11] = (any_fn)pop;
	*core2[12] = (any_fn)domain;
	return !atexit(say);
}
