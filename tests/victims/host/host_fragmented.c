/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_fragmented [MIB]: fills MIB (64) with 64-byte blocks and frees all but every 64th. One block
 * is left in each page, so no page can be released. No CUDA. Fragmentation, and no leak.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 64, KEEP_EVERY = 64 };

static void *keep_index_entry(void) { return memset(malloc(BLOCK_BYTES), 1, BLOCK_BYTES); }
static void *parse_token(void) { return memset(malloc(BLOCK_BYTES), 1, BLOCK_BYTES); }

int main(int argc, char **argv)
{
	size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 64, count = (mib << 20) / BLOCK_BYTES;
	void **blocks = calloc(count, sizeof *blocks);
	for (size_t i = 0; i < count; i++)
		blocks[i] = i % KEEP_EVERY ? parse_token() : keep_index_entry();
	for (size_t i = 0; i < count; i++)
		if (i % KEEP_EVERY)
			free(blocks[i]);
	printf("clean leaks\n");
	printf("host verdict fragmented\n");
	printf("host pin keep_index_entry\n");
	printf("host fragmented_least %zu\n", (mib << 20) / 2);
	printf("end state exit 0\n");
	return 0;
}
