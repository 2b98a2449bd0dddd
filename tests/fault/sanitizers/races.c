/* SPDX-License-Identifier: Apache-2.0 */
/*
 * races NUMBER: small programs with threads. The first ones have a fault each that ThreadSanitizer
 * reports; the others are right. Threads take turns by a word that the sanitizer does not see, so
 * that each run has the same order. The first thread of two waits for the second one, because a
 * report says whether a thread still runs. Prints its steps; the status and the report are the
 * sanitizer's.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int shared, turn;
static int *block;
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static sem_t posted;
static __thread int own;

/* invisible: neither instrumented nor intercepted */
__attribute__((no_sanitize("thread"))) static void wait_for_turn(int number)
{
	while (*(volatile int *)&turn < number)
		usleep(100);
}
__attribute__((no_sanitize("thread"))) static int current_turn(void)
{
	return *(volatile int *)&turn;
}
__attribute__((no_sanitize("thread"))) static void next_turn(void) { ++*(volatile int *)&turn; }

static void both(void *(*one)(void *), void *(*other)(void *), void *argument)
{
	pthread_t threads[2];
	pthread_create(&threads[0], NULL, one, argument);
	pthread_create(&threads[1], NULL, other, argument);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

#define FIRST(name, work) \
	static void *name(void *argument) \
	{ \
		work; \
		next_turn(); \
		wait_for_turn(2); \
		return argument; \
	}
#define SECOND(name, work) \
	static void *name(void *argument) \
	{ \
		wait_for_turn(1); \
		work; \
		next_turn(); \
		return argument; \
	}

FIRST(write_shared, shared = 1)
SECOND(write_again, shared = 2)
SECOND(read_shared, own = shared)
FIRST(write_block, block[3] = 1)
SECOND(read_block, own = block[3])
SECOND(free_block, free(block))
FIRST(locked_write, pthread_mutex_lock(&first); shared = 1; pthread_mutex_unlock(&first))
SECOND(other_lock_write, pthread_mutex_lock(&second); shared = 2; pthread_mutex_unlock(&second))
SECOND(locked_read, pthread_mutex_lock(&first); own = shared; pthread_mutex_unlock(&first))
FIRST(atomic_write, __atomic_store_n(&shared, 1, __ATOMIC_RELEASE))
SECOND(atomic_read, own = __atomic_load_n(&shared, __ATOMIC_ACQUIRE))
FIRST(copies, memcpy(block, "0123456789", 10))
SECOND(clears, memset(block, 0, 10))
FIRST(allocates, block = calloc(100, sizeof *block))
SECOND(reads_allocated, own = block[0])

static void write_write(void)
{
	both(write_shared, write_again, NULL);
}

static void write_read(void)
{
	both(write_shared, read_shared, NULL);
}

static void on_heap(void)
{
	block = malloc(40);
	both(write_block, read_block, NULL);
	free(block);
}

static void race_with_free(void)
{
	block = malloc(40);
	both(write_block, free_block, NULL);
}

static void two_locks(void)
{
	both(locked_write, other_lock_write, NULL);
}

static void atomic_and_plain(void)
{
	both(atomic_write, read_shared, NULL);
}

static void in_libc(void)
{
	block = malloc(40);
	both(copies, clears, NULL);
	free(block);
}

static void published(void)
{
	both(allocates, reads_allocated, NULL);
	free(block);
}

static void unlock_unlocked(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_unlock(&mutex);
}

static void destroy_locked(void)
{
	pthread_mutex_t mutex;
	pthread_mutex_init(&mutex, NULL);
	pthread_mutex_lock(&mutex);
	pthread_mutex_destroy(&mutex);
}
static void inverted_locks(void)
{
	pthread_mutex_lock(&first);
	pthread_mutex_lock(&second);
	pthread_mutex_unlock(&second);
	pthread_mutex_unlock(&first);
	pthread_mutex_lock(&second);
	pthread_mutex_lock(&first);
	pthread_mutex_unlock(&first);
	pthread_mutex_unlock(&second);
}

__attribute__((no_sanitize("thread"))) static void *ends_alone(void *argument)
{
	*(volatile int *)&turn = (int)gettid();
	return argument;
}

static void thread_leak(void)
{
	char task[64];
	pthread_t thread;
	pthread_create(&thread, NULL, ends_alone, NULL);
	wait_for_turn(1);
	snprintf(task, sizeof task, "/proc/self/task/%d", current_turn());
	while (!access(task, F_OK))
		usleep(100);
}

/* ---- right ---- */

static void locked(void)
{
	both(locked_write, locked_read, NULL);
}

static void atomics(void)
{
	both(atomic_write, atomic_read, NULL);
}

static void *signals_condition(void *unused)
{
	pthread_mutex_lock(&first);
	shared = 1;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&first);
	return unused;
}
static void condition(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, signals_condition, NULL);
	pthread_mutex_lock(&first);
	while (!shared)
		pthread_cond_wait(&changed, &first);
	pthread_mutex_unlock(&first);
	pthread_join(thread, NULL);
}

static void *posts(void *unused)
{
	shared = 1;
	sem_post(&posted);
	return unused;
}

static void semaphore(void)
{
	pthread_t thread;
	sem_init(&posted, 0, 0);
	pthread_create(&thread, NULL, posts, NULL);
	sem_wait(&posted);
	printf("%d\n", shared);
	pthread_join(thread, NULL);
}

static void *reads_and_writes(void *unused)
{
	for (int i = 0; i < 1000; i++) {
		pthread_rwlock_rdlock(&readers);
		own = shared;
		pthread_rwlock_unlock(&readers);
		pthread_rwlock_wrlock(&readers);
		shared++;
		pthread_rwlock_unlock(&readers);
		free(malloc(100 + (size_t)i));
	}
	return unused;
}
static void read_write_lock(void)
{
	both(reads_and_writes, reads_and_writes, NULL);
	printf("%d\n", shared);
}

static void set_once(void)
{
	shared = 7;
}

static void *calls_once(void *unused)
{
	pthread_once(&once, set_once);
	return unused;
}

static void initialised_once(void)
{
	both(calls_once, calls_once, NULL);
	printf("%d\n", shared);
}

static void *keeps_block(void *unused)
{
	pthread_setspecific(key, malloc(1000));
	return unused;
}

static void own_blocks(void)
{
	pthread_key_create(&key, free);
	both(keeps_block, keeps_block, NULL);
}

static void forks(void)
{
	int status = 0;
	pid_t child = fork();
	if (!child) {
		free(malloc(100000));
		_exit(5);
	}
	waitpid(child, &status, 0);
	printf("child %d\n", WEXITSTATUS(status));
}

static void caught(int number)
{
	(void)number;
	write(1, "caught\n", 7);
}

static void signalled(void)
{
	signal(SIGUSR1, caught);
	raise(SIGUSR1);
}

static void (*const programs[])(void) = {
	write_write, write_read, on_heap, race_with_free, two_locks, atomic_and_plain, in_libc,
	published, unlock_unlocked, destroy_locked, inverted_locks, thread_leak, locked, atomics,
	condition, semaphore, read_write_lock, initialised_once, own_blocks, forks, signalled,
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
