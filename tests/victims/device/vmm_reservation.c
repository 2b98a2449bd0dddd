/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserves more addresses than the device has memory and maps two granules. A reservation is not
 * memory.
 */
#include "tests/victims/vmm.h"

int main(int argc, char **argv)
{
	door_open(argc, argv);
	size_t granule = vmm_granule(), reserved = 16384 * granule;
	CUdeviceptr space = vmm_reserve(reserved);
	vmm_grow(space, granule);
	vmm_grow(space + 1000 * granule, granule);
	say("live kind vmm bytes %zu count 2", 2 * granule);
	say("vmm mapped %zu", 2 * granule);
	say("hole layer vmm bytes %zu", reserved - 1001 * granule);
	say("clean leaks");
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
