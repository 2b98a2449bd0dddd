/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's maps: what overlaps a range is found and split, compared with a model of one byte a
 * page.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include "tests/unit/fixtures/recorder.h"
#include "interpose/hooks/malloc/map_table.h"
#include "interpose/platform/at_fork_child.h"

enum { PAGE = 4096, PAGES = 64 };

/* Removes all that overlaps. Returns how many maps that were. */
static unsigned remove_all(uint64_t start, uint64_t end, uint64_t bytes_min, struct cuf_map *taken)
{
	unsigned count = 0;
	while (cuf_map_cut(start, end, bytes_min, &taken[count]))
		count++;
	return count;
}

static void test_map_table__what_is_cut_leaves_pieces(void **state)
{
	struct cuf_map taken[4];
	struct cuf_map_sums sums;
	cuf_at_fork_child_run();
	assert_true(cuf_map_add(cuf_map_make(10 * PAGE, 20 * PAGE, CUF_MAP_ANONYMOUS)));
	assert_true(cuf_map_add(cuf_map_make(20 * PAGE, 30 * PAGE, CUF_MAP_FILE)));
	assert_int_equal(remove_all(15 * PAGE, 25 * PAGE, PAGE, taken), 2);
	assert_int_equal(taken[0].start, 10 * PAGE);
	assert_int_equal(taken[0].end, 20 * PAGE);
	assert_int_equal(cuf_map_kind(taken[1]), CUF_MAP_FILE);
	cuf_map_sum(&sums);
	assert_int_equal(sums.bytes[CUF_MAP_ANONYMOUS], 5 * PAGE);
	assert_int_equal(sums.bytes[CUF_MAP_FILE], 5 * PAGE);
	assert_int_equal(remove_all(15 * PAGE, 25 * PAGE, PAGE, taken), 0);
	/* pieces that are too small: anonymous ones are kept as such, others go */
	assert_int_equal(remove_all(12 * PAGE, 13 * PAGE, 3 * PAGE, taken), 1);
	assert_int_equal(remove_all(26 * PAGE, 30 * PAGE, 3 * PAGE, taken), 1);
	cuf_map_sum(&sums);
	assert_int_equal(sums.bytes[CUF_MAP_ANONYMOUS], 0);
	assert_int_equal(sums.bytes[CUF_MAP_SMALL], 4 * PAGE);
	assert_int_equal(sums.bytes[CUF_MAP_FILE], 0);
}

static void test_map_table__agrees_with_a_byte_a_page(void **state)
{
	unsigned char truth[PAGES] = { 0 };
	unsigned seed = 7;
	cuf_at_fork_child_run();
	for (unsigned round = 0; round < 20000; round++) {
		struct cuf_map taken[PAGES];
		struct cuf_map_sums sums;
		uint64_t bytes[3] = { 0 }, first, past;
		unsigned kind;
		seed = seed * 1103515245u + 12345;
		first = seed >> 16 & 63;
		past = first + 1 + (seed >> 22 & 15);
		past = past < PAGES ? past : PAGES;
		kind = seed >> 27 & 3; /* 0, 3: unmap; 1: anonymous; 2: of a file */
		remove_all(first * PAGE, past * PAGE, PAGE, taken);
		memset(truth + first, kind == 3 ? 0 : (int)kind, past - first);
		if (kind == 1 || kind == 2)
			cuf_map_add(cuf_map_make(first * PAGE, past * PAGE,
						 kind == 2 ? CUF_MAP_FILE : CUF_MAP_ANONYMOUS));
		for (unsigned i = 0; i < PAGES; i++)
			bytes[truth[i]] += PAGE;
		cuf_map_sum(&sums);
		assert_int_equal(sums.bytes[CUF_MAP_ANONYMOUS], bytes[1]);
		assert_int_equal(sums.bytes[CUF_MAP_FILE], bytes[2]);
	}
}

enum { THREADS = 4, OWN_MAPS = 2000, ROUNDS = 20, INTERRUPTED = 4000 };
#define OWN_BYTES ((uint64_t)1 << 36)

static _Atomic unsigned interruptions;
static volatile sig_atomic_t may_leave;
static sigjmp_buf leave_to;

/* What a handler may do at any instant, also inside of the table. */
static void handle(int number)
{
	uint64_t start = ((uint64_t)THREADS + 1) * OWN_BYTES;
	struct cuf_map taken;
	cuf_map_add(cuf_map_make(start, start + PAGE, CUF_MAP_SHARED));
	while (cuf_map_cut(start, start + PAGE, PAGE, &taken))
		;
	interruptions++;
	if (may_leave)
		siglongjmp(leave_to, 1);
}

