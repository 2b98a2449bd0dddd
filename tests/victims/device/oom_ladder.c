/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As caching allocators do: the request fails, a part of the cache is freed, the retry fails too,
 * the rest is freed, the next retry succeeds.
 */
#include "tests/victims/doors.h"

static CUresult serve_large_request(CUdeviceptr *out, size_t bytes) { return cu.alloc(out, bytes); }

int main(int argc, char **argv)
{
	CUdeviceptr batch;
	size_t wanted = 600 * MiB, free_then = 0, total = 0;
	door_open(argc, argv);
	if (free_now() < 2 * wanted)
		skip("less than 1200 MiB of device memory are free");
	CUdeviceptr little = take(100 * MiB);
	CUdeviceptr much = take((free_now() - 200 * MiB) / GPU_PAGE * GPU_PAGE);
	bool failed = serve_large_request(&batch, wanted);
	MUST(cu.release(little));
	failed = failed && serve_large_request(&batch, wanted);
	MUST(cu.memory(&free_then, &total));
	MUST(cu.release(much));
	if (!failed) {
		fprintf(stderr, "victim: the request was meant to fail twice\n");
		return BROKEN;
	}
	MUST(serve_large_request(&batch, wanted));
	say("incident api %s requested %zu outcome recovered site serve_large_request attempts 2 free %zu total %zu",
	    api_of("cudaMalloc", "cuMemAlloc_v2"), wanted, free_then, total);
	say("live kind device bytes %zu count 1", wanted);
	say("end state exit 0");
	say_device();
	return 0;
}
