/* SPDX-License-Identifier: Apache-2.0 */
/* Names written into the recording: a frame inside libc's lfind is named from libc's own symbol
 * table, once. */
#include <dlfcn.h>
#include <search.h>
#include "tests/unit/fixtures/recorder.h"
#include "interpose/code/symbolize.h"

static int allocate_and_compare(const void *a, const void *b)
{
	static uint64_t at = 0x1000;
	fixture_alloc(CUF_KIND_DEVICE, at += 512, 512);
	return *(const int *)a - *(const int *)b;
}

static unsigned names_like(const char *name)
{
	unsigned count = 0;
	const struct cuf_header *h = cuf_recording.header;
	for (uint64_t at = 0; at + sizeof(struct cuf_meta) <= h->meta_used;) {
		const struct cuf_meta *meta = (const void *)(cuf_recording.meta + at);
		count += meta->type == CUF_META_FUNCTION && meta->text_bytes == strlen(name) &&
		         !memcmp(meta + 1, name, meta->text_bytes);
		at += meta->bytes;
	}
	return count;
}

static void test_symbolize__a_frame_is_named_once(void **state)
{
	const int numbers[] = { 1, 2, 3, 4 }, wanted = 3;
	size_t count = 4;
	assert_ptr_equal(lfind(&wanted, numbers, &count, sizeof *numbers, allocate_and_compare),
	                 &numbers[2]);
	assert_int_equal(names_like("lfind"), 0);
	cuf_symbolize_all_stacks(UINT64_MAX);
	assert_int_equal(names_like("lfind"), 1);
	cuf_symbolize_all_stacks(UINT64_MAX);
	assert_int_equal(names_like("lfind"), 1);
}

static void add_frame(const void *function)
{
	cuf_recording.frames[cuf_recording.header->frames_used++] = (uintptr_t)function + 1;
}

/* Objects that are loaded later lie below libc, mostly; the one with most names comes last. */
static void test_symbolize__a_large_table_leaves_the_others_their_names(void **state)
{
	void *large = dlopen("libstdc++.so.6", RTLD_NOW);
	const unsigned of_libc = 4000;

	assert_non_null(large);
	add_frame(dlsym(large, "_ZSt9terminatev"));
	add_frame(dlsym(RTLD_DEFAULT, "lsearch"));
	cuf_symbolize_all_stacks(of_libc);
	assert_int_equal(names_like("lsearch"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbolize__a_frame_is_named_once),
		cmocka_unit_test(test_symbolize__a_large_table_leaves_the_others_their_names),
	};
	fixture_start("size=8MiB:host=off", "/tmp");
	return cmocka_run_group_tests_name("symbolize", tests, NULL, NULL);
}
