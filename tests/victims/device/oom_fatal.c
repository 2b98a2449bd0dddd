/* SPDX-License-Identifier: Apache-2.0 */
/* Grows by a quarter of what was free at the start until a request fails, reports the error and
 * exits. */
#include "tests/victims/doors.h"

static CUresult append_kv(CUdeviceptr *out, size_t bytes) { return cu.alloc(out, bytes); }

int main(int argc, char **argv)
{
	CUdeviceptr block;
	size_t held = 0, count = 0, free_then = 0, total = 0;
	door_open(argc, argv);
	size_t step = free_now() / 4 / GPU_PAGE * GPU_PAGE + GPU_PAGE;
	CUresult result;
	while ((result = append_kv(&block, step)) == 0) {
		held += step;
		count++;
	}
	MUST(cu.memory(&free_then, &total));
	say("incident api %s requested %zu outcome fatal site append_kv attempts 1 free %zu total %zu",
	    api_of("cudaMalloc", "cuMemAlloc_v2"), step, free_then, total);
	say("live kind device bytes %zu count %zu", held, count);
	say("end state exit 1");
	say("device index 0 free %zu total %zu", free_then, total);
	fprintf(stderr, "CUDA error: out of memory (%d) in append_kv: %zu bytes asked, %zu free\n",
	        result, step, free_then);
	return 1;
}
