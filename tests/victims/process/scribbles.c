/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overwrites the recorder's memory, as a stray pointer would: scribbles BYTE [BYTES]. Finds the mapping of a *.cuf file in
 * /proc/self/maps and fills it (or its first BYTES) with BYTE. Before and after it allocates and frees, on the device and on
 * the host, the second time in a new thread as well. Prints the same with and without a recorder, and exits with 7.
 */
#include "tests/victims/doors.h"
#include <pthread.h>
#include <stdint.h>

enum { PAIRS = 3000, STATUS = 7 };

/* The first mapping of a recording; 0: there is none. */
static uintptr_t find_recording(size_t *bytes)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[1024];
	uintptr_t start = 0, end;

	*bytes = 0;
	while (maps && !*bytes && fgets(line, sizeof line, maps))
		if (strstr(line, ".cuf\n") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			*bytes = end - start;
	if (maps)
		fclose(maps);
	return *bytes ? start : 0;
}

static void *work(void *sum)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		CUdeviceptr block;
		unsigned char *host = malloc(64 + i % 4096);

		MUST(cu.alloc(&block, 4096 + i));
		host[0] = (unsigned char)i;
		*(unsigned long *)sum += host[0];
		MUST(cu.release(block));
		free(host);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int byte = argc > 1 ? (int)strtol(argv[1], NULL, 0) : 0xa5;
	size_t bytes, most = argc > 2 ? strtoul(argv[2], NULL, 0) : SIZE_MAX;
	unsigned long sum = 0;
	uintptr_t recording;
	pthread_t thread;

	door_open(1, argv);
	work(&sum);
	recording = find_recording(&bytes);
	if (recording)
		memset((void *)recording, byte, bytes < most ? bytes : most);
	work(&sum);
	pthread_create(&thread, NULL, work, &sum);
	pthread_join(thread, NULL);
	say("sum %lu", sum);
	fprintf(stderr, "done\n");
	return STATUS;
}
