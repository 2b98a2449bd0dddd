/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned host memory: staging buffers, one freed. */
#include "tests/victims/doors.h"

int main(int argc, char **argv)
{
	void *buffers[6];
	door_open(argc, argv);
	for (int i = 0; i < 6; i++) {
		MUST(cu.pinned(&buffers[i], (size_t)(i + 1) * MiB, 0));
		memset(buffers[i], i, 4096);
	}
	MUST(cu.pinned_free(buffers[5]));
	say("live kind pinned bytes %zu count 5", (1 + 2 + 3 + 4 + 5) * MiB);
	say("live kind device bytes 0 count 0");
	say("clean leaks");
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