/* Adds its maps in disorder, cuts each in two and removes all but the first piece of each. */
static void *churn(void *argument)
{
	uint64_t own = (1 + (uint64_t)(uintptr_t)argument) * OWN_BYTES;
	struct cuf_map taken;
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < OWN_MAPS; i++) {
			uint64_t start = own + i * 7919 % OWN_MAPS * 8 * PAGE;
			assert_true(cuf_map_add(cuf_map_make(start, start + 4 * PAGE,
							     CUF_MAP_ANONYMOUS)));
			assert_true(cuf_map_cut(start + PAGE, start + 2 * PAGE, PAGE, &taken));
			assert_int_equal(taken.start, start);
			assert_true(cuf_map_cut(start + 2 * PAGE, start + 4 * PAGE, PAGE, &taken));
			assert_int_equal(cuf_map_bytes(taken), 2 * PAGE);
		}
		for (unsigned i = 0; i < OWN_MAPS && round + 1 < ROUNDS; i++)
			assert_true(cuf_map_cut(own + i * 8 * PAGE, own + (i + 1) * 8 * PAGE, PAGE,
						&taken));
	}
	return NULL;
}

/* With a lock that is given up, maps stay that are gone, or are missing. */
static void test_map_table__threads_and_handlers_lose_nothing(void **state)
{
	struct sigaction action = { .sa_handler = handle };
	pthread_t threads[THREADS];
	struct cuf_map_sums sums;
	uint64_t last = 0;
	unsigned count = 0;
	struct cuf_map map;
	cuf_at_fork_child_run();
	sigaction(SIGUSR1, &action, NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)i), 0);
	for (unsigned i = 0; i < INTERRUPTED; i++)
		pthread_kill(threads[i % THREADS], SIGUSR1);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_true(interruptions > 0);
	cuf_map_sum(&sums);
	assert_int_equal(sums.count[CUF_MAP_ANONYMOUS], THREADS * OWN_MAPS);
	assert_int_equal(sums.bytes[CUF_MAP_ANONYMOUS], THREADS * OWN_MAPS * PAGE);
	assert_int_equal(sums.count[CUF_MAP_SHARED], 0);
	for (; cuf_map_find(last, &map); last = map.end) {
		assert_true(map.start >= last);
		assert_int_equal(map.start % (8 * PAGE), 0);
		count++;
	}
	assert_int_equal(count, THREADS * OWN_MAPS);
	assert_int_equal(cuf_recording.header->lost[CUF_LOST_HOST_LEDGER], 0);
}

/* The interrupted change is as if it had never begun, or is complete; the next ones are made. */
static void test_map_table__a_handler_may_leave_a_change_for_good(void **state)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_NODEFER };
	struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { { 0 }, { 0 } };
	volatile unsigned left = 0;
	volatile uint64_t next = 1;
	struct cuf_map map;
	cuf_at_fork_child_run();
	sigaction(SIGPROF, &action, NULL);
	may_leave = 1;
	setitimer(ITIMER_PROF, &often, NULL);
	while (left < 20)
		if (sigsetjmp(leave_to, 1))
			left++;
		else
			for (;; next++)
				cuf_map_add(cuf_map_make(next % 4096 * 2 * PAGE, (next % 4096 * 2 + 1) * PAGE,
							 CUF_MAP_FILE)),
					cuf_map_cut(next % 4096 * 2 * PAGE,
						    (next % 4096 * 2 + 1) * PAGE, PAGE, &map);
	setitimer(ITIMER_PROF, &never, NULL);
	may_leave = 0;
	while (cuf_map_cut(0, UINT64_MAX, PAGE, &map))
		;
	assert_true(cuf_map_add(cuf_map_make(PAGE, 2 * PAGE, CUF_MAP_FILE)));
	assert_true(cuf_map_cut(PAGE, 2 * PAGE, PAGE, &map));
	assert_false(cuf_map_find(0, &map));
}

/* More than one slab of nodes: 100,000 at once. */
static void test_map_table__is_large(void **state)
{
	enum { MAPS = 100000 };
	struct cuf_map taken;
	cuf_at_fork_child_run();
	for (uint64_t i = MAPS; i > 0; i--)
		assert_true(cuf_map_add(cuf_map_make(i * PAGE, (i + 1) * PAGE, CUF_MAP_FILE)));
	assert_int_equal(cuf_map_count(CUF_MAP_FILE), MAPS);
	for (uint64_t i = 1; i <= MAPS; i++) {
		assert_true(cuf_map_cut(i * PAGE, (i + 1) * PAGE, PAGE, &taken));
		assert_int_equal(taken.start, i * PAGE);
	}
	assert_false(cuf_map_find(0, &taken));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map_table__what_is_cut_leaves_pieces),
		cmocka_unit_test(test_map_table__agrees_with_a_byte_a_page),
		cmocka_unit_test(test_map_table__threads_and_handlers_lose_nothing),
		cmocka_unit_test(test_map_table__a_handler_may_leave_a_change_for_good),
		cmocka_unit_test(test_map_table__is_large),
	};
	fixture_start("host=off", "");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
