/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_leak [MIB [US]]: serves requests. Each allocates and frees blocks of many sizes, and forgets
 * 64-byte blocks of one call site: MIB (64) in the end. US microseconds (0) pass between requests.
 * No CUDA. A leak, and no fragmentation.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REQUESTS = 1024, FORGOTTEN_BYTES = 64, SCRATCH = 40 };

static size_t forgotten_in_request;

static void remember_session(void) { memset(malloc(FORGOTTEN_BYTES), 1, FORGOTTEN_BYTES); }

static void serve_request(unsigned number)
{
	char *scratch[SCRATCH];
	for (unsigned i = 0; i < SCRATCH; i++)
		scratch[i] = malloc(16 + (number * 7919 + i * 104729) % 6000);
	for (size_t i = 0; i < forgotten_in_request; i++)
		remember_session();
	for (unsigned i = 0; i < SCRATCH; i++)
		free(scratch[i]);
}

int main(int argc, char **argv)
{
	size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 64;
	forgotten_in_request = (mib << 20) / FORGOTTEN_BYTES / REQUESTS;
	for (unsigned i = 0; i < REQUESTS; i++) {
		serve_request(i);
		if (argc > 2)
			usleep((useconds_t)strtoul(argv[2], NULL, 10));
	}
	printf("leak site remember_session kind host bytes %zu count %zu\n",
	       REQUESTS * forgotten_in_request * FORGOTTEN_BYTES, REQUESTS * forgotten_in_request);
	printf("host verdict fine\n");
	printf("end state exit 0\n");
	return 0;
}
