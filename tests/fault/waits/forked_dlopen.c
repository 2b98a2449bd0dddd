/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread is inside dl_iterate_phdr, where it holds the loader's lock for its list, when the
 * process forks. The child opens a library that is loaded already: the loader does not take that
 * lock for it.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t inside, forked;

static int hold(struct dl_phdr_info *object, size_t bytes, void *unused)
{
	sem_post(&inside);
	sem_wait(&forked);
	return 1;
}

static void *walk(void *unused)
{
	dl_iterate_phdr(hold, NULL);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	int status;
	pid_t child;
	sem_init(&inside, 0, 0);
	sem_init(&forked, 0, 0);
	pthread_create(&thread, NULL, walk, NULL);
	sem_wait(&inside);
	child = fork();
	if (!child) {
		puts(dlopen("libc.so.6", RTLD_NOW) ? "opened" : dlerror());
		fflush(stdout);
		_exit(0);
	}
	sem_post(&forked);
	pthread_join(thread, NULL);
	waitpid(child, &status, 0);
	printf("status %d\n", status);
	return 0;
}
