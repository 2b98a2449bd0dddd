/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faulty NUMBER: small programs with one fault each, which AddressSanitizer reports, and some that
 * are right and hard for it. Like those in its own test suite. Prints its steps; the status and the
 * report are the sanitizer's.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int ten = 10;
static char global[10];
static char *volatile kept;
static int *volatile escaped;

static void overflow_right(void)
{
	char *block = malloc(10);
	block[ten] = 1;
	free(block);
}

static void overflow_left(void)
{
	char *block = malloc(10);
	kept = block;
	kept[-1] = 1;
}

static void overflow_read(void)
{
	int *block = calloc(10, sizeof *block);
	ten = block[ten];
}

static void use_after_free(void)
{
	kept = malloc(10);
	free(kept);
	kept[5] = 1;
}

static void use_after_realloc(void)
{
	char *old = malloc(10);
	kept = old;
	kept = realloc(old, 5000);
	old[0] = 1;
}

static void double_free(void)
{
	kept = malloc(10);
	free(kept);
	free(kept);
}

static void free_inside(void)
{
	kept = malloc(10);
	free(kept + 1);
}

static void free_stack(void)
{
	char local[10];
	kept = local;
	free(kept);
}

static void stack_overflow(void)
{
	char local[10];
	kept = local;
	kept[ten] = 1;
}

static void global_overflow(void)
{
	kept = global;
	kept[ten] = 1;
}

static void use_after_scope(void)
{
	{
		int local = 1;
		escaped = &local;
	}
	*escaped = 2;
}

static void leaks(void)
{
	kept = malloc(1234);
	kept = NULL;
	kept = calloc(7, 100);
	kept = NULL;
}

static void copy_overlap(void)
{
	kept = malloc(20);
	memcpy(kept, kept + 5, (size_t)ten);
}

static void copy_too_much(void)
{
	kept = malloc(10);
	memset(kept, 1, (size_t)ten + 1);
}

static void string_too_long(void)
{
	kept = strdup("nine char");
	strcat(kept, "!");
}

static void aligned_overflow(void)
{
	void *block;
	if (!posix_memalign(&block, 64, 10)) {
		kept = block;
		kept[ten] = 1;
	}
}

static void wild(void)
{
	kept = (char *)(uintptr_t)64;
	kept[0] = 1;
}

static void too_large(void)
{
	kept = malloc(SIZE_MAX / 2);
	printf("%d %d\n", kept != NULL, errno);
}

static void count_overflows(void)
{
	kept = calloc(SIZE_MAX / 2, 4);
	printf("%d\n", kept != NULL);
}

static void *in_thread(void *block)
{
	((char *)block)[ten] = 1;
	return NULL;
}

static void thread_overflow(void)
{
	pthread_t thread;
	kept = malloc(10);
	pthread_create(&thread, NULL, in_thread, kept);
	pthread_join(thread, NULL);
}

/* ---- right ---- */

static sigjmp_buf back;
static void on_fault(int number)
{
	siglongjmp(back, number);
}

static void handled_fault(void)
{
	char *map = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	signal(SIGSEGV, on_fault);
	if (sigsetjmp(back, 1))
		puts("handled");
	else
		map[0] = 1;
}

static void forks(void)
{
	int status = 0;
	pid_t child = fork();
	if (!child) {
		char *block = malloc(100000);
		memset(block, 1, 100000);
		free(block);
		_exit(5);
	}
	waitpid(child, &status, 0);
	printf("child %d\n", WEXITSTATUS(status));
}

static void *allocates(void *unused)
{
	for (int i = 0; i < 20000; i++)
		free(realloc(malloc((size_t)i % 3000 + 1), (size_t)i % 5000 + 1));
	return unused;
}
static void many_threads(void)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, allocates, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void (*const programs[])(void) = {
	overflow_right, overflow_left, overflow_read, use_after_free, use_after_realloc,
	double_free, free_inside, free_stack, stack_overflow, global_overflow, use_after_scope,
	leaks, copy_overlap, copy_too_much, string_too_long, aligned_overflow, wild, too_large,
	count_overflows, thread_overflow, handled_fault, forks, many_threads,
};

int main(int argc, char **argv)
{
	unsigned number = argc > 1 ? (unsigned)atoi(argv[1]) : 99;

	if (number >= sizeof programs / sizeof *programs)
		return 99;
	printf("program %u\n", number);
	fflush(stdout);
	programs[number]();
	puts("end");
	return 0;
}
