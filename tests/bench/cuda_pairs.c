/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one CUDA allocation and free costs: cuda_pairs PAIRS [sync|async]. Times PAIRS pairs of
 * cuMemAlloc and cuMemFree (or the stream-ordered ones) from 8 call sites under 20 frames, and
 * prints nanoseconds for each pair. It measures the driver that it finds: run it with and without
 * the recorder and compare. Prints only the number, because scripts/bench reads it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "interpose/abi/cuda_types.h"

#define FRAMES 20
#define SITES 8
#define BYTES (64u << 10)

static CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set_current)(CUcontext);
static CUresult (*alloc)(CUdeviceptr *, size_t), (*release)(CUdeviceptr);
static CUresult (*alloc_async)(CUdeviceptr *, size_t, CUstream),
	(*release_async)(CUdeviceptr, CUstream);
static int async;

static const struct name {
	void *function;
	const char *symbol;
} names[] = {
	{&init, "cuInit"}, {&retain, "cuDevicePrimaryCtxRetain"}, {&set_current, "cuCtxSetCurrent"},
	{&alloc, "cuMemAlloc_v2"}, {&release, "cuMemFree_v2"},
	{&alloc_async, "cuMemAllocAsync"}, {&release_async, "cuMemFreeAsync"},
};

static void fail(const char *what)
{
	fprintf(stderr, "cuda_pairs: %s\n", what);
	exit(1);
}

static void one_pair(void)
{
	CUdeviceptr pointer = 0;

	if (async ? alloc_async(&pointer, BYTES, NULL) : alloc(&pointer, BYTES))
		fail("an allocation failed");
	if (async ? release_async(pointer, NULL) : release(pointer))
		fail("a free failed");
}

/* distinct functions, so that stacks differ; volatile keeps each call a call of its own */
#define SITE(n) static __attribute__((noinline)) void site_##n(void) { one_pair(); __asm__ volatile("" : : "i"(n)); }
SITE(0) SITE(1) SITE(2) SITE(3) SITE(4) SITE(5) SITE(6) SITE(7)
static void (*const sites[SITES])(void) = {
	site_0, site_1, site_2, site_3, site_4, site_5, site_6, site_7,
};

static __attribute__((noinline)) void descend(unsigned frames, unsigned long pairs)
{
	if (frames) {
		descend(frames - 1, pairs);
		__asm__ volatile("");
		return;
	}
	for (unsigned long i = 0; i < pairs; i++)
		sites[i % SITES]();
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	unsigned long pairs = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	CUcontext context;
	double began_ns;

	async = argc > 2 && !strcmp(argv[2], "async");
	if (!pairs || !driver)
		fail(driver ? "usage: cuda_pairs PAIRS [sync|async]" : "no libcuda.so.1");
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void *found = dlsym(driver, names[i].symbol);

		if (!found)
			fail(names[i].symbol);
		memcpy(names[i].function, &found, sizeof(found));
	}
	if (init(0) || retain(&context, 0) || set_current(context))
		fail("no device");
	descend(FRAMES, 1000); /* first sights: stacks, modules, the device itself */
	began_ns = now_ns();
	descend(FRAMES, pairs);
	printf("%.1f\n", (now_ns() - began_ns) / (double)pairs);
	return 0;
}
