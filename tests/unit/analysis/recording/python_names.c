/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of Python functions from META CODE, damaged ones too; which files are the user's; a call
 * site's line with Python frames.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "analysis/recording/python_names.h"
#include "analysis/symbols/symbols.h"
#include "analysis/facts/places.h"

static const struct fact_meta_text texts[] = {
	{ CUF_META_CODE, 7, 0, "Server.serve\n/srv/app/server.py\n40\n", 0 },
	{ CUF_META_CODE, 3, 0, "forward\n/usr/lib/python3/dist-packages/torch/nn/x.py\n1190\n", 0 },
	{ CUF_META_NOTE, 7, 0, "not a name\n\n", 0 },
	{ CUF_META_CODE, 9, 0, "<module>\n<string>\n1\n", 0 },
	{ CUF_META_CODE, 100, 0, "", 0 },
	{ CUF_META_CODE, 101, 0, "cut", 0 },
	{ CUF_META_CODE, 102, 0, "\n\n\n\n", 0 },
	{ CUF_META_CODE, 103, 0, "f\nfile\n-12x\n", 0 },
};
static struct fact_process process = { .texts = texts, .text_count = sizeof texts / sizeof *texts };

static void test_names__are_found_by_number(void **state)
{
	struct python_names *names = python_names_of(process.texts, process.text_count);
	const struct python_name *name = python_names_find(names, 7);
	assert_non_null(name);
	assert_string_equal(name->function, "Server.serve");
	assert_string_equal(name->file, "/srv/app/server.py");
	assert_int_equal(name->first_line, 40);
	assert_null(python_names_find(names, 8));
	assert_null(python_names_find(names, 0));
	assert_string_equal(python_names_find(names, 100)->function, "");
	assert_string_equal(python_names_find(names, 101)->function, "cut");
	assert_string_equal(python_names_find(names, 101)->file, "");
	assert_string_equal(python_names_find(names, 102)->file, "");
	python_names_free(names);
	python_names_free(NULL);
}

static void test_files__of_libraries_are_not_the_users_own(void **state)
{
	static const char *const libraries[] = { "/usr/lib/python3/dist-packages/torch/nn/x.py",
		                                 "/home/u/venv/lib/python3.11/site-packages/a.py",
		                                 "/usr/lib/python3.11/threading.py",
		                                 "<frozen importlib._bootstrap>" };
	static const char *const own[] = {
		"/srv/app/server.py",        "<string>", "<stdin>", "model.py",
		"/home/u/lib/pythonic/a.py", ""
	};
	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
		assert_true(python_file_is_library(libraries[i]));
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		assert_false(python_file_is_library(own[i]));
}

static void test_line__begins_at_the_users_own_python(void **state)
{
	const uint64_t addrs[] = { 0x1000, cuf_frame_python(3, 1194), cuf_frame_python(7, 41),
		                   cuf_frame_python(9, 2), 0x2000 };
	const uint64_t library_alone[] = { 0x1000, cuf_frame_python(3, 1194), 0x2000 },
		       lost[] = { cuf_frame_python(0, 5), cuf_frame_python(5000, 0) };
	const struct {
		const uint64_t *addrs;
		uint32_t depth;
		const char *line;
	} stacks[] = { { addrs, 5, "Server.serve (server.py:41) < <module>" },
		       { library_alone, 3, "forward (x.py:1194) < +0x2000" },
		       { lost, 2, "a Python function < a Python function" } };
	struct facts facts = { .processes = &process, .process_count = 1 };
	struct symbols *symbols = symbols_new(NULL);
	struct frames *frames = frames_new(&facts, symbols);
	struct places *places = places_new(&facts, frames);
	char line[256];
	for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
		struct fact_stack stack = {
			.process = 0, .id = 1, .depth = stacks[i].depth, .addrs = stacks[i].addrs,
		};
		place_line(places, &stack, 200, line, sizeof line);
		assert_string_equal(line, stacks[i].line);
	}
	places_free(places);
	frames_free(frames);
	symbols_free(symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names__are_found_by_number),
		cmocka_unit_test(test_files__of_libraries_are_not_the_users_own),
		cmocka_unit_test(test_line__begins_at_the_users_own_python),
	};
	return cmocka_run_group_tests_name("python_names", tests, NULL, NULL);
}
