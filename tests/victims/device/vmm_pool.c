/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two of ggml's scratch pools (ggml_cuda_pool_vmm): 32 GiB of addresses each, grown by what an
 * operation lacks, with handles released immediately. One survives. The other is destroyed as ggml
 * does it, by one unmap over everything that was ever mapped there.
 */
#include "tests/victims/vmm.h"

#define POOL_BYTES ((size_t)32 << 30)
enum { GROWTHS = 5 };
static const size_t granules[GROWTHS] = {3, 1, 7, 2, 16};

struct pool { CUdeviceptr start; size_t bytes; };

struct pool ggml_pool_open(void);
void ggml_cuda_pool_vmm_grow(struct pool *pool, size_t bytes);
void ggml_pool_close(struct pool *pool);

struct pool ggml_pool_open(void) { return (struct pool){vmm_reserve(POOL_BYTES), 0}; }

void ggml_cuda_pool_vmm_grow(struct pool *pool, size_t bytes)
{
	vmm_grow(pool->start + pool->bytes, bytes);
	pool->bytes += bytes;
}

void ggml_pool_close(struct pool *pool)
{
	MUST(cu.unmap(pool->start, pool->bytes));
	MUST(cu.reservation_free(pool->start, POOL_BYTES));
}

int main(int argc, char **argv)
{
	door_open(argc, argv);
	size_t granule = vmm_granule(), before = free_now();
	struct pool kept = ggml_pool_open(), closed = ggml_pool_open();
	for (int i = 0; i < GROWTHS; i++) {
		ggml_cuda_pool_vmm_grow(&kept, granules[i] * granule);
		ggml_cuda_pool_vmm_grow(&closed, granules[GROWTHS - 1 - i] * granule);
	}
	ggml_pool_close(&closed);
	if (before - free_now() != kept.bytes)
		fprintf(stderr, "victim: a pool of %zu took %zu bytes\n", kept.bytes,
		        before - free_now());
	say("live kind vmm bytes %zu count %d", kept.bytes, GROWTHS);
	say("vmm mapped %zu", kept.bytes);
	say("hole layer vmm bytes %zu", POOL_BYTES - kept.bytes);
	say("clean leaks");
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
