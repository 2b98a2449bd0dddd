/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates through the runtime and frees through the driver: two libraries, one memory. */
#include "tests/victims/doors.h"

int main(int argc, char **argv)
{
	CUdeviceptr blocks[20];
	CUresult (*free_by_driver)(CUdeviceptr) = NULL;
	static const char *const driver[] = {"libcuda.so.1", NULL};
	door_open(argc, argv);
	if (cu.kind != DOOR_RUNTIME)
		skip("only with --door=runtime");
	void *handle = open_first(driver);
	if (handle)
		*(void **)&free_by_driver = dlsym(handle, "cuMemFree_v2");
	if (!free_by_driver)
		skip("no libcuda.so.1 here");
	for (int i = 0; i < 20; i++)
		blocks[i] = take(3 * MiB);
	for (int i = 0; i < 15; i++)
		MUST(free_by_driver(blocks[i]));
	say("live kind device bytes %zu count 5", 15 * MiB);
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
