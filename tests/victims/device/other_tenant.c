/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another process holds device memory (SIMCUDA_OTHER, or a real one): the report must agree with
 * the driver's free and total.
 */
#include "tests/victims/doors.h"

int main(int argc, char **argv)
{
	size_t before, total = 0, after = 0;
	door_open(argc, argv);
	before = free_now();
	take(48 * MiB);
	MUST(cu.memory(&after, &total));
	if (before - after < 48 * MiB)
		fprintf(stderr, "victim: the device gave %zu bytes for 48 MiB\n", before - after);
	say("live kind device bytes %zu count 1", 48 * MiB);
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
