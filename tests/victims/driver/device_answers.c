/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is there a usable GPU here? Prints its name and size and exits 0, else prints the reason and
 * exits 77. It queries the driver that a program would get, so under scripts/simcuda it describes
 * the simulated device. It allocates nothing there.
 */
#include <dlfcn.h>
#include <stdio.h>

#define NO_DEVICE 77

static int no_device(const char *what, int result)
{
	if (result)
		printf("%s: CUDA error %d\n", what, result);
	else
		printf("%s\n", what);
	return NO_DEVICE;
}

int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*init)(unsigned), (*count_of)(int *), (*name_of)(char *, int, int),
		(*total_of)(size_t *, int);
	int result, count = 0;
	size_t total_bytes = 0;
	char name[100] = "";

	if (!driver)
		return no_device("no GPU driver: libcuda.so.1 cannot be loaded", 0);
	*(void **)&init = dlsym(driver, "cuInit");
	*(void **)&count_of = dlsym(driver, "cuDeviceGetCount");
	*(void **)&name_of = dlsym(driver, "cuDeviceGetName");
	*(void **)&total_of = dlsym(driver, "cuDeviceTotalMem_v2");
	if (!init || !count_of || !name_of || !total_of)
		return no_device("libcuda.so.1 is no CUDA driver", 0);
	if ((result = init(0)))
		return no_device("the GPU driver does not start", result);
	if ((result = count_of(&count)) || !count)
		return no_device("no GPU", result);
	if ((result = name_of(name, sizeof(name), 0)) || (result = total_of(&total_bytes, 0)))
		return no_device("GPU 0 does not answer", result);
	printf("GPU 0 of %d: %s, %zu bytes\n", count, name, total_bytes);
	return 0;
}
