/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holds_memory MIB [STATUS]: holds MIB of host memory in blocks of 64 KiB, from two threads. Where
 * there is a driver, it holds as much of the device in blocks of 1 MiB. It prints that, frees all,
 * and exits with STATUS. It misbehaves in nothing: it runs while something else is broken.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "interpose/abi/cuda_types.h"

#define HOST_BYTES 65536u
#define DEVICE_BYTES (1u << 20)

static size_t mib;
static CUcontext context;

static struct {
	CUresult (*init)(unsigned int);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*set)(CUcontext);
	CUresult (*alloc)(CUdeviceptr *, size_t);
	CUresult (*free)(CUdeviceptr);
} cu;

static int driver_open(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return 0;
	cu.init = dlsym(library, "cuInit");
	cu.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	cu.set = dlsym(library, "cuCtxSetCurrent");
	cu.alloc = dlsym(library, "cuMemAlloc_v2");
	cu.free = dlsym(library, "cuMemFree_v2");
	return cu.init && !cu.init(0) && cu.retain && !cu.retain(&context, 0);
}

static void *hold_host(void *sum)
{
	size_t count = mib * (1u << 20) / HOST_BYTES;
	unsigned char **blocks = calloc(count, sizeof *blocks);

	for (size_t i = 0; i < count; i++) {
		blocks[i] = malloc(HOST_BYTES);
		memset(blocks[i], (int)i, HOST_BYTES);
	}
	for (size_t i = 0; i < count; i++) {
		*(unsigned long *)sum += blocks[i][i % HOST_BYTES];
		free(blocks[i]);
	}
	free(blocks);
	return NULL;
}

static void *hold_device(void *held)
{
	CUdeviceptr *blocks = calloc(mib, sizeof *blocks);

	cu.set(context);
	for (size_t i = 0; i < mib; i++)
		*(unsigned long *)held += !cu.alloc(&blocks[i], DEVICE_BYTES);
	for (size_t i = 0; i < mib; i++)
		if (blocks[i])
			cu.free(blocks[i]);
	free(blocks);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long sum = 0, device_blocks = 0;
	pthread_t host, device;
	int with_device;

	mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	puts("holding");
	with_device = driver_open();
	pthread_create(&host, NULL, hold_host, &sum);
	if (with_device) {
		pthread_create(&device, NULL, hold_device, &device_blocks);
		pthread_join(device, NULL);
	}
	pthread_join(host, NULL);
	printf("held %zu MiB, sum %lu, device blocks %lu\n", mib, sum, device_blocks);
	return argc > 2 ? atoi(argv[2]) : 0;
}
