/* SPDX-License-Identifier: Apache-2.0 */
/* late PLUGIN: a plugin, the same source with -DPLUGIN, asks whether there is a CUDA runtime. */
#include <dlfcn.h>
#include <stdio.h>

#ifdef PLUGIN
extern int cudaMalloc(void **, size_t) __attribute__((weak));

void ask(void)
{
	void *block;
	printf("weak %d dlsym %d", !!cudaMalloc, !!dlsym(RTLD_DEFAULT, "cudaMalloc"));
	if (cudaMalloc)
		printf(" result %d", cudaMalloc(&block, 100));
	puts("");
}
#else
int main(int argc, char **argv)
{
	void *plugin = dlopen(argv[1], RTLD_NOW);
	void (*ask)(void) = (void (*)(void))dlsym(plugin, "ask");
	ask();
	return 0;
}
#endif
