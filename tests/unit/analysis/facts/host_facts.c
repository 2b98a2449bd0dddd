/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocators' statistics and what is computed from them; texts that are wrong or cut; what the
 * parent adds to a finished recording.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>
#include "analysis/explain/facts_build.h"
#include "analysis/base/key_values.h"
#include "analysis/cmd/run/recording_append.h"
#include "tests/unit/fixtures/recording_maker.h"

static const char memory_text[] =
	"rss_bytes=209715200\nheap_bytes=157286400\nanonymous_bytes=41943040\nstack_bytes=1048576\nfile_bytes=8388608\n"
	"file_private_bytes=0\nshared_bytes=1048576\nrecorder_bytes=0\nswap_bytes=4096\nwhole=1\n";

static struct maker *process(void)
{
	struct maker *m = maker_new(&maker_small);
	m->h->options_host_mode = CUF_HOST_FULL;
	m->h->sample_mean_bytes = 524288;
	maker_stack(m, 1, 0x1000, 3);
	maker_stack(m, 2, 0x2000, 3);
	return m;
}

static struct facts *facts_of(struct maker *m)
{
	struct facts *facts;
	assert_int_equal(facts_build_memory(m->data, m->bytes, NULL, &facts, NULL), 0);
	return facts;
}

static uint64_t part(const struct fact_host *h, enum fact_host_part wanted)
{
	for (size_t i = 0; i < h->row_count; i++)
		if (h->rows[i].part == wanted)
			return h->rows[i].bytes;
	return 0;
}

static void check_sum(const struct fact_host *h)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < h->row_count; i++)
		sum += h->rows[i].bytes;
	assert_int_equal(sum, h->rss_bytes);
}

static void test_keys__are_found_at_the_beginning_of_lines(void **state)
{
	const char *
		text = "xlive_bytes=1\nlive_bytes=22\nname=a=b\nbad=x7\nfree.16=2,32\nfree.x=1,1\nfree.64=3,\nfree.32=1,40\n",
	       *at = text;
	struct key_class c;
	size_t bytes;
	assert_int_equal(key_number(text, "live_bytes"), 22);
	assert_int_equal(key_number(text, "bad"), CUF_UNKNOWN);
	assert_int_equal(key_number(text, "absent"), CUF_UNKNOWN);
	assert_int_equal(key_number(NULL, "live_bytes"), CUF_UNKNOWN);
	assert_true(key_is(text, "name", "a=b"));
	assert_non_null(key_value(text, "name", &bytes));
	assert_true(key_next_class(&at, "free", &c));
	assert_int_equal(c.class, 16);
	assert_int_equal(c.second, 32);
	assert_true(key_next_class(&at, "free", &c)); /* damaged lines are passed over */
	assert_int_equal(c.class, 32);
	assert_false(key_next_class(&at, "free", &c));
}

/* 1000 holes of 5000 bytes hold one page each in (5000 - 4095) / 4096 of the cases; one of 8 MiB is
 * nearly all whole pages. */
static void test_glibc__holes_smaller_than_pages_are_fragmented(void **state)
{
	struct maker *m = process();
	struct facts *facts;
	const struct fact_host *h;
	maker_meta(m, CUF_META_ALLOCATOR, CUF_MOMENT_START,
	           "name=glibc\nversion=2.36\nrole=process\nobject=/lib/libc.so.6\n");
	maker_meta(m, CUF_META_MEMORY, CUF_MOMENT_END, memory_text);
	maker_meta(
		m, CUF_META_ALLOCATOR, CUF_MOMENT_END,
		"name=glibc\nversion=2.36\nrole=process\nobject=/lib/libc.so.6\nsystem_bytes=157286400\nlive_bytes=52428800\nfree_bytes=104857600\n"
		"top_bytes=4096\nmapped_bytes=0\narena_count=2\nlargest_bytes=8388608\nfree.4096=19292,96464896\nfree.8388608=1,8388608\n");
	maker_end(m, CUF_END_EXIT, 0);
	facts = facts_of(m);
	h = &facts->processes[0].host;
	assert_string_equal(h->allocator, "glibc 2.36");
	assert_int_equal(h->allocator_count, 1);
	assert_int_equal(h->allocators[0].cached_bytes,
	                 4096 + (96464896 - 19292 * 4095) + (8388608 - 4095));
	assert_int_equal(h->allocators[0].fragmented_bytes + h->allocators[0].cached_bytes,
	                 104857600);
	assert_int_equal(h->allocators[0].split_basis, BASIS_ESTIMATED);
	assert_int_equal(h->allocators[0].largest_free.bytes, 8388608);
	assert_int_equal(h->verdict, HOST_FRAGMENTED);
	assert_int_equal(part(h, PART_LIVE), 52428800);
	assert_int_equal(part(h, PART_FILES), 8388608);
	assert_int_equal(h->swap_bytes, 4096);
	check_sum(h);
	facts_free(facts);
	maker_free_all(m);
}

