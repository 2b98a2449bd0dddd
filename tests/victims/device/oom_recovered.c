/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds most of the device in a cache. A request does not fit, the cache is dropped, the retry
 * succeeds.
 */
#include "tests/victims/doors.h"

static CUdeviceptr fill_cache(size_t bytes) { return take(bytes); }

static CUresult serve_large_request(CUdeviceptr *out, size_t bytes) { return cu.alloc(out, bytes); }

int main(int argc, char **argv)
{
	CUdeviceptr batch;
	door_open(argc, argv);
	size_t left = 256 * MiB, wanted = 512 * MiB, free_bytes = free_now();
	if (free_bytes < 2 * wanted)
		skip("less than 1 GiB of device memory is free");
	CUdeviceptr cached = fill_cache((free_bytes - left) / GPU_PAGE * GPU_PAGE);
	if (!serve_large_request(&batch, wanted)) {
		fprintf(stderr, "victim: the request was meant to fail\n");
		return BROKEN;
	}
	size_t free_then = 0, total = 0;
	MUST(cu.memory(&free_then, &total));
	MUST(cu.release(cached));
	MUST(serve_large_request(&batch, wanted));
	say("incident api %s requested %zu outcome recovered site serve_large_request attempts 1 free %zu total %zu",
	    api_of("cudaMalloc", "cuMemAlloc_v2"), wanted, free_then, total);
	say("live kind device bytes %zu count 1", wanted);
	say("clean leaks");
	say("end state exit 0");
	say_device();
	return 0;
}
