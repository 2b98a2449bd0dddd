/* SPDX-License-Identifier: Apache-2.0 */
/* smaps of this process, parsed. */
#include <sys/mman.h>
#include "tests/unit/fixtures/recorder.h"
#include "interpose/hooks/malloc/process_maps.h"

enum { MiB = 1 << 20 };

static uint64_t sum(const struct cuf_process_maps *m)
{
	return m->heap_bytes + m->anonymous_bytes + m->stack_bytes + m->file_bytes +
	       m->file_private_bytes + m->shared_bytes + m->recorder_bytes;
}

static void test_process_maps__sorts_sum_to_the_whole(void **state)
{
	struct cuf_process_maps maps;
	assert_true(cuf_process_maps_read(&maps, (uintptr_t)cuf_recording.base, cuf_recording.bytes));
	assert_true(maps.whole);
	assert_true(maps.map_count > 5);
	assert_int_equal(sum(&maps), maps.rss_bytes);
	assert_true(maps.pss_bytes <= maps.rss_bytes);
	assert_true(maps.recorder_bytes > 0); /* the recording's header, at least */
}

static void test_process_maps__what_is_touched_is_seen_where_it_belongs(void **state)
{
	struct cuf_process_maps before, after;
	char *anonymous, *shared;
#if defined __SANITIZE_THREAD__ /* whose shadow of what is touched is anonymous memory, too */
	skip();
#endif
	assert_true(cuf_process_maps_read(&before, (uintptr_t)cuf_recording.base, cuf_recording.bytes));
	anonymous = mmap(NULL, 8 * MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	shared = mmap(NULL, 4 * MiB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(anonymous != MAP_FAILED && shared != MAP_FAILED);
	memset(anonymous, 1, 2 * MiB); /* untouched memory is not resident */
	memset(shared, 1, 4 * MiB);
	assert_true(cuf_process_maps_read(&after, (uintptr_t)cuf_recording.base, cuf_recording.bytes));
	assert_in_range(after.anonymous_bytes - before.anonymous_bytes, 2 * MiB, 3 * MiB);
	assert_in_range(after.shared_bytes - before.shared_bytes, 4 * MiB, 5 * MiB);
	munmap(anonymous, 8 * MiB);
	munmap(shared, 4 * MiB);
}

/* As a process with many threads has it at its end: smaps was never read. The first test of all. */
static void test_process_maps__the_counters_do_without_a_reading(void **state)
{
	struct cuf_process_maps maps;
	struct cuf_process_size size = cuf_process_size();
	assert_false(cuf_process_maps_are_known());
	assert_true(cuf_process_maps_update(&maps));
	assert_true(maps.whole && maps.anonymous_bytes && maps.file_bytes);
	assert_int_equal(sum(&maps), maps.rss_bytes);
	assert_in_range(maps.rss_bytes, size.resident_bytes - MiB, size.resident_bytes + MiB);
#if !defined __SANITIZE_THREAD__ /* which has a thread of its own */
	assert_int_equal(1, size.threads);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_process_maps__the_counters_do_without_a_reading),
		cmocka_unit_test(test_process_maps__sorts_sum_to_the_whole),
		cmocka_unit_test(test_process_maps__what_is_touched_is_seen_where_it_belongs),
	};
	fixture_start("host=off", "");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