/* Python frees its objects when it ends, which the reading of the exit counts as free; they may
 * still be resident. */
static void test_glibc__what_was_freed_at_the_exit_was_not_kept(void **state)
{
	struct maker *m = process();
	struct facts *facts;

	maker_sample(m)->host_live_bytes = 90 * MiB;
	m->now_ns += 20000000;
	m->h->work_end_ns = m->now_ns;
	m->h->work_end_seq = m->h->next_seq;
	m->now_ns += 400000000;
	maker_sample(m)->host_live_bytes = 30 * MiB;
	maker_meta(
		m, CUF_META_ALLOCATOR, CUF_MOMENT_END,
		"name=glibc\nversion=2.36\nrole=process\nobject=a\nlive_bytes=31457280\nfree_bytes=104857600\ntop_bytes=104857600\nmapped_bytes=0\n");
	maker_end(m, CUF_END_EXIT, 0);
	facts = facts_of(m);
	assert_int_equal(facts->processes[0].host.allocator_count, 0);
	facts_free(facts);
	maker_free_all(m);
}

/* An allocator that reports more than is resident: blocks with a map of their own were not
 * touched. */
static void test_rows__books_beyond_what_is_resident_still_sum(void **state)
{
	struct maker *m = process();
	struct facts *facts;
	const struct fact_host *h;
	maker_meta(m, CUF_META_MEMORY, CUF_MOMENT_END, memory_text);
	maker_meta(
		m, CUF_META_ALLOCATOR, CUF_MOMENT_END,
		"name=glibc\nrole=process\nobject=a\nlive_bytes=1099511627776\nfree_bytes=1048576\ntop_bytes=1048576\nmapped_bytes=1099411627776\n");
	maker_end(m, CUF_END_EXIT, 0);
	facts = facts_of(m);
	h = &facts->processes[0].host;
	check_sum(h);
	assert_true(part(h, PART_LIVE) <= 157286400 + 41943040);
	assert_int_equal(part(h, PART_CACHED), 1048576);
	facts_free(facts);
	maker_free_all(m);
}

static void test_jemalloc__the_largest_extent_is_bounded(void **state)
{
	struct maker *m = process();
	struct facts *facts;
	const struct fact_allocator *a;
	maker_meta(
		m, CUF_META_ALLOCATOR, CUF_MOMENT_END,
		"name=jemalloc\nversion=5.3.0\nrole=process\nobject=j\nlive_bytes=10485760\nscattered_bytes=0\ncached_bytes=41943040\npage_bytes=4096\n"
		"extent.8=3,131072\nretained.4=1,20480\nslab.64=10,640\n");
	maker_meta(m, CUF_META_ALLOCATOR, CUF_MOMENT_END,
	           "name=jemalloc\nrole=private\nobject=libarrow.so\nlive_bytes=777\n");
	maker_end(m, CUF_END_EXIT, 0);
	facts = facts_of(m);
	a = facts->processes[0].host.allocators;
	assert_int_equal(facts->processes[0].host.allocator_count, 2);
	assert_int_equal(a->largest_free.bytes, 131072 - 2 * 40960); /* class 8 begins at 40 KiB */
	assert_int_equal(a->slabs[0].all_count, 640);
	assert_int_equal(a[1].role, ALLOCATOR_PRIVATE);
	assert_int_equal(a[1].live_bytes, 777);
	assert_int_equal(facts->processes[0].host.verdict, HOST_CACHED);
	facts_free(facts);
	maker_free_all(m);
}

