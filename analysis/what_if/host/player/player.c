/* SPDX-License-Identifier: Apache-2.0 */
/*
 * player HISTORY ANSWER BYTES TOUCHED SECONDS: a process that does nothing except play a history of
 * malloc and free. The allocator is whatever LD_PRELOAD and the environment have made it.
 *
 * It reads the history (play.h) from descriptor HISTORY and writes one struct play_answer to
 * descriptor ANSWER. The other arguments are struct play_limits. Its own tables are shared memory,
 * which is not counted, and it is linked only with libc, so that nobody else allocates.
 *
 * Threads run one after another, so that the same history gives the same answer: each waits at a
 * semaphore for its turn. The main thread goes through the history and passes runs of one thread's
 * operations to that thread.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "analysis/what_if/host/player/play.h"

enum { FREE_FD = 6 }; /* as in child.c */

enum {
	LOOK_EVERY_STEPS = 512,
	LOOK_EVERY_BYTES = 4 << 20, /* taken since the last look */
	STACK_BYTES = 256 << 10,
	PAGE_BYTES = 4096
};

/* Where a block was freed before it was allocated: threads of one time slice run one by one. */
static char freed_early;

struct played_thread {
	pthread_t id;
	sem_t turn;
	uint64_t from, to;        /* its operations of this turn */
	int started;
};

static struct player {
	const struct play_step *steps;
	struct play_head head;
	struct play_limits limits;
	void **blocks;
	struct played_thread *threads;
	sem_t done;
	int statm;
	uint64_t before_bytes, peak_bytes;
	uint64_t steps_since_look, bytes_since_look;
	uint32_t status;          /* enum play_status; PLAY_NOT_ENDED: goes on */
} player;

/* ---- measuring ---- */

/* Anonymous resident memory; exact where the kernel has it, without allocating. */
static uint64_t anonymous_bytes(void)
{
	char text[4096], *line;
	int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	if (got <= 0)
		return 0;
	text[got] = 0;
	line = strstr(text, "\nAnonymous:");
	return line ? strtoul(line + strlen("\nAnonymous:"), NULL, 10) << 10 : 0;
}

/* The same from statm, which is cheap and, with many threads, some pages late. */
static uint64_t anonymous_bytes_quick(void)
{
	char text[128], *at = text;
	uint64_t resident, shared;
	ssize_t got = pread(player.statm, text, sizeof text - 1, 0);

	if (got <= 0)
		return 0;
	text[got] = 0;
	strtoul(at, &at, 10);
	resident = strtoul(at, &at, 10);
	shared = strtoul(at, &at, 10);
	return resident > shared ? (resident - shared) * PAGE_BYTES : 0;
}

static uint64_t less_before(uint64_t bytes)
{
	return bytes > player.before_bytes ? bytes - player.before_bytes : 0;
}

static void look(void)
{
	uint64_t bytes = less_before(anonymous_bytes_quick());

	player.steps_since_look = player.bytes_since_look = 0;
	if (bytes > player.peak_bytes)
		player.peak_bytes = bytes;
	if (bytes > player.limits.resident_bytes)
		player.status = PLAY_TOO_LARGE;
}

/* ---- playing ---- */

/* Large blocks are written up to the share that the recording shows, all others as a whole. */
static void touch(char *p, uint64_t bytes)
{
	uint64_t touched = bytes;

	if (!p)
		return;
	if (bytes >= PLAY_LARGE_BYTES)
		touched = bytes / PLAY_TOUCHED_ALL * player.limits.touched_1024th;
	for (uint64_t at = 0; at < touched; at += PAGE_BYTES)
		p[at] = 1;
	if (touched)
		p[touched - 1] = 1;
}

/* aligned_alloc is in every allocator; C demands a size that is a multiple. */
static void *take_aligned(uint64_t bytes, unsigned shift)
{
	size_t align = (size_t)1 << shift;
	void *p = NULL;

	return posix_memalign(&p, align < sizeof p ? sizeof p : align, bytes) ? NULL : p;
}

