/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool that never releases memory: half its blocks are freed, and the memory stays in the pool,
 * as in framework pools.
 */
#include "tests/victims/doors.h"

enum { BLOCKS = 32 };
#define BLOCK (6 * MiB)

int main(int argc, char **argv)
{
	CUdeviceptr blocks[BLOCKS];
	CUmemoryPool pool;
	CUstream stream;
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	cuuint64_t keep = UINT64_MAX, reserved = 0, used = 0;
	door_open(argc, argv);
	MUST(cu.pool_create(&pool, &props));
	MUST(cu.pool_set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
	MUST(cu.stream_create(&stream, 1));
	for (int i = 0; i < BLOCKS; i++)
		MUST(cu.alloc_pool(&blocks[i], BLOCK, pool, stream));
	for (int i = 1; i < BLOCKS; i += 2)
		MUST(cu.free_async(blocks[i], stream));
	MUST(cu.stream_synchronize(stream));
	size_t hole = 0;
	for (int i = 2; i < BLOCKS; i += 2)
		if (blocks[i] - blocks[i - 2] - BLOCK > hole && blocks[i] > blocks[i - 2])
			hole = blocks[i] - blocks[i - 2] - BLOCK;
	MUST(cu.pool_get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
	MUST(cu.pool_get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	say("live kind async bytes %zu count %d", BLOCKS / 2 * BLOCK, BLOCKS / 2);
	say("pool reserved %llu used %llu", (unsigned long long)reserved, (unsigned long long)used);
	say("hole layer pool bytes %zu", hole);
	say("owner kind pool_slack bytes %llu", (unsigned long long)(reserved - used));
	say("clean leaks");
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
