/* SPDX-License-Identifier: Apache-2.0 */
/* A preload that prints a line at each cudaMalloc of the runtime and hands the call on with
 * RTLD_NEXT. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int cudaMalloc(void **block, size_t bytes);
int cudaMalloc(void **block, size_t bytes)
{
	int (*real)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc");

	puts("the wrapper saw cudaMalloc");
	fflush(stdout);
	return real(block, bytes);
}
