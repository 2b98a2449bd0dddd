/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports three versions of itself, one after the other (argv[1]: PyTorch's version.py): when its
 * allocator reports a block, when a library is opened, and afterwards. The recorded version shows
 * when it was read.
 */
#include <dlfcn.h>
#include <stdio.h>
#include "tests/victims/torch/c10.h"

static void be(const char *path, const char *version)
{
	FILE *file = fopen(path, "w");
	if (!file)
		return;
	fprintf(file, "__version__ = '%s'\n", version);
	fclose(file);
}

int main(int argc, char **argv)
{
	static char block[512];
	const struct c10_device device = { 1, 0 };
	if (argc < 2)
		return 2;
	be(argv[1], "1.0+reported");
	C10_REPORT_M(block, 512, 512, 2048, device);
	be(argv[1], "2.0+opened");
	if (!dlopen("libm.so.6", RTLD_NOW))
		return 1;
	be(argv[1], "3.0+after");
	C10_REPORT_M(block, -512, 0, 2048, device);
	return !dlopen("libm.so.6", RTLD_NOW);
}
