/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory: counted next to the device, never in its sum. */
#include "tests/victims/doors.h"

int main(int argc, char **argv)
{
	CUdeviceptr blocks[5];
	door_open(argc, argv);
	for (int i = 0; i < 5; i++) {
		MUST(cu.managed(&blocks[i], (size_t)(i + 1) * 10 * MiB, 1));
		memset((void *)(uintptr_t)blocks[i], i, 4096);
	}
	MUST(cu.release(blocks[3]));
	say("live kind managed bytes %zu count 4", (10 + 20 + 30 + 50) * MiB);
	say("live kind device bytes 0 count 0");
	say("clean leaks");
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
