/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many_blocks ALLOCATIONS [PROCESSES]: allocates and frees on device 0 through the driver, and keeps
 * every 512th block. With PROCESSES, so many ranks hold their blocks until the last one has
 * requested more than there is. Exit status 1 then, and when anything else fails.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEPT_EVERY = 512, BLOCK = 64 << 10, LARGE = 4 << 20, READY = 60, GO = 61 };

static int (*allocate)(uint64_t *address, size_t bytes);
static int (*release)(uint64_t address);

static int open_device(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context;
	int (*init)(unsigned), (*retain)(void **, int), (*use)(void *);

	if (!driver)
		return 1;
	*(void **)&init = dlsym(driver, "cuInit");
	*(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
	*(void **)&use = dlsym(driver, "cuCtxSetCurrent");
	*(void **)&allocate = dlsym(driver, "cuMemAlloc_v2");
	*(void **)&release = dlsym(driver, "cuMemFree_v2");
	return init(0) || retain(&context, 0) || use(context);
}

static int serve(unsigned allocations)
{
	uint64_t address;

	if (open_device() || allocate(&address, LARGE))
		return 1;
	for (unsigned i = 0; i < allocations; i++) {
		if (allocate(&address, BLOCK + i % 7 * 512))
			return 1;
		if (i % KEPT_EVERY && release(address))
			return 1;
	}
	return 0;
}

/* The last rank begins when all others hold their blocks. */
static int serve_rank(unsigned allocations, int is_last)
{
	uint64_t address;
	char byte = 0;

	if (serve(allocations))
		return 1;
	if (is_last)
		return allocate(&address, (size_t)1 << 40) != 0;
	if (write(READY, &byte, 1) != 1 || close(READY))
		return 1;
	return read(GO, &byte, 1) != 0;
}

static void start(char **argv, unsigned rank, int is_last)
{
	char number[16];
	char *arguments[] = { argv[0], argv[1], is_last ? "last" : "rank", NULL };

	if (fork())
		return;
	snprintf(number, sizeof number, "%u", rank);
	setenv("RANK", number, 1);
	execv("/proc/self/exe", arguments);
	_exit(127);
}

static int start_ranks(char **argv, unsigned count)
{
	int ready[2], go[2], status, failed = 0, last_status;
	char byte;

	if (pipe(ready) || pipe(go) || dup2(ready[1], READY) < 0 || dup2(go[0], GO) < 0)
		return 1;
	close(ready[1]);
	close(go[0]);
	/* ranks do not inherit the end that the launcher closes */
	fcntl(go[1], F_SETFD, FD_CLOEXEC);
	for (unsigned rank = 0; rank + 1 < count; rank++)
		start(argv, rank, 0);
	for (unsigned rank = 0; rank + 1 < count; rank++)
		if (read(ready[0], &byte, 1) != 1)
			return 1;
	start(argv, count - 1, 1);
	if (wait(&last_status) < 0)
		return 1;
	close(go[1]);
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed || last_status;
}

int main(int argc, char **argv)
{
	unsigned allocations = (unsigned)atoi(argv[1]);

	if (argc < 3)
		return serve(allocations);
	if (argv[2][0] == 'r' || argv[2][0] == 'l')
		return serve_rank(allocations, argv[2][0] == 'l');
	return start_ranks(argv, (unsigned)atoi(argv[2]));
}