static void *take(const struct play_step *step)
{
	switch (step->op) {
	case PLAY_ZEROED: return calloc(1, step->bytes);
	case PLAY_ALIGNED: return take_aligned(step->bytes, step->align_shift % 22);
	default: return malloc(step->bytes);
	}
}

static void give(void **slot)
{
	if (!*slot) {
		*slot = &freed_early;
	} else if (*slot != &freed_early) {
		free(*slot);
		*slot = NULL;
	}
}

static void resize(void **slot, const struct play_step *step)
{
	void *p = realloc(*slot == &freed_early ? NULL : *slot, step->bytes);

	if (!p && step->bytes)
		player.status = PLAY_REFUSED;
	else
		*slot = p;
	touch(p, step->bytes);
}

static void take_into(void **slot, const struct play_step *step)
{
	void *p;

	if (*slot && *slot != &freed_early)
		return; /* a damaged history; nothing may leak because of it */
	p = take(step);
	if (!p && step->bytes)
		player.status = PLAY_REFUSED;
	touch(p, step->bytes);
	if (*slot == &freed_early) {
		free(p);
		p = NULL;
	}
	*slot = p;
}

static void play_step(const struct play_step *step)
{
	void **slot;

	if (step->op == PLAY_THREAD_END || step->block >= player.head.block_count)
		return;
	slot = &player.blocks[step->block];
	if (step->op == PLAY_FREE) {
		give(slot);
		return;
	}
	/* no single request may exceed the limit before it is looked at */
	if (step->bytes > player.limits.resident_bytes) {
		player.status = PLAY_TOO_LARGE;
		return;
	}
	if (step->op == PLAY_RESIZE)
		resize(slot, step);
	else
		take_into(slot, step);
	player.bytes_since_look += step->bytes;
}

static void play_run(uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to && player.status == PLAY_NOT_ENDED; i++) {
		play_step(&player.steps[i]);
		if (++player.steps_since_look >= LOOK_EVERY_STEPS ||
		    player.bytes_since_look >= LOOK_EVERY_BYTES)
			look();
	}
}

/* ---- threads ---- */

static void *run_thread(void *argument)
{
	struct played_thread *thread = argument;
	int ends = 0;

	while (!ends) {
		while (sem_wait(&thread->turn))
			;
		if (thread->from == thread->to)
			break; /* asked to end */
		play_run(thread->from, thread->to);
		ends = player.steps[thread->to - 1].op == PLAY_THREAD_END;
		if (!ends)
			sem_post(&player.done);
	}
	return NULL;
}

/* The stack is small, so that thousands of threads have room; its pages are not the allocator's. */
static int start_thread(struct played_thread *thread)
{
	pthread_attr_t attributes;
	int error;

	sem_init(&thread->turn, 0, 0);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	error = pthread_create(&thread->id, &attributes, run_thread, thread);
	pthread_attr_destroy(&attributes);
	thread->started = !error;
	return error;
}

static void pass_to(struct played_thread *thread, uint64_t from, uint64_t to)
{
	if (!thread->started && start_thread(thread)) {
		player.status = PLAY_BROKEN;
		return;
	}
	thread->from = from;
	thread->to = to;
	sem_post(&thread->turn);
	if (player.steps[to - 1].op == PLAY_THREAD_END) {
		/* its caches go to the allocator before anybody else continues */
		pthread_join(thread->id, NULL);
		thread->started = 0;
		return;
	}
	while (sem_wait(&player.done))
		;
}

/* The end of the run of one thread that starts here. A thread's end is the end of a run. */
static uint64_t run_end(uint64_t from)
{
	uint64_t to = from;

	do {
		if (player.steps[to++].op == PLAY_THREAD_END)
			break;
	} while (to < player.head.step_count &&
		 player.steps[to].thread == player.steps[from].thread);
	return to;
}

static void play_all(void)
{
	for (uint64_t at = 0, to; at < player.head.step_count; at = to) {
		unsigned thread = player.steps[at].thread % player.head.thread_count;

		to = run_end(at);
		if (thread)
			pass_to(&player.threads[thread], at, to);
		else
			play_run(at, to);
		if (player.status != PLAY_NOT_ENDED)
			return;
	}
}

/* ---- begin and end ---- */

