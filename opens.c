#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static long kib(void)
{
	long size = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	fscanf(file, "%ld", &size);
	fclose(file);
	return size * 4;
}
int main(int argc, char **argv)
{
	long before = kib();
	for (int i = 0; i < 100; i++) {
		void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		if (!library)
			return 1;
		for (int k = 0; k < 100; k++)
			free(malloc(k * 3000));
		dlclose(library);
	}
	printf("%ld KiB more\n", kib() - before);
	return kib() - before > 4096;
}
