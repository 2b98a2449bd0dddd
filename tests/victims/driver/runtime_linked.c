/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked to libcudart.so.13 like most programs: its versioned names must meet the recorder's
 * unversioned ones.
 */
#include <stdio.h>
#include <stddef.h>

int cudaMalloc(void **out, size_t bytes);
int cudaFree(void *ptr);
int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);

int main(void)
{
	size_t bytes = 5u << 20, free_bytes = 0, total = 0;
	void *blocks[12];
	for (int i = 0; i < 12; i++)
		if (cudaMalloc(&blocks[i], bytes))
			return 3;
	for (int i = 0; i < 8; i++)
		if (cudaFree(blocks[i]))
			return 3;
	if (cudaMemGetInfo(&free_bytes, &total))
		return 3;
	printf("door runtime-linked\nlive kind device bytes %zu count 4\nclean incidents\nend state exit 0\n"
	       "device index 0 free %zu total %zu\n",
	       4 * bytes, free_bytes, total);
	return 0;
}
