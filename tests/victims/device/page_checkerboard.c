/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills pages with blocks of 128 KiB, frees every second one, then allocates whole pages until none
 * is left. The free memory is in holes inside pages that the other blocks pin. A request larger
 * than every hole fails although the sum of the holes would be enough.
 */
#include "tests/victims/doors.h"

enum { BLOCKS = 256 };
#define BLOCK (128 * KiB)

static CUdeviceptr blocks[BLOCKS];

static void cache_tensors(void)
{
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = take(BLOCK);
	for (int i = 1; i < BLOCKS; i += 2) {
		MUST(cu.release(blocks[i]));
		blocks[i] = 0;
	}
}

static int by_address(const void *a, const void *b)
{
	CUdeviceptr x = *(const CUdeviceptr *)a, y = *(const CUdeviceptr *)b;
	return x < y ? -1 : x > y;
}

/* the largest run of free bytes inside one page that holds a block, its edges included */
static size_t largest_hole(void)
{
	size_t largest = 0;
	CUdeviceptr page = 0, end = 0;
	qsort(blocks, BLOCKS, sizeof *blocks, by_address);
	for (int i = 0; i <= BLOCKS; i++) {
		CUdeviceptr at = i < BLOCKS ? blocks[i] : 0;
		if (i < BLOCKS && !at)
			continue;
		if (end && at / GPU_PAGE != page && (page + 1) * GPU_PAGE - end > largest)
			largest = (page + 1) * GPU_PAGE - end;
		if (at / GPU_PAGE != page)
			end = at / GPU_PAGE * GPU_PAGE;
		if (at && at - end > largest)
			largest = at - end;
		page = at / GPU_PAGE;
		end = at + BLOCK;
	}
	return largest;
}

static CUresult load_adapter(CUdeviceptr *out, size_t bytes) { return cu.alloc(out, bytes); }

/* takes all whole pages, largest pieces first; returns how many pieces */
static int take_all_pages(size_t *bytes)
{
	int count = 0;
	CUdeviceptr ptr;
	for (size_t step = (size_t)1 << 40; step >= GPU_PAGE; step /= 2)
		while (step <= free_now() && !cu.alloc(&ptr, step)) {
			*bytes += step;
			count++;
		}
	return count;
}

int main(int argc, char **argv)
{
	CUdeviceptr adapter;
	size_t held = 0, free_then = 0, total = 0, wanted = 2 * BLOCK;
	door_open(argc, argv);
	cache_tensors();
	int pieces = take_all_pages(&held);
	size_t hole = largest_hole();
	if (!load_adapter(&adapter, wanted)) {
		fprintf(stderr, "victim: the request was meant to fail; the largest hole is %zu\n",
		        hole);
		return BROKEN;
	}
	MUST(cu.memory(&free_then, &total));
	say("hole layer page bytes %zu", hole);
	say("fits_if_packed true");
	say("incident api %s requested %zu outcome fatal site load_adapter attempts 1 free %zu total %zu",
	    api_of("cudaMalloc", "cuMemAlloc_v2"), wanted, free_then, total);
	say("live kind device bytes %zu count %d", held + BLOCKS / 2 * BLOCK, pieces + BLOCKS / 2);
	say("end state exit 1");
	say("device index 0 free %zu total %zu", free_then, total);
	return 1;
}
