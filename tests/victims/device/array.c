/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays, one destroyed. The driver does not report their size: width x height x bytes of an
 * element is the request.
 */
#include "tests/victims/doors.h"

static void create(CUarray *out, size_t width, size_t height)
{
	CUDA_ARRAY_DESCRIPTOR desc = {width, height, 0x20 /* CU_AD_FORMAT_FLOAT */, 4};
	struct cudaChannelFormatDesc texel = {32, 32, 32, 32, 2 /* cudaChannelFormatKindFloat */};
	CUresult (*by_runtime)(CUarray *, const struct cudaChannelFormatDesc *, size_t, size_t,
	                       unsigned) = NULL;
	if (cu.kind == DOOR_RUNTIME)
		*(void **)&by_runtime = dlsym(cu.runtime, "cudaMallocArray");
	MUST(by_runtime ? by_runtime(out, &texel, width, height, 0) : cu.array_create(out, &desc));
}

int main(int argc, char **argv)
{
	CUarray arrays[4];
	door_open(argc, argv);
	for (int i = 0; i < 4; i++)
		create(&arrays[i], 1024, 512);
	MUST(cu.array_destroy(arrays[2]));
	say("live kind array bytes %zu count 3", (size_t)3 * 1024 * 512 * 16);
	say("live kind device bytes 0 count 0");
	say("clean leaks");
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
