/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that open and close libraries. */
#include "tests/torture/loaders.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOADERS = 2, OPENED = 8 };

static const char *plugin_path;
static bool running;
static sem_t begun;
static pthread_rwlock_t in_a_call = PTHREAD_RWLOCK_INITIALIZER;

static void open_one(unsigned which, void **opened)
{
	static const char *const of_the_system[] = {
		"libz.so.1", "libbz2.so.1.0", "liblzma.so.5", "libexpat.so.1"
	};
	char path[4200];
	int (*call)(size_t);

	if (which < OPENED / 2) {
		*opened = dlopen(of_the_system[which], RTLD_NOW);
		return;
	}
	snprintf(path, sizeof path, "%s.%u", plugin_path, which - OPENED / 2);
	*opened = dlopen(path, RTLD_NOW);
	call = *opened ? (int (*)(size_t))dlsym(*opened, "plugin_pair") : NULL;
	if (call)
		call(100003); /* from a stack in an object that is about to close */
}

static int count_objects(struct dl_phdr_info *info, size_t size, void *count)
{
	(void)info, (void)size;
	++*(unsigned *)count;
	return 0;
}

static void *open_and_close(void *first)
{
	void *opened[OPENED] = { 0 };
	unsigned count = 0;

	free(malloc(1));
	sem_post(&begun);
	for (unsigned turn = (unsigned)(uintptr_t)first;; turn++) {
		pthread_rwlock_rdlock(&in_a_call);
		if (opened[turn % OPENED])
			dlclose(opened[turn % OPENED]);
		open_one(turn % OPENED, &opened[turn % OPENED]);
		if (turn % 16 == 0)
			dl_iterate_phdr(count_objects, &count);
		free(malloc(turn % 7 * 30011));
		pthread_rwlock_unlock(&in_a_call);
	}
	return NULL;
}

void loaders_start(const char *path)
{
	pthread_rwlockattr_t writers_first;
	pthread_t thread;

	if (running)
		return;
	plugin_path = path;
	pthread_rwlockattr_init(&writers_first);
	pthread_rwlockattr_setkind_np(&writers_first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&in_a_call, &writers_first);
	sem_init(&begun, 0, 0);
	for (uintptr_t i = 0; i < LOADERS; i++) {
		if (pthread_create(&thread, NULL, open_and_close, (void *)(i * 5)))
			continue;
		pthread_detach(thread);
		/* a thread's arena takes 64 MiB of addresses, which a limit does not expect */
		while (sem_wait(&begun))
			;
	}
	running = true;
}

void loaders_pause(void)
{
	if (running)
		pthread_rwlock_wrlock(&in_a_call);
}

void loaders_go_on(void)
{
	if (running)
		pthread_rwlock_unlock(&in_a_call);
}

bool loaders_run(void) { return running; }

void loaders_forget(void) { running = false; }
