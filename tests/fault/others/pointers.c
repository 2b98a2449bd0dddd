/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that keeps the driver's functions in global variables of the same names, as cuew makes
 * them. With -rdynamic the variables are in its symbol table, before any library's function. With
 * -Dmain=... it is a library, whose own references to them go through the loader's scope.
 */
#include <dlfcn.h>
#include <stdio.h>

int (*cuInit)(unsigned int);
int (*cuDevicePrimaryCtxRetain)(void **, int);
int (*cuCtxSetCurrent)(void *);
int (*cuMemAlloc_v2)(unsigned long long *, size_t);

int main(void);
int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
	unsigned long long address = 0;

	cuInit = (int (*)(unsigned int))dlsym(driver, "cuInit");
	cuDevicePrimaryCtxRetain = (int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
	cuCtxSetCurrent = (int (*)(void *))dlsym(driver, "cuCtxSetCurrent");
	cuMemAlloc_v2 = (int (*)(unsigned long long *, size_t))dlsym(driver, "cuMemAlloc_v2");
	printf("cuInit %d\n", cuInit(0));
	printf("cuDevicePrimaryCtxRetain %d\n", cuDevicePrimaryCtxRetain(&context, 0));
	printf("cuCtxSetCurrent %d\n", cuCtxSetCurrent(context));
	printf("cuMemAlloc %d\n", cuMemAlloc_v2(&address, 3 << 20));
	return 0;
}
