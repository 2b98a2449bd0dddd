/* SPDX-License-Identifier: Apache-2.0 */
/* Names of C++, Rust and Go: return types, parameters, template arguments, operators, lambdas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "analysis/symbols/function_name.h"
#include "analysis/symbols/library_names.h"

static void test_function_name_short(void **state)
{
	static const struct { const char *name, *readable; } rows[] = {
		{ "", "" },
		{ "keep_trace", "keep_trace" },
		{ "load(char const*)", "load" },
		{ "Event& std::vector<Event, std::allocator<Event> >::emplace_back<Event>(Event&&)",
		  "std::vector<Event, ..>::emplace_back<Event>" },
		{ "std::vector<int>::push_back(int const&)", "std::vector<int>::push_back" },
		{ "std::map<std::string, Session*, std::less<std::string> >::operator[](int&&)",
		  "std::map<std::string, ..>::operator[]" },
		{ "void Pool<std::pair<unsigned long, unsigned long> >::grow(int) const",
		  "Pool<..>::grow" },
		{ "std::ostream& operator<< <char>(std::ostream&, Foo<char> const&)",
		  "operator<< <char>" },
		{ "bool operator<(Foo const&, Foo const&)", "operator<" },
		{ "Foo<int>::operator->() const", "Foo<int>::operator->" },
		{ "Foo::operator unsigned long() const", "Foo::operator unsigned long" },
		{ "operator new(unsigned long)", "operator new" },
		{ "serve(int)::{lambda(char)#1}::operator()(char) const",
		  "serve::{lambda(char)#1}::operator()" },
		{ "Server::run() const::{lambda()#2}::operator()() const",
		  "Server::run::{lambda()#2}::operator()" },
		{ "v8::(anonymous namespace)::Visit(v8::Isolate*)",
		  "v8::(anonymous namespace)::Visit" },
		{ "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> "
		  ">::_M_create[abi:cxx11](unsigned long&, unsigned long)",
		  "std::__cxx11::basic_string<char, ..>::_M_create" },
		{ "non-virtual thunk to Server::run()", "Server::run" },
		{ "<grow::Session>::remember", "grow::Session::remember" },
		{ "<alloc::vec::Vec<u8> as core::clone::Clone>::clone",
		  "alloc::vec::Vec<u8>::clone" },
		{ "<[u8] as alloc::slice::hack::ConvertVec>::to_vec::<alloc::alloc::Global>",
		  "[u8]::to_vec::<..>" },
		{ "<fn(u8) -> u8 as grow::Call>::call", "fn::call" },
		{ "<&dyn core::ops::Fn<()> as core::ops::FnOnce<()>>::call_once",
		  "core::ops::Fn<()>::call_once" },
		{ "grow::main::{closure#0}", "grow::main::{closure#0}" },
		{ "runtime.(*mheap).alloc.func1", "runtime.(*mheap).alloc.func1" },
		{ "main.Map[...]", "main.Map[...]" },
		{ "broken<", "broken<" },
		{ "broken<(>)", "broken<(>)" },
	};
	char out[256], again[256];
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		function_name_short(rows[i].name, out, sizeof out);
		assert_string_equal(out, rows[i].readable);
		function_name_short(out, again, sizeof again);
		assert_string_equal(again, out);
	}
	function_name_short("load_weights(int)", out, 5);
	assert_string_equal(out, "load");
}

static void test_function_name_fit(void **state)
{
	static const struct { const char *name; size_t columns; const char *readable; } rows[] = {
		{ "std::vector<Event, std::allocator<Event> >::push_back(Event&&)", 40,
		  "std::vector<Event, ..>::push_back" },
		{ "std::vector<Event, std::allocator<Event> >::push_back(Event&&)", 30,
		  "std::vector<..>::push_back" },
		{ "std::vector<Event, std::allocator<Event> >::push_back(Event&&)", 25,
		  "..::vector<..>::push_back" },
		{ "std::vector<Event, std::allocator<Event> >::push_back(Event&&)", 15,
		  "..::push_back" },
		{ "std::vector<Event, std::allocator<Event> >::push_back(Event&&)", 4,
		  "..::push_back" },
		{ "a::load_weights", 12, "load_weights" },
		{ "load_weights", 4, "load_weights" },
	};
	char out[256];
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		function_name_fit(rows[i].name, rows[i].columns, out, sizeof out);
		assert_string_equal(out, rows[i].readable);
	}
}

static void test_is_library_code(void **state)
{
	static const struct { const char *function, *module, *file; bool is_library; } rows[] = {
		{ "Event& std::vector<Event>::emplace_back<Event>(Event&&)", NULL, NULL, true },
		{ "operator new(unsigned long)", NULL, NULL, true },
		{ "Log<std::string>::record(std::string)", NULL, "/srv/log.cpp", false },
		{ "std::vector<Event>& Log::events()", NULL, NULL, false },
		{ "grow", "/srv/grow", "/usr/include/c++/12/bits/stl_vector.h", true },
		{ "alloc::alloc::alloc", NULL, "/rustc/5980/library/alloc/src/alloc.rs", true },
		{ "<alloc::vec::Vec<u8>>::push", NULL, NULL, true },
		{ "<&dyn core::ops::function::Fn<()> as Call>::call", NULL, NULL, true },
		{ "<grow::Session>::remember", NULL, "src/grow.rs", false },
		{ "alloc::Pool::take()", NULL, "/srv/pool.cpp", false },
		{ "serde::parse", NULL, "/srv/.cargo/registry/src/x/serde/lib.rs", true },
		{ "_cgo_f44e6cdfedae_Cfunc__Cmalloc", NULL, NULL, true },
		{ "runtime.asmcgocall", NULL, NULL, true },
		{ "main.remember", NULL, "/srv/main.go", false },
		{ "call_init", "/lib64/ld-linux-x86-64.so.2", NULL, true },
		{ "strdup", "/lib/x86_64-linux-gnu/libc.so.6", NULL, true },
		{ "load", "/srv/libcpp.so", NULL, false },
		{ NULL, "/srv/grow", NULL, false },
		{ NULL, NULL, NULL, false },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(is_library_code(rows[i].function, rows[i].module, rows[i].file),
				 rows[i].is_library);
}

/* A hostile name may have any brackets; each piece of it must end. */
static void test_function_name__any_brackets(void **state)
{
	static const char letters[] = "<>()[]{}:, a-";
	char name[64], out[32];
	unsigned seed = 1;
	(void)state;

	for (unsigned round = 0; round < 20000; round++) {
		size_t bytes = round % (sizeof name - 1);
		for (size_t i = 0; i < bytes; i++) {
			seed = seed * 1103515245u + 12345;
			name[i] = letters[(seed >> 16) % (sizeof letters - 1)];
		}
		name[bytes] = 0;
		function_name_short(name, out, sizeof out);
		assert_true(strlen(out) < sizeof out);
		function_name_fit(name, 9, out, sizeof out);
		assert_true(strlen(out) < sizeof out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function_name_short),
		cmocka_unit_test(test_function_name_fit),
		cmocka_unit_test(test_is_library_code),
		cmocka_unit_test(test_function_name__any_brackets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
