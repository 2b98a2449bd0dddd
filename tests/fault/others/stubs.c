/* SPDX-License-Identifier: Apache-2.0 */
/* A library of stub functions with the driver's names. Each opens the driver when it is first
 * called. */
#include <dlfcn.h>
#include <stddef.h>

static void *driver(const char *name)
{
	static void *handle;

	if (!handle)
		handle = dlopen("libcuda.so.1", RTLD_NOW);
	return handle ? dlsym(handle, name) : NULL;
}

#define STUB(name, params, args) \
	int name params; \
	int name params \
	{ \
		int (*real) params = (int (*) params)driver(#name); \
		return real ? real args : 100; \
	}

STUB(cuInit, (unsigned int flags), (flags))
STUB(cuDevicePrimaryCtxRetain, (void **context, int device), (context, device))
STUB(cuCtxSetCurrent, (void *context), (context))
STUB(cuMemAlloc_v2, (unsigned long long *address, size_t bytes), (address, bytes))
