/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locks memory that malloc owns. Unregistering frees nothing. */
#include "tests/victims/doors.h"

int main(int argc, char **argv)
{
	void *buffers[3];
	door_open(argc, argv);
	for (int i = 0; i < 3; i++) {
		if (posix_memalign(&buffers[i], 4096, 4 * MiB))
			return BROKEN;
		memset(buffers[i], i, 4 * MiB);
		MUST(cu.host_register(buffers[i], 4 * MiB, 0));
	}
	MUST(cu.host_unregister(buffers[1]));
	say("live kind registered bytes %zu count 2", 8 * MiB);
	say("live kind device bytes 0 count 0");
	say("clean leaks");
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