static void test_pins__lone_blocks_hold_pages_full_ones_do_not(void **state)
{
	struct maker *m = process();
	struct facts *facts;
	const struct fact_host *h;
	for (uint64_t i = 0; i < 200; i++)
		maker_host_alloc(m, 0x10000000 + i * 4096, 64, 1);
	for (uint64_t i = 0; i < 640; i++) /* ten pages, full */
		maker_host_alloc(m, 0x20000000 + i * 64, 64, 2);
	maker_meta(
		m, CUF_META_ALLOCATOR, CUF_MOMENT_END,
		"name=tcmalloc\nrole=process\nobject=t\nlive_bytes=53760\nscattered_bytes=33554432\ncached_bytes=0\n");
	maker_end(m, CUF_END_EXIT, 0);
	facts = facts_of(m);
	h = &facts->processes[0].host;
	assert_int_equal(h->verdict, HOST_FRAGMENTED);
	assert_int_equal(h->pin_count, 1);
	assert_int_equal(h->pins[0].stack.id, 1);
	assert_int_equal(h->pins[0].count, 200);
	assert_int_equal(h->pins[0].open_bytes, 33554432);
	facts_free(facts);
	maker_free_all(m);
}

static void test_maps__are_not_malloc(void **state)
{
	struct maker *m = process();
	struct facts *facts;
	const struct fact_host *h;
	maker_host_alloc(m, 0x10000010, 100, 1);
	maker_host_alloc(m, 0x20000000 + CUF_MAP_ANONYMOUS_OFFSET, 1 << 20, 1);
	maker_host_alloc(m, 0x30000000 + CUF_MAP_FILE_OFFSET, 8192, 2);
	maker_end(m, CUF_END_EXIT, 0);
	facts = facts_of(m);
	h = &facts->processes[0].host;
	assert_int_equal(h->malloc_live_bytes, 100);
	assert_int_equal(h->malloc_live_count, 1);
	assert_int_equal(h->maps.anonymous_bytes, 1 << 20);
	assert_int_equal(h->maps.file_bytes, 8192);
	facts_free(facts);
	maker_free_all(m);
}

/* Rows sum to what is resident, and arenas hold the objects: neither is counted twice. */
static void test_python__objects_are_neither_malloc_nor_maps(void **state)
{
	struct maker *m = process();
	struct facts *facts;
	const struct fact_host *h;
	uint64_t objects = 0, arenas = 0, maps = 0, sum = 0;

	m->h->python_objects_ns = m->h->start_ns;
	m->h->python_arena_bytes = 1 << 20;
	maker_host_alloc(m, 0x10000010, 100, 1);
	for (uint64_t i = 0; i < 10; i++)
		maker_host_alloc(m, cuf_python_address(0x40000000 + i * 512),
				 cuf_python_bytes(500), 2);
	/* whole pages at a page, as mimalloc has them: no map */
	maker_host_alloc(m, cuf_python_address(0x50000000), cuf_python_bytes(8192), 2);
	maker_host_alloc(m, 0x20000000 + CUF_MAP_SHARED_OFFSET, 1 << 20, 1);
	maker_meta(m, CUF_META_MEMORY, CUF_MOMENT_END,
		   "whole=1\nanonymous_bytes=2097152\nshared_bytes=3145728\n");
	maker_end(m, CUF_END_EXIT, 0);
	facts = facts_of(m);
	h = &facts->processes[0].host;
	assert_int_equal(h->malloc_live_bytes, 100);
	assert_int_equal(h->python_live_bytes, 10 * 500 + 8193);
	assert_int_equal(h->python_live_count, 11);
	assert_int_equal(h->maps.shared_bytes, 1 << 20);
	assert_int_equal(h->maps.anonymous_bytes, 0);
	for (size_t i = 0; i < h->row_count; i++) {
		sum += h->rows[i].bytes;
		if (h->rows[i].part == PART_OBJECTS)
			objects = h->rows[i].bytes;
		if (h->rows[i].part == PART_PYTHON)
			arenas = h->rows[i].bytes;
		if (h->rows[i].part == PART_MAPS)
			maps = h->rows[i].bytes;
	}
	assert_int_equal(objects, h->python_live_bytes);
	assert_int_equal(objects + arenas, 1 << 20);
	assert_int_equal(maps, 1 << 20);
	assert_int_equal(sum, 2097152 + 3145728);
	facts_free(facts);
	maker_free_all(m);
}

