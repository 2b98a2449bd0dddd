/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool grown by VMM whose handles are released immediately. Releasing frees nothing; unmapping
 * does.
 */
#include "tests/victims/vmm.h"

enum { PIECES = 8, UNMAPPED = 3 };

int main(int argc, char **argv)
{
	door_open(argc, argv);
	size_t piece = 4 * vmm_granule(), before = free_now();
	CUdeviceptr pool = vmm_reserve(64 * piece);
	for (int i = 0; i < PIECES; i++)
		vmm_grow(pool + (size_t)i * piece, piece);
	if (before - free_now() != PIECES * piece)
		fprintf(stderr, "victim: %d pieces of %zu took %zu bytes\n", PIECES, piece,
		        before - free_now());
	for (int i = PIECES - UNMAPPED; i < PIECES; i++)
		MUST(cu.unmap(pool + (size_t)i * piece, piece));
	say("live kind vmm bytes %zu count %d", (PIECES - UNMAPPED) * piece, PIECES - UNMAPPED);
	say("vmm mapped %zu", (PIECES - UNMAPPED) * piece);
	say("hole layer vmm bytes %zu", (64 - PIECES + UNMAPPED) * piece);
	say("clean leaks");
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
