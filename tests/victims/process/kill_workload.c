/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill_workload [churn] TRUTH: threads allocate, free and resize device and host memory without
 * end, and keep the truth about it in a shared file (kill_truth.h). They open the device while they
 * already work on host memory. The test kills it. It misbehaves in nothing else.
 *
 * churn: only host memory. A thread works for a while; a new one succeeds it and takes over its
 * blocks. Meanwhile children are forked, which allocate a little and end.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "interpose/abi/cuda_types.h"
#include "tests/victims/process/kill_truth.h"

#define HOST_ALONE_US 3000
#define LIFE_STEPS 500    /* of a thread of the churn, at most */
#define FORK_EVERY_US 2000

static struct kill_truth *truth;
static CUcontext context; /* NULL until the device is open */

static struct {
	CUresult (*init)(unsigned int);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*set)(CUcontext);
	CUresult (*alloc)(CUdeviceptr *, size_t);
	CUresult (*alloc_async)(CUdeviceptr *, size_t, CUstream);
	CUresult (*alloc_managed)(CUdeviceptr *, size_t, unsigned int);
	CUresult (*alloc_pinned)(void **, size_t, unsigned int);
	CUresult (*free)(CUdeviceptr);
	CUresult (*free_async)(CUdeviceptr, CUstream);
	CUresult (*free_pinned)(void *);
} cu;

static void *symbol(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found) {
		fprintf(stderr, "kill_workload: no %s\n", name);
		exit(2);
	}
	return found;
}

static void driver_open(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	CUcontext opened = NULL;

	if (!library) {
		fprintf(stderr, "kill_workload: %s\n", dlerror());
		exit(2);
	}
	cu.init = symbol(library, "cuInit");
	cu.retain = symbol(library, "cuDevicePrimaryCtxRetain");
	cu.set = symbol(library, "cuCtxSetCurrent");
	cu.alloc = symbol(library, "cuMemAlloc_v2");
	cu.alloc_async = symbol(library, "cuMemAllocAsync");
	cu.alloc_managed = symbol(library, "cuMemAllocManaged");
	cu.alloc_pinned = symbol(library, "cuMemHostAlloc");
	cu.free = symbol(library, "cuMemFree_v2");
	cu.free_async = symbol(library, "cuMemFreeAsync");
	cu.free_pinned = symbol(library, "cuMemFreeHost");
	if (cu.init(0) || cu.retain(&opened, 0)) {
		fprintf(stderr, "kill_workload: no device\n");
		exit(2);
	}
	__atomic_store_n(&context, opened, __ATOMIC_RELEASE);
}

/* 0: failed. */
static uint64_t block_alloc(enum kill_way way, uint64_t bytes)
{
	CUdeviceptr device = 0;
	void *pinned = NULL;
	CUresult failed = 0;

	switch (way) {
	case KILL_DEVICE: failed = cu.alloc(&device, bytes); break;
	case KILL_ASYNC: failed = cu.alloc_async(&device, bytes, NULL); break;
	case KILL_MANAGED:
		failed = cu.alloc_managed(&device, bytes, 1 /* CU_MEM_ATTACH_GLOBAL */);
		break;
	case KILL_PINNED:
		failed = cu.alloc_pinned(&pinned, bytes, 0);
		return failed ? 0 : (uint64_t)(uintptr_t)pinned;
	default: return (uint64_t)(uintptr_t)malloc(bytes);
	}
	return failed ? 0 : device;
}

static bool block_free(enum kill_way way, uint64_t addr)
{
	switch (way) {
	case KILL_DEVICE: case KILL_MANAGED: return !cu.free(addr);
	case KILL_ASYNC: return !cu.free_async(addr, NULL);
	case KILL_PINNED: return !cu.free_pinned((void *)(uintptr_t)addr);
	default: free((void *)(uintptr_t)addr); return true;
	}
}

static void publish(uint32_t *field, uint32_t value)
{
	__atomic_store_n(field, value, __ATOMIC_RELEASE);
}
static void publish_addr(struct kill_slot *slot, uint64_t addr)
{
	__atomic_store_n(&slot->addr, addr, __ATOMIC_RELEASE);
}
static void count(uint64_t *counter) { __atomic_store_n(counter, *counter + 1, __ATOMIC_RELEASE); }

static bool do_alloc(struct kill_thread *me, struct kill_slot *slot, enum kill_way way,
                     uint64_t bytes)
{
	uint64_t addr;

	me->way = way;
	me->bytes = bytes;
	publish(&me->doing, KILL_ALLOC);
	addr = block_alloc(way, bytes);
	slot->way = way;
	slot->bytes = bytes;
	publish_addr(slot, addr);
	count(&me->allocs[way]);
	return addr != 0;
}

static bool do_free(struct kill_thread *me, struct kill_slot *slot)
{
	bool done;

	me->way = slot->way;
	publish(&me->doing, KILL_FREE);
	done = block_free(slot->way, slot->addr);
	publish_addr(slot, 0);
	count(&me->frees[slot->way]);
	return done;
}

