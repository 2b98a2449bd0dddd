/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_lock refused|first PLUGIN: one thread holds the program's lock and makes a request that
 * the driver refuses, or the very first call of a driver that the program is linked with. Meanwhile
 * another thread opens PLUGIN, whose constructor takes that lock. The driver needs nothing of the
 * loader, so both go on.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long device_pointer;
int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuMemAlloc_v2(device_pointer *out, size_t bytes);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *plugin;

void program_lock(void) { pthread_mutex_lock(&lock); }
void program_unlock(void) { pthread_mutex_unlock(&lock); }

static void *open_plugin(void *unused)
{
	return dlopen(plugin, RTLD_NOW);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	device_pointer block;
	void *context, *handle;
	int is_refused = !strcmp(argv[1], "refused");
	plugin = argv[2];
	if (is_refused && (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) ||
			   cuMemAlloc_v2(&block, 1 << 20)))
		return 2;
	program_lock();
	pthread_create(&thread, NULL, open_plugin, NULL);
	usleep(200000); /* it is in the constructor */
	printf("%d\n", is_refused ? cuMemAlloc_v2(&block, (size_t)1 << 45) : cuInit(0));
	fflush(stdout);
	program_unlock();
	pthread_join(thread, &handle);
	puts(handle ? "opened" : dlerror());
	return handle ? dlclose(handle) : 1;
}
