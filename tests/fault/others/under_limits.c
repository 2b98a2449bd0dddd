/* SPDX-License-Identifier: Apache-2.0 */
/*
 * under_limits allocate MIB: allocates and writes so many blocks of 1 MiB; status 1 when one is
 * refused. With -DLOCKS, under_limits lock: locks all memory, now and in future; prints the result,
 * and whether less than 16 MiB were locked.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCK_BYTES = 1 << 20, LOCKED_KIB_MAX = 16 << 10 };

static int allocate(int blocks)
{
	for (int i = 0; i < blocks; i++) {
		char *block = malloc(BLOCK_BYTES);

		if (!block) {
			printf("refused after %d MiB\n", i);
			return 1;
		}
		memset(block, 1, BLOCK_BYTES);
	}
	printf("%d MiB\n", blocks);
	return 0;
}

#ifdef LOCKS
static long locked_kib(void)
{
	char line[256];
	long kib = -1;
	FILE *status = fopen("/proc/self/status", "r");

	while (status && fgets(line, sizeof line, status))
		sscanf(line, "VmLck: %ld", &kib);
	if (status)
		fclose(status);
	return kib;
}

static int lock(void)
{
	int result = mlockall(MCL_CURRENT | MCL_FUTURE);
	long kib = locked_kib();

	printf("mlockall: %s; %s\n", result ? strerror(errno) : "ok",
	       kib > 0 && kib < LOCKED_KIB_MAX ? "little is locked" : "much is locked, or nothing");
	return result != 0;
}
#else
static int lock(void) { return 2; }
#endif

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "allocate"))
		return allocate(atoi(argv[2]));
	return argc == 2 && !strcmp(argv[1], "lock") ? lock() : 2;
}
