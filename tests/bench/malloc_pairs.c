/* SPDX-License-Identifier: Apache-2.0 */
/*
 * malloc_pairs PAIRS [map|standing]: that many pairs of malloc and free, of 16 to 512 bytes, with eight blocks alive; or
 * of mmap and munmap, of 1 MiB, with 64 maps alive; or of 256 KiB, with all of them alive at one time. Small and regular on purpose: scripts/count-instructions subtracts two runs of it.
 */
#include <stdlib.h>
#include <sys/mman.h>

static int map_pairs(unsigned long pairs)
{
	enum { MAPS = 64, BYTES = 1 << 20 };
	static void *maps[MAPS];

	for (unsigned long i = 0; i < pairs; i++) {
		if (maps[i % MAPS])
			munmap(maps[i % MAPS], BYTES);
		maps[i % MAPS] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	return 0;
}

/* Every second one cannot be written to, so that the kernel does not unite them. */
static int standing_maps(unsigned long pairs)
{
	enum { BYTES = 256 << 10 };
	void **maps = malloc(pairs * sizeof *maps);

	for (unsigned long i = 0; i < pairs; i++)
		maps[i] = mmap(NULL, BYTES, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned long i = 0; i < pairs; i++)
		munmap(maps[i], BYTES);
	free(maps);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long pairs = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
	void *blocks[8] = { NULL };

	if (argc > 2)
		return argv[2][0] == 'm' ? map_pairs(pairs) : standing_maps(pairs);
	for (unsigned long i = 0; i < pairs; i++) {
		free(blocks[i % 8]);
		blocks[i % 8] = malloc(16 + i % 32 * 16);
	}
	for (unsigned i = 0; i < 8; i++)
		free(blocks[i]);
	return 0;
}
