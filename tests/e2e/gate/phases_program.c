/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks phases and prints what each one needed: "NAME KIND NEED STAY", in bytes. Short phases
 * follow each other at once, since an event on the wrong side of a bound would show.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "interpose/cuflight.h"

int cudaMalloc(void **at, size_t bytes);
int cudaFree(void *at);
int cudaMallocHost(void **at, size_t bytes);

static void *kept[64];
static int keeps;

__attribute__((noinline)) static void *hold_host(size_t bytes)
{
	void *at = malloc(bytes);

	memset(at, 1, bytes);
	return at;
}

__attribute__((noinline)) static void *hold_device(size_t bytes)
{
	void *at = NULL;

	if (cudaMalloc(&at, bytes))
		exit(3);
	return at;
}

static uint64_t begin(const char *name)
{
	uint64_t id = cuflight_phase_start(name);

	return id;
}

/* Needs `need` more at its peak than at its begin, and keeps `stay` of it. */
static void host_phase(const char *name, size_t need, size_t stay)
{
	uint64_t id = begin(name);
	void *rest = hold_host(need - stay);

	if (stay)
		kept[keeps++] = hold_host(stay);
	free(rest);
	cuflight_phase_end(id);
	printf("%s host %zu %zu\n", name, need, stay);
}

static void device_phase(const char *name, size_t need, size_t stay)
{
	uint64_t id = begin(name);
	void *rest = hold_device(need - stay);

	if (stay)
		kept[keeps++] = hold_device(stay);
	cudaFree(rest);
	cuflight_phase_end(id);
	printf("%s device %zu %zu\n", name, need, stay);
}

int main(void)
{
	static char name[32];
	void *pinned, *before = hold_host(5000000);
	uint64_t id;

	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	puts("");
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "host %c", 'a' + i);
		host_phase(name, 100000 + (size_t)i * 1000, i % 3 ? 0 : 40000);
	}
	kept[keeps++] = hold_device(7 << 20);
	device_phase("device kept", 9 << 20, 3 << 20);
	device_phase("device freed", 4 << 20, 0);
	id = begin("pinned");
	cudaMallocHost(&pinned, 1 << 20);
	cuflight_phase_end(id);
	printf("pinned pinned %d %d\n", 1 << 20, 1 << 20);
	id = begin("freed");
	free(before);
	cuflight_phase_end(id);
	printf("freed host 0 -5000000\n");
	id = begin("open");
	kept[keeps++] = hold_host(123456);
	printf("open host 123456 123456\n");
	fflush(stdout);
	_Exit(keeps == 0);
}
