/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_creators KIND: memory of a library's own threads. It prints "holds BYTES at FILE:LINE", the line
 * that created the threads. KIND:
 *   libc    the thread's function is one of the C library, so no frame of it is the program's
 *   c11     the same, by thrd_create
 *   own     the program's function allocates in the thread: its line, not the creator's
 *   chain   each thread creates its successor, 2,000 times, as timers do; each keeps what the C
 *           library copied for it
 *   fork    the same as libc, in a forked child of a thread
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

enum { THREADS = 40, BYTES = 1 << 20, CHAIN = 2000 };

typedef void *start_fn(void *);
static void *kept[THREADS];
static char text[BYTES];

static void say(size_t bytes, int line)
{
	printf("holds %zu at thread_creators.c:%d\n", bytes, line);
}

static void create(pthread_t *thread, start_fn *run, void *argument)
{
	if (pthread_create(thread, NULL, run, argument)) {
		perror("pthread_create");
		exit(2);
	}
}

static void run_in_library(void)
{
	pthread_t thread;
	int line = 0;

	for (int i = 0; i < THREADS; i++) {
		line = __LINE__ + 1;
		if (pthread_create(&thread, NULL, (start_fn *)(void *)strdup, text))
			exit(2);
		pthread_join(thread, &kept[i]);
	}
	say((size_t)THREADS * BYTES, line);
}

static void run_in_library_c11(void)
{
	thrd_t thread;
	int line = 0, low;

	for (int i = 0; i < THREADS; i++) {
		line = __LINE__ + 1;
		if (thrd_create(&thread, (thrd_start_t)(void *)strdup, text))
			exit(2);
		thrd_join(thread, &low); /* half of a pointer: the copy is lost */
	}
	say((size_t)THREADS * BYTES, line);
}

static int own_line;

static void *copy_text(void *source)
{
	void *copy = malloc(BYTES);

	own_line = __LINE__ - 2;
	return memcpy(copy, source, BYTES);
}

static void run_own(void)
{
	pthread_t thread;

	for (int i = 0; i < THREADS; i++) {
		create(&thread, copy_text, text);
		pthread_join(thread, &kept[i]);
	}
	say((size_t)THREADS * BYTES, own_line);
}

static pthread_t last;
static int left = CHAIN;
static pthread_mutex_t ended = PTHREAD_MUTEX_INITIALIZER;

static void *go_on(void *argument)
{
	pthread_detach(pthread_self());
	if (!--left)
		pthread_mutex_unlock(&ended);
	else
		create(&last, go_on, argument);
	return NULL;
}

static void run_chain(void)
{
	pthread_mutex_lock(&ended);
	create(&last, go_on, NULL);
	pthread_mutex_lock(&ended);
	printf("threads %d\n", CHAIN);
}

static void *fork_in_thread(void *argument)
{
	int status;
	pid_t child = fork();

	if (!child) {
		printf("child %d\n", (int)getpid());
		run_in_library();
		exit(0);
	}
	waitpid(child, &status, 0);
	return argument;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	pthread_t thread;

	setvbuf(stdout, NULL, _IOLBF, 0);
	memset(text, 'x', BYTES - 1);
	if (!strcmp(kind, "libc"))
		run_in_library();
	else if (!strcmp(kind, "c11"))
		run_in_library_c11();
	else if (!strcmp(kind, "own"))
		run_own();
	else if (!strcmp(kind, "chain"))
		run_chain();
	else if (!strcmp(kind, "fork")) {
		create(&thread, fork_in_thread, NULL);
		pthread_join(thread, NULL);
	} else
		return 2;
	return 0;
}
