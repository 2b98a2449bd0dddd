/* SPDX-License-Identifier: Apache-2.0 */
/* A program linked to the driver (or to a library that has its names): a large request and a small
 * one. */
#include <stddef.h>
#include <stdio.h>

int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes);

int main(void)
{
	unsigned long long large = 0, small = 0;
	void *context = NULL;

	printf("cuInit %d\n", cuInit(0));
	printf("cuDevicePrimaryCtxRetain %d\n", cuDevicePrimaryCtxRetain(&context, 0));
	printf("cuCtxSetCurrent %d\n", cuCtxSetCurrent(context));
	printf("2 GiB: %d\n", cuMemAlloc_v2(&large, 2ul << 30));
	printf("1 MiB: %d\n", cuMemAlloc_v2(&small, 1 << 20));
	return 0;
}
