/* SPDX-License-Identifier: Apache-2.0 */
/* glibc's heap, read without its locks: the same figures as malloc_info and mallinfo2 report. */
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include "tests/unit/fixtures/recorder.h"
#include "interpose/hooks/malloc/glibc_heap.h"
#include "interpose/platform/clock.h"

enum { BLOCKS = 60000, THREADS = 3, LARGE_BYTES = 8 << 20 };
#define SECOND_NS 1000000000ull

static void *blocks[THREADS + 1][BLOCKS];
static pthread_barrier_t barrier;

static struct cuf_glibc_heap read_heap(uint64_t limit_ns)
{
	struct cuf_glibc_heap heap;
	struct dl_find_object libc;
	assert_int_equal(_dl_find_object(stdout, &libc), 0); /* data of libc */
	if (!cuf_glibc_heap_read((uintptr_t)libc.dlfo_link_map->l_ld,
				 (uintptr_t)libc.dlfo_map_end, cuf_now_ns() + limit_ns, &heap))
		skip(); /* a sanitizer's or valgrind's malloc is in place of glibc's */
	return heap;
}

/* Every size class, and holes everywhere: two of three blocks are freed in an odd order. */
static void scatter(void **own, unsigned seed)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		own[i] = malloc(16 + (i * 2654435761u + seed) % (i % 50 ? 600 : 9000));
	for (unsigned i = 0; i < BLOCKS; i++) {
		unsigned at = i * 7919u % BLOCKS;
		if (at % 3) {
			free(own[at]);
			own[at] = NULL;
		}
	}
}

static void release(void **own)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		free(own[i]);
}

static uint64_t attribute(const char *line, const char *key)
{
	const char *at = strstr(line, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* The process's sums, which are behind the last arena. */
struct told {
	uint64_t free_bytes, mapped_bytes, system_bytes, arena_count;
};

static struct told ask_glibc(void)
{
	static char text[1 << 20];
	FILE *file = fmemopen(text, sizeof text, "w");
	struct told told = { 0 };
	assert_int_equal(malloc_info(0, file), 0);
	fclose(file);
	for (const char *at = text; (at = strstr(at, "<heap ")); at++)
		told.arena_count++;
	const char *sums = strstr(text, "<total");
	for (const char *at = text; (at = strstr(at, "</heap>")); at++)
		sums = at;
	told.free_bytes = attribute(strstr(sums, "\"fast\""), "size=\"") +
			  attribute(strstr(sums, "\"rest\""), "size=\"");
	told.mapped_bytes = attribute(strstr(sums, "\"mmap\""), "size=\"");
	told.system_bytes = attribute(strstr(sums, "\"current\""), "size=\"");
	return told;
}

static void *scatter_in_thread(void *own)
{
	scatter(own, 1);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	release(own);
	return NULL;
}

static void test_glibc_heap__says_what_glibc_says(void **state)
{
	pthread_t threads[THREADS];
	void *large = malloc(LARGE_BYTES);
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, scatter_in_thread, blocks[i + 1]);
	scatter(blocks[0], 2);
	pthread_barrier_wait(&barrier);
	struct cuf_glibc_heap heap = read_heap(10 * SECOND_NS);
	struct told told = ask_glibc(); /* its FILE takes a few blocks */
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	release(blocks[0]);
	assert_true(heap.whole);
	assert_int_equal(heap.arena_count, told.arena_count);
	assert_int_equal(heap.system_bytes, told.system_bytes);
	assert_int_equal(heap.mapped_bytes, told.mapped_bytes);
	assert_true(heap.mapped_bytes >= LARGE_BYTES && heap.mapped_count >= 1);
	/* malloc_info adds the flags to the size of each chunk: up to 5 */
	assert_in_range(heap.free_bytes, told.free_bytes - 16384 - 5 * heap.free_count,
			told.free_bytes + 16384);
	assert_true(heap.free_bytes > 20 << 20);
	free(large);
}

static void test_glibc_heap__fast_bins_are_free(void **state)
{
	struct cuf_glibc_heap before, after;
	for (unsigned i = 0; i < BLOCKS; i++)
		blocks[0][i] = malloc(56);
	before = read_heap(10 * SECOND_NS);
	release(blocks[0]);
	after = read_heap(10 * SECOND_NS);
	assert_true(after.whole);
	/* all but those in the cache of the thread; a few are larger by a rest that was too small */
	assert_in_range(after.free_bytes - before.free_bytes, (BLOCKS - 64) * 64,
			BLOCKS * 64 + 16384);
}

/* The time is up at once: the rest is estimated from nothing, or from a small part. */
static void test_glibc_heap__ends_in_time(void **state)
{
	struct cuf_glibc_heap whole, part;
	scatter(blocks[0], 3);
	whole = read_heap(10 * SECOND_NS);
	part = read_heap(0);
	assert_true(whole.whole);
	assert_false(part.whole);
	assert_int_equal(part.system_bytes, whole.system_bytes);
	assert_in_range(part.free_bytes, whole.free_bytes / 4, part.system_bytes);
	release(blocks[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_glibc_heap__says_what_glibc_says),
		cmocka_unit_test(test_glibc_heap__fast_bins_are_free),
		cmocka_unit_test(test_glibc_heap__ends_in_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
