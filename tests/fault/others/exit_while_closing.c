/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread opens and closes a plugin again and again, and the main thread exits meanwhile. The
 * plugin's constructor allocates, and its table of names is long: whoever reads it at exit is
 * likely to be reading when it is unmapped.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *open_and_close(void *path)
{
	for (;;) {
		void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

		usleep(300);
		if (handle)
			dlclose(handle);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2)
		return 2;
	pthread_create(&thread, NULL, open_and_close, argv[1]);
	usleep(20000 + (useconds_t)getpid() % 37 * 50);
	if (argc > 2)
		printf("refused: %d\n", malloc(SIZE_MAX / 4) == NULL);
	puts("leaving");
	exit(0);
}