/* The kernel's own limits behind ours: this process is the first to go when memory is short. */
static void limit_this_process(void)
{
	const uint64_t spare = 64ull << 30; /* addresses that allocators only reserve */
	struct rlimit space = { player.limits.resident_bytes * 4 + spare,
				player.limits.resident_bytes * 4 + spare };
	struct rlimit core = { 0, 0 };
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (write(fd, "1000", 4) < 0)
			player.before_bytes = 0; /* without it the limits still hold */
		close(fd);
	}
	setrlimit(RLIMIT_AS, &space);
	setrlimit(RLIMIT_CORE, &core);
	alarm(player.limits.seconds); /* where nobody is left to end this process */
}

static void *shared_table(uint64_t count, size_t bytes)
{
	void *table = mmap(NULL, (count ? count : 1) * bytes, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return table == MAP_FAILED ? NULL : table;
}

static int open_history(int fd)
{
	struct stat stat;
	const struct play_head *head;

	if (fstat(fd, &stat) || stat.st_size < (off_t)sizeof *head)
		return -1;
	head = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (head == MAP_FAILED)
		return -1;
	player.head = *head;
	if (!head->thread_count || head->thread_count > PLAY_THREADS_MAX ||
	    head->step_count > ((uint64_t)stat.st_size - sizeof *head) / sizeof *player.steps)
		return -1;
	player.steps = (const struct play_step *)(head + 1);
	player.blocks = shared_table(head->block_count, sizeof *player.blocks);
	player.threads = shared_table(head->thread_count, sizeof *player.threads);
	player.statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	sem_init(&player.done, 0, 0);
	return player.blocks && player.threads && player.statm >= 0 ? 0 : -1;
}

static uint32_t milliseconds_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint32_t)((now.tv_sec - start->tv_sec) * 1000 +
			  (now.tv_nsec - start->tv_nsec) / 1000000);
}

static uint64_t trimmed_bytes(void)
{
	int (*trim)(size_t) = (int (*)(size_t))(uintptr_t)dlsym(RTLD_DEFAULT, "malloc_trim");
	void *owner = dlsym(RTLD_DEFAULT, "malloc");
	Dl_info of_trim, of_malloc;

	/* another allocator in front of libc: its malloc_trim is not that of these blocks */
	if (!trim || !owner || !dladdr((void *)(uintptr_t)trim, &of_trim) ||
	    !dladdr(owner, &of_malloc) || of_trim.dli_fbase != of_malloc.dli_fbase)
		return UINT64_MAX;
	trim(0);
	return less_before(anonymous_bytes());
}

/* What an allocator needs once is not the history's. Without volatile a compiler may leave the
 * pair out. */
static void warm_up(void)
{
	void *volatile p = malloc(1);

	free(p);
}

int main(int argc, char **argv)
{
	struct play_answer answer = { .status = PLAY_BROKEN };
	struct timespec start;
	int to;

	if (argc != 6)
		return 2;
	syscall(SYS_close_range, FREE_FD, ~0u, 0); /* what others left open */
	to = atoi(argv[2]);
	player.limits.resident_bytes = strtoull(argv[3], NULL, 10);
	player.limits.touched_1024th =
		(uint32_t)strtoul(argv[4], NULL, 10) % (PLAY_TOUCHED_ALL + 1);
	player.limits.seconds = (uint32_t)strtoul(argv[5], NULL, 10);
	limit_this_process();
	if (!open_history(atoi(argv[1]))) {
		warm_up();
		player.before_bytes = anonymous_bytes();
		clock_gettime(CLOCK_MONOTONIC, &start);
		play_all();
		answer.seconds_1000th = milliseconds_since(&start);
		look();
		answer.end_bytes = less_before(anonymous_bytes());
		answer.peak_bytes = answer.end_bytes > player.peak_bytes ? answer.end_bytes :
									   player.peak_bytes;
		answer.trimmed_bytes = trimmed_bytes();
		answer.status = player.status == PLAY_NOT_ENDED ? PLAY_ENDED : player.status;
	}
	/* exit would wait for threads and free; the answer is all there is to keep */
	_exit(write(to, &answer, sizeof answer) != (ssize_t)sizeof answer);
}
