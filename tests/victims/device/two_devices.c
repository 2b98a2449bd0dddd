/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks on two devices. Each is freed on its device, whichever device is current. */
#include "tests/victims/doors.h"

int main(int argc, char **argv)
{
	CUdeviceptr first[6], second[6];
	int devices = 0;
	door_open(argc, argv);
	MUST(cu.device_count(&devices));
	if (devices < 2)
		skip("only one device");
	for (int i = 0; i < 6; i++)
		first[i] = take(10 * MiB);
	door_use(1);
	for (int i = 0; i < 6; i++)
		second[i] = take(20 * MiB);
	for (int i = 0; i < 4; i++)
		MUST(cu.release(first[i])); /* device 1 is current */
	door_use(0);
	MUST(cu.release(second[0]));
	say("live kind device on 0 bytes %zu count 2", 20 * MiB);
	say("live kind device on 1 bytes %zu count 5", 100 * MiB);
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
