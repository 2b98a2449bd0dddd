/* SPDX-License-Identifier: Apache-2.0 */
/* What of a function's name is kept, and which chains are one call site in two builds. */
#include "analysis/gate/site_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "analysis/base/xalloc.h"
#include "analysis/facts/frames.h"

static void what_a_rebuild_changes_is_dropped(void **state)
{
	static const char *const names[][2] = {
		{ "append_kv", "append_kv" },
		{ "append_kv.constprop.0", "append_kv" },
		{ "append_kv.isra.0.cold", "append_kv" },
		{ "serve.part.2", "serve" },
		{ "Session::append(int, std::string const&)", "Session::append" },
		{ "Session::size() const", "Session::size" },
		{ "void grow<float, 16ul>(std::vector<float>&)", "grow" },
		{ "std::vector<int, std::allocator<int> >::push_back(int&&)",
		  "std::vector::push_back" },
		{ "make[abi:cxx11](int)", "make" },
		{ "(anonymous namespace)::load(char const*)", "{anonymous}::load" },
		{ "run()::{lambda(int)#2}::operator()(int) const", "run::{lambda}::operator()" },
		{ "operator new(unsigned long)", "operator new" },
		{ "Block::operator new[](unsigned long)", "Block::operator new[]" },
		{ "bool operator< <int>(Pair<int> const&, Pair<int> const&)", "operator<" },
		{ "std::ostream& operator<< <char>(std::ostream&, char)", "operator<<" },
		{ "server::cache::insert::h0123456789abcdef", "server::cache::insert" },
		{ "server::hot::hash", "server::hot::hash" },
		{ "cooperator", "cooperator" },
		{ "unsigned long size_of<int>()", "size_of" },
		{ "broken<", "broken" },
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char out[256];
		site_function(names[i][0], out, sizeof out);
		if (strcmp(out, names[i][1]) != 0)
			fail_msg("%s: %s, not %s", names[i][0], out, names[i][1]);
	}
}

static void chains_have_no_addresses_lines_and_versions(void **state)
{
	const struct frame frames[] = {
		{ .function = "take", .module = "server", .file = "/a/take.h", .line = 3,
		  .language = "native", .addr = 0x1234 },
		{ .function = "grow.isra.0", .module = "libkv.so.1.2.3", .language = "native" },
		{ .function = "grow", .module = "libkv.so.1", .language = "native" },
		{ .function = NULL, .module = "libkv.so", .language = "native", .offset = 99 },
		{ .function = "Session.append", .file = "/home/me/app/session.py", .line = 8,
		  .language = "python" },
		{ .function = "main", .module = "server", .language = "native" },
		{ .function = "__libc_start_main", .module = "libc.so.6", .language = "native" },
	};
	struct arena *arena = arena_new();

	assert_string_equal(site_name(frames, sizeof frames / sizeof *frames, arena),
			    "server!take < libkv.so!grow < libkv.so!? < "
			    "session.py!Session.append < server!main");
	assert_string_equal(site_name(NULL, 0, arena), "?");
	arena_free(arena);
}

static void a_missing_frame_does_not_make_another_site(void **state)
{
	static const char *const whole = "a!f < a!g < a!h < a!main";

	assert_true(site_name_is_like(whole, whole));
	assert_true(site_name_is_like(whole, "a!f < a!h < a!main"));
	assert_true(site_name_is_like("a!f < a!main", whole));
	assert_true(site_name_is_like("a!f", whole));
	assert_false(site_name_is_like("a!g < a!h < a!main", whole));
	assert_false(site_name_is_like("a!f < a!main < a!h", whole));
	assert_false(site_name_is_like("a!f < a!other < a!main", whole));
	assert_false(site_name_is_like("a!ff < a!g", "a!f < a!g"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_rebuild_changes_is_dropped),
		cmocka_unit_test(chains_have_no_addresses_lines_and_versions),
		cmocka_unit_test(a_missing_frame_does_not_make_another_site),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