static bool do_resize(struct kill_thread *me, struct kill_slot *slot, uint64_t bytes)
{
	void *moved;

	me->way = slot->way;
	me->bytes = bytes;
	me->old_addr = slot->addr;
	me->old_bytes = slot->bytes;
	publish(&me->doing, KILL_RESIZE);
	moved = realloc((void *)(uintptr_t)slot->addr, bytes);
	publish_addr(slot, 0);
	slot->bytes = bytes;
	publish_addr(slot, (uint64_t)(uintptr_t)moved);
	count(&me->frees[slot->way]);
	count(&me->allocs[slot->way]);
	return moved != NULL;
}

/* Half of the slots live on average, so that addresses are reused by other threads at once. */
static bool step(struct kill_thread *me, unsigned *seed, bool with_device)
{
	uint32_t index = (uint32_t)rand_r(seed) % KILL_SLOTS;
	struct kill_slot *slot = &me->slots[index];
	uint64_t bytes = (uint64_t)(rand_r(seed) % 200) * KILL_SIZE_STEP + KILL_SIZE_REST;
	bool done;

	me->slot = index;
	if (!slot->addr)
		done = do_alloc(me, slot,
		                with_device ? (enum kill_way)(rand_r(seed) % KILL_WAYS) : KILL_HOST,
		                bytes);
	else if (slot->way == KILL_HOST && rand_r(seed) % 3 == 0)
		done = do_resize(me, slot, bytes);
	else
		done = do_free(me, slot);
	publish(&me->doing, KILL_NOTHING);
	return done;
}

static void *work(void *own)
{
	struct kill_thread *me = own;
	unsigned seed = (unsigned)syscall(SYS_gettid);
	bool with_device = false;

	publish(&me->tid, (uint32_t)syscall(SYS_gettid));
	do {
		CUcontext now = with_device ? NULL : __atomic_load_n(&context, __ATOMIC_ACQUIRE);
		if (now)
			with_device = !cu.set(now);
	} while (step(me, &seed, with_device));
	publish(&truth->failed, 1);
	return NULL;
}

/* A short life, then the heir's. */
static void *work_and_bequeath(void *own)
{
	struct kill_thread *me = own;
	unsigned seed = (unsigned)syscall(SYS_gettid);
	pthread_attr_t detached;
	pthread_t heir;

	publish(&me->tid, (uint32_t)syscall(SYS_gettid));
	for (unsigned i = (unsigned)rand_r(&seed) % LIFE_STEPS; i; i--)
		if (!step(me, &seed, false))
			publish(&truth->failed, 1);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&heir, &detached, work_and_bequeath, me))
		publish(&truth->failed, 1);
	return NULL;
}

static void child_work(unsigned seed)
{
	for (unsigned i = 0; i < KILL_CHILD_ALLOCS; i++) {
		void *block = malloc((size_t)(rand_r(&seed) % 200) * KILL_SIZE_STEP +
		                     KILL_SIZE_REST);
		if (i >= KILL_CHILD_KEEPS)
			free(block);
	}
	_exit(0);
}

static _Noreturn void churn(void)
{
	unsigned seed = (unsigned)getpid();
	pthread_t thread;

	publish(&truth->churn, 1);
	for (unsigned i = 0; i < KILL_CHURNERS; i++)
		pthread_create(&thread, NULL, work_and_bequeath, &truth->threads[i]);
	for (unsigned i = 0; i < KILL_CHURNERS; i++)
		while (!__atomic_load_n(&truth->threads[i].tid, __ATOMIC_ACQUIRE))
			usleep(50);
	publish(&truth->started, 1);
	for (;;) {
		pid_t child = fork();
		if (!child)
			child_work(seed);
		if (child > 0)
			waitpid(child, NULL, 0);
		usleep((unsigned)rand_r(&seed) % FORK_EVERY_US);
	}
}

int main(int argc, char **argv)
{
	int fd = argc == 2 || argc == 3 ? open(argv[argc - 1], O_RDWR) : -1;
	pthread_t threads[KILL_THREADS];

	truth = fd < 0 ? MAP_FAILED
	               : mmap(NULL, sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (truth == MAP_FAILED) {
		fprintf(stderr, "usage: kill_workload [churn] TRUTH (a file of %zu bytes)\n",
		        sizeof *truth);
		return 2;
	}
	if (truth->started) {
		fprintf(stderr, "kill_workload: '%s' has been used before\n", argv[argc - 1]);
		return 2;
	}
	if (argc == 3)
		churn();
	for (unsigned i = 0; i < KILL_THREADS; i++)
		pthread_create(&threads[i], NULL, work, &truth->threads[i]);
	for (unsigned i = 0; i < KILL_THREADS; i++)
		while (!__atomic_load_n(&truth->threads[i].tid, __ATOMIC_ACQUIRE))
			usleep(50);
	publish(&truth->started, 1);
	usleep(HOST_ALONE_US);
	driver_open();
	for (unsigned i = 0; i < KILL_THREADS; i++)
		pthread_join(threads[i], NULL);
	return 1;
}
