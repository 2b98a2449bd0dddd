#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The listeners for GoogleTest and Catch2: each test is a phase, with the memory that it used.
bats_require_minimum_version 1.5.0
load ../cli.bash

# what the test functions of both frameworks call
common() {
	cat <<-'EOF'
		#include <cstdlib>
		#include <vector>
		extern "C" int cudaMalloc(void **at, size_t bytes);
		extern "C" int cudaFree(void *at);
		static int use_device(size_t bytes) { void *at = nullptr; return cudaMalloc(&at, bytes) || cudaFree(at); }
	EOF
}

# SOURCE FLAG...: builds it, against the headers as they are installed
build_test() {
	mkdir -p include
	cp "$root/interpose/cuflight.h" "$root"/scripts/ci/cuflight_*.h include/
	c++ -std=c++17 -g -O1 -Wall -Werror -Iinclude "$1.cc" -o "$1" "$build/sim/libcudart.so.13" "${@:2}"
}

# PROGRAM: recorded; the name, the device bytes and whether its host bytes are between 1 and 2 MB
needs() {
	"$root/scripts/simcuda" "$cuflight" run -q --host=full --size=16MiB -o "$1.cuf" -- "./$1" >log
	expect 0 phases --json "$1.cuf"
	node -e '
		for (const phase of JSON.parse(require("fs").readFileSync("out")).phases) {
			const host = phase.memory.host.need_bytes;
			console.log(phase.name, phase.memory.device.need_bytes, host >= 1000000 && host < 2000000);
		}
	'
}

expected="Pool.Grows 3145728 false
Pool.Fits 1048576 false
Cache.Fills 0 true"

@test "GoogleTest: each test is a phase" {
	[ -f /usr/include/gtest/gtest.h ] || skip "GoogleTest is not installed"
	{ common; cat; } >with_gtest.cc <<-'EOF'
		#include <cuflight_gtest.h>
		TEST(Pool, Grows) { EXPECT_EQ(use_device(3 << 20), 0); }
		TEST(Pool, Fits) { EXPECT_EQ(use_device(1 << 20), 0); }
		TEST(Cache, Fills) { std::vector<char> cache(1100000); EXPECT_EQ(cache[7], 0); }
	EOF
	build_test with_gtest -lgtest_main -lgtest -lpthread
	"$root/scripts/simcuda" ./with_gtest
	[ "$(needs with_gtest)" = "$expected" ]
	expect 1 check with_gtest.cuf 'device.peak@Pool.Grows <= 2MiB'
	expect 0 check with_gtest.cuf 'device.peak@Pool.Fits <= 2MiB'
}

@test "Catch2: each test case is a phase" {
	local libraries=()
	[ -d /usr/include/catch2 ] || skip "Catch2 is not installed"
	[ -f /usr/include/catch2/catch.hpp ] || libraries=(-lCatch2Main -lCatch2)
	{ common; cat; } >with_catch2.cc <<-'EOF'
		#define CATCH_CONFIG_MAIN
		#include <cuflight_catch2.h>
		#if __has_include(<catch2/catch_test_macros.hpp>)
		#include <catch2/catch_test_macros.hpp>
		#endif
		TEST_CASE("Pool.Grows") { REQUIRE(use_device(3 << 20) == 0); }
		TEST_CASE("Pool.Fits")
		{
			SECTION("once") { REQUIRE(use_device(1 << 20) == 0); }
			SECTION("again") { REQUIRE(use_device(1 << 20) == 0); }
		}
		TEST_CASE("Cache.Fills") { std::vector<char> cache(1100000); REQUIRE(cache[7] == 0); }
	EOF
	build_test with_catch2 -O0 -g0 "${libraries[@]}" # version 2 compiles its runner, too
	"$root/scripts/simcuda" ./with_catch2
	[ "$(needs with_catch2)" = "$expected" ]
}