static void test_wait__what_the_parent_saw_is_believed_once(void **state)
{
	static const struct {
		const char *text;
		enum fact_end end;
		uint64_t status;
	} rows[] = {
		{ "signal=9\noom_kill=1\n", END_OOM_KILLED, 9 },
		{ "signal=9\noom_kill=0\n", END_KILLED, 9 },
		{ "signal=11\n", END_SIGNAL, 11 },
		{ "exit_status=3\n", END_EXIT, 3 },
		{ "oom_kill=2\n", END_OOM_KILLED, CUF_UNKNOWN },
		{ "oom_kill=0\n", END_KILLED, CUF_UNKNOWN },
	};
	char path[] = "/tmp/cuflight-append-XXXXXX";
	close(mkstemp(path));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct maker *m = process();
		struct facts *facts;
		maker_meta(m, CUF_META_EXE, 0, "/bin/demo");
		maker_write(m, path);
		assert_int_equal(recording_append_wait(path, rows[i].text), 0);
		assert_int_equal(facts_build(path, NULL, &facts, NULL), 0);
		assert_string_equal(facts->processes[0].exe, "/bin/demo");
		assert_int_equal(facts->processes[0].end, rows[i].end);
		assert_int_equal(facts->processes[0].end_status, rows[i].status);
		facts_free(facts);
		maker_free_all(m);
	}
	struct maker *m = process();
	maker_end(m, CUF_END_EXIT, 0);
	maker_write(m, path);
	assert_int_equal(recording_append_wait(path, "signal=9\n"), 1);
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(recording_append_wait(path, "signal=9\n"), -1);
	unlink(path);
	assert_int_equal(recording_append_wait(path, "signal=9\n"), -1);
	maker_free_all(m);
}

static void test_append__a_full_meta_section_is_left_alone(void **state)
{
	struct maker *m = process();
	char path[] = "/tmp/cuflight-append-XXXXXX";
	uint64_t room = 0;
	close(mkstemp(path));
	for (unsigned i = 0; i < m->h->section_count; i++)
		if (m->h->sections[i].id == CUF_SEC_META)
			room = m->h->sections[i].bytes;
	while (m->h->meta_used + 4096 <= room) {
		static char text[3000];
		memset(text, 'x', sizeof text - 1);
		maker_meta(m, CUF_META_NOTE, 0, text);
	}
	m->h->meta_used = room + 100; /* as a recorder leaves it whose last record was dropped */
	maker_write(m, path);
	assert_true(recording_append_wait(path, "signal=9\n") <= 0);
	unlink(path);
	maker_free_all(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys__are_found_at_the_beginning_of_lines),
		cmocka_unit_test(test_glibc__holes_smaller_than_pages_are_fragmented),
		cmocka_unit_test(test_glibc__what_was_freed_at_the_exit_was_not_kept),
		cmocka_unit_test(test_rows__books_beyond_what_is_resident_still_sum),
		cmocka_unit_test(test_jemalloc__the_largest_extent_is_bounded),
		cmocka_unit_test(test_pins__lone_blocks_hold_pages_full_ones_do_not),
		cmocka_unit_test(test_maps__are_not_malloc),
		cmocka_unit_test(test_python__objects_are_neither_malloc_nor_maps),
		cmocka_unit_test(test_wait__what_the_parent_saw_is_believed_once),
		cmocka_unit_test(test_append__a_full_meta_section_is_left_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
