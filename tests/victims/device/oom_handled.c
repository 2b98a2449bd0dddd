/* SPDX-License-Identifier: Apache-2.0 */
/* A request for speculative space does not fit. The program continues without it. */
#include "tests/victims/doors.h"

enum { REQUESTS = 12 };

static CUresult try_prefetch(CUdeviceptr *out, size_t bytes) { return cu.alloc(out, bytes); }

int main(int argc, char **argv)
{
	CUdeviceptr space;
	door_open(argc, argv);
	take(32 * MiB);
	size_t free_then = 0, total = 0;
	MUST(cu.memory(&free_then, &total));
	if (!try_prefetch(&space, total)) {
		fprintf(stderr, "victim: the request was meant to fail\n");
		return BROKEN;
	}
	for (int i = 0; i < REQUESTS; i++)
		MUST(cu.release(take(4 * MiB)));
	say("incident api %s requested %zu outcome handled site try_prefetch attempts 1 free %zu total %zu",
	    api_of("cudaMalloc", "cuMemAlloc_v2"), total, free_then, total);
	say("live kind device bytes %zu count 1", 32 * MiB);
	say("clean leaks");
	say("end state exit 0");
	say_device();
	return 0;
}
