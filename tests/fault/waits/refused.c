/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that the driver refuses, in a program with several objects. */
#include <stdio.h>

typedef unsigned long long device_pointer;
int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuMemAlloc_v2(device_pointer *out, size_t bytes);

int main(void)
{
	device_pointer block;
	void *context;
	if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuMemAlloc_v2(&block, 1 << 20))
		return 1;
	for (int i = 0; i < 3; i++)
		printf("%d\n", cuMemAlloc_v2(&block, (size_t)1 << 45));
	return 3;
}
