/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_grows MIB: allocates MIB of host memory, 256 KiB at a time, and touches it. In a smaller
 * cgroup the kernel kills it. No CUDA.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHUNK_BYTES = 256 << 10 };

static void load_chunk(void)
{
	const struct timespec pause = { 0, 1000000 };
	memset(malloc(CHUNK_BYTES), 1, CHUNK_BYTES);
	nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
	size_t chunks = (argc > 1 ? strtoul(argv[1], NULL, 10) : 64) * ((1 << 20) / CHUNK_BYTES);
	for (size_t i = 0; i < chunks; i++)
		load_chunk();
	puts("end state exit 0");
	return 0;
}
