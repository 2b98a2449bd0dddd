/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three stacks in one map, without guards: A, B, and the thread's own, which it was given. The
 * thread goes on on B, and from there on A. It unmaps B and allocates: code on A was called from a
 * frame that is gone.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STACK_BYTES = 256 << 10, ROUNDS = 3 };

static char *slab;

__attribute__((noinline)) static void allocate(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		void *volatile block = malloc(100000);

		free(block);
	}
}

__attribute__((noinline)) static void on_a(void)
{
	allocate();
	munmap(slab + STACK_BYTES, STACK_BYTES);
	allocate();
	puts("done");
	fflush(stdout);
	_exit(0);
}

/* rbp and x29 stay as they are, so frame pointers lead from one stack to the other. */
__attribute__((noinline)) static void go_on(char *top, void (*function)(void))
{
#if defined __x86_64__
	__asm__ volatile("mov %0, %%rsp\n\tcall *%1" ::"r"(top), "r"(function) : "memory");
#else
	__asm__ volatile("mov sp, %0\n\tblr %1" ::"r"(top), "r"(function) : "memory", "x30");
#endif
}

static void on_b(void) { go_on(slab + STACK_BYTES, on_a); }

static void *run(void *unused)
{
	(void)unused;
	go_on(slab + 2 * STACK_BYTES, on_b);
	return NULL;
}

int main(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	slab = mmap(NULL, 3 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, slab + 2 * STACK_BYTES, STACK_BYTES);
	pthread_create(&thread, &attributes, run, NULL);
	pthread_join(thread, NULL);
	return 0;
}
