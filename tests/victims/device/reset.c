/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device reset frees what belongs to the context. Memory of cuMemCreate and of pools survives
 * (cuda.h, cuCtxDestroy).
 */
#include "tests/victims/vmm.h"

int main(int argc, char **argv)
{
	CUdeviceptr block;
	void *buffer;
	door_open(argc, argv);
	size_t granule = vmm_granule();
	for (int i = 0; i < 10; i++)
		take(3 * MiB);
	MUST(cu.pinned(&buffer, 2 * MiB, 0));
	MUST(cu.managed(&block, 5 * MiB, 1));
	MUST(cu.alloc_async(&block, 7 * MiB, NULL));
	vmm_grow(vmm_reserve(16 * granule), 2 * granule);
	door_reset();
	take(1 * MiB);
	say("live kind device bytes %zu count 1", 1 * MiB);
	say("live kind pinned bytes 0 count 0");
	say("live kind managed bytes 0 count 0");
	say("live kind async bytes %zu count 1", 7 * MiB);
	say("live kind vmm bytes %zu count 1", 2 * granule);
	say("clean leaks");
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
