/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two runtimes in one process (built with VERSION=12 and 13), a library that is linked with 13
 * (-DHELPER), and a program that hands it a pointer to a function of 12.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined VERSION
int cudaMalloc(void **block, size_t bytes);
int cudaMalloc(void **block, size_t bytes)
{
	(void)bytes;
	*block = (void *)(intptr_t)VERSION;
	return 0;
}
#elif defined HELPER
int cudaMalloc(void **block, size_t bytes);
intptr_t own(void);
intptr_t through(int (*allocate)(void **, size_t));

intptr_t own(void)
{
	void *block;

	cudaMalloc(&block, 1);
	return (intptr_t)block;
}

intptr_t through(int (*allocate)(void **, size_t))
{
	void *block;

	allocate(&block, 1);
	return (intptr_t)block;
}
#else
typedef int (*allocate_fn)(void **, size_t);

static void call(const char *whose, allocate_fn allocate)
{
	void *block;

	allocate(&block, 1);
	printf("%s: %ld\n", whose, (long)(intptr_t)block);
}

int main(void)
{
	void *twelve = dlopen("libcudart.so.12", RTLD_NOW | RTLD_LOCAL), *helper, *thirteen;
	allocate_fn of_twelve = (allocate_fn)dlsym(twelve, "cudaMalloc"), of_thirteen;

	call("a pointer to 12's", of_twelve);
	helper = dlopen("libhelper.so", RTLD_NOW | RTLD_LOCAL);
	thirteen = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
	of_thirteen = (allocate_fn)dlsym(thirteen, "cudaMalloc");
	call("a pointer to 13's", of_thirteen);
	call("12's once more", (allocate_fn)dlsym(twelve, "cudaMalloc"));
	printf("12's, called by the library: %ld\n",
	       (long)((intptr_t(*)(allocate_fn))dlsym(helper, "through"))(of_twelve));
	printf("the library's own: %ld\n", (long)((intptr_t(*)(void))dlsym(helper, "own"))());
	return 0;
}
#endif
