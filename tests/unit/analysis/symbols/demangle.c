/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readable names: both Rust schemes, C++, versions and clones, and names that are made to explode.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "analysis/symbols/function_name.h"

static void test_demangle__names(void **state)
{
	static const struct {
		const char *name, *readable;
	} cases[] = {
		{ "", "" },
		{ "@", "@" },
		{ "main", "main" },
		{ "i", "i" },
		{ "memcpy@@GLIBC_2.14", "memcpy" },
		{ "_start", "_start" },
		{ "_Z", "_Z" },
		{ "_ZN2ns1S4growIiEEPvT_", "void* ns::S::grow<int>(int)" },
		{ "_ZN2ns1S4growIiEEPvT_.isra.0", "void* ns::S::grow<int>(int)" },
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi@@GLIBCXX_3.4",
		  "std::vector<int, std::allocator<int> >::push_back(int&&)" },
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
		  "core::fmt::Write::write_fmt" },
		{ "_RNvC6_123foo3bar", "123foo::bar" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *readable = demangle(cases[i].name);
		assert_string_equal(readable, cases[i].readable);
		free(readable);
	}
}

/* Each of 36 types names the one before it twice: 2^36 words from 400 bytes. */
static void test_demangle__explosion_stays_mangled(void **state)
{
	char name[2048] = "_Z1f1AIiiE", *readable;

	for (unsigned i = 0; i < 36; i++) {
		char next[32], previous = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i];
		snprintf(next, sizeof next, "S_IS%c_S%c_E", previous, previous);
		strcat(name, next);
		if (i == 4) {
			readable = demangle(name);
			assert_int_equal(strncmp(readable,
			                         "f(A<int, int>, A<A<int, int>, A<int, int> >, ",
			                         45),
			                 0);
			free(readable);
		}
	}
	readable = demangle(name);
	assert_true(strlen(readable) <= DEMANGLED_BYTES_MAX);
	assert_string_equal(readable, name);
	free(readable);
}

static void test_demangle__damaged_names(void **state)
{
	static const char whole[] =
		"_ZNSt8_Rb_treeISsSt4pairIKSsSt6vectorIiSaIiEEESt10_Select1stIS5_ESt4lessISsESaIS5_EE8_M_eraseEPSt13_Rb_tree_nodeIS5_E";
	char name[sizeof whole];

	for (size_t bytes = 0; bytes < sizeof whole; bytes++) {
		memcpy(name, whole, bytes);
		name[bytes] = 0;
		free(demangle(name));
	}
	srand(11);
	for (unsigned round = 0; round < 20000; round++) {
		memcpy(name, whole, sizeof whole);
		for (unsigned i = 0; i < 4; i++)
			name[2 + (size_t)rand() % (sizeof whole - 3)] =
				"_0123456789SIEKNRLPTZtsdi.$@"[rand() % 28];
		free(demangle(name));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_demangle__names),
		cmocka_unit_test(test_demangle__explosion_stays_mangled),
		cmocka_unit_test(test_demangle__damaged_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
