/* SPDX-License-Identifier: Apache-2.0 */
/*
 * malloc_pairs PAIRS: that many pairs of malloc and free, of 16 to 512 bytes, with eight blocks alive. Small and regular on
 * purpose: scripts/count-instructions subtracts two runs of it.
 */
#include <stdlib.h>

int main(int argc, char **argv)
{
	unsigned long pairs = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
	void *blocks[8] = { NULL };

	for (unsigned long i = 0; i < pairs; i++) {
		free(blocks[i % 8]);
		blocks[i % 8] = malloc(16 + i % 32 * 16);
	}
	for (unsigned i = 0; i < 8; i++)
		free(blocks[i]);
	return 0;
}
