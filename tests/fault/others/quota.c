/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preload that stands in for a driver function, as those for vGPU quotas do: it refuses requests
 * of more than 1 GiB. It finds the function behind it with RTLD_NEXT, or (BY_HANDLE) in the
 * driver's handle.
 */
#include <dlfcn.h>
#include <stddef.h>

typedef int (*alloc_fn)(unsigned long long *, size_t);

int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes)
{
#ifdef BY_HANDLE
	alloc_fn real = (alloc_fn)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2");
#else
	alloc_fn real = (alloc_fn)dlsym(RTLD_NEXT, "cuMemAlloc_v2");
#endif
	return bytes > 1ul << 30 ? 2 : real(address, bytes);
}
