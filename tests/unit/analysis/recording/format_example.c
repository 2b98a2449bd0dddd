/* SPDX-License-Identifier: Apache-2.0 */
/* The worked example of FORMAT.md is the real format: every hex line of it is compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "analysis/explain/facts_build.h"
#include "tests/unit/fixtures/recording_maker.h"

static struct maker *example(void)
{
	static const struct maker_plan plan = { 2, 4096, 2, 4096, 64, 64, 16, 8, 4, 0, 0 };
	struct maker *m = maker_new(&plan);
	maker_device(m, 0, 16 * GiB);
	maker_stack(m, 1, 0x401000, 3);
	maker_meta(m, CUF_META_EXE, 0, "/bin/demo");
	maker_alloc(m, 0x7f5a00200000, 3 * MiB, 1);
	maker_host_alloc(m, 0x55d0c0de2010, 4096, 1);
	maker_end(m, CUF_END_EXIT, 1);
	return m;
}

static void test_format__every_hex_line_of_the_document(void **state)
{
	struct maker *m = example();
	FILE *f = fopen("interpose/abi/FORMAT.md", "r");
	char line[512];
	unsigned lines = 0;
	assert_non_null(f); /* run from the root of the tree */
	while (fgets(line, sizeof line, f)) {
		char *at = line, *end;
		uint64_t offset = strtoull(line, &end, 16);
		if (end != line + 8 || strncmp(end, "  ", 2))
			continue;
		at = end;
		for (unsigned i = 0; i < 16; i++, at = end)
			assert_int_equal(strtoul(at, &end, 16), m->data[offset + i]);
		lines++;
	}
	assert_true(lines >= 30);
	fclose(f);
	maker_free_all(m);
}

static void test_format__the_example_is_read_as_told(void **state)
{
	struct maker *m = example();
	struct facts *facts;
	assert_int_equal(facts_build_memory(m->data, m->bytes, NULL, &facts, NULL), 0);
	assert_string_equal(facts->processes[0].exe, "/bin/demo");
	assert_int_equal(facts->processes[0].end_status, 1);
	assert_int_equal(facts->devices[0].owners[OWNER_DEVICE].bytes, 3 * MiB);
	assert_int_equal(facts->processes[0].host.malloc_live_bytes, 4096);
	assert_int_equal(facts->leaks[0].stack.addrs[2], 0x401020);
	assert_int_equal(facts->leaks[0].class, CLASS_LIVE);
	facts_free(facts);
	maker_free_all(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_format__every_hex_line_of_the_document),
		cmocka_unit_test(test_format__the_example_is_read_as_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
