#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# interpose/cuflight.h in programs built in every way: no effect without a recorder, full effect
# with one.
bats_require_minimum_version 1.5.0

setup_file() {
	export ROOT BUILT LIB
	ROOT=$(realpath "$BATS_TEST_DIRNAME/../../..")
	BUILT=${BUILD:-$ROOT/build}
	LIB=$BUILT/libcuflight.so
	cd "$BATS_FILE_TMPDIR" || return
	cat >says.c <<-'EOF'
		#include "interpose/cuflight.h"
		#include <stdio.h>
		#include <string.h>
		#include <errno.h>

		int main(void)
		{
			uint64_t request, phase;
			errno = 7;
			printf("version %d active %d\n", cuflight_version(), cuflight_active());
			cuflight_mark("mark");
			cuflight_mark(NULL);
			cuflight_phase_push("pushed");
			phase = cuflight_phase_start("started");
			request = cuflight_request_begin("request", 0);
			printf("ids %d %d\n", phase != 0, request != 0);
			cuflight_request_end(request);
			cuflight_phase_end(phase);
			cuflight_phase_end(0);
			cuflight_phase_pop();
			cuflight_phase_pop();
			printf("mean %d %d %d\n", cuflight_set_sample_bytes(65536), cuflight_set_sample_bytes(100), cuflight_set_sample_bytes((uint64_t)1 << 40));
			printf("errno %d\n", errno);
			return 0;
		}
	EOF
	cat >says.cc <<-'EOF'
		#include "interpose/cuflight.h"
		int main() { cuflight::phase phase("scope"); { cuflight::request request("served", 5); return request.id() == 5 ? 0 : 1; } }
	EOF
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export CUFLIGHT_OUTPUT=$BATS_TEST_TMPDIR/recordings/
	mkdir recordings
}

nothing=$'version 0 active 0\nids 0 0\nmean -1 -1 -1\nerrno 7'
recorded=$'version 1 active 1\nids 1 1\nmean 0 -1 -1\nerrno 7'

# FLAG...: built with these, the program is unchanged without the recorder, and recorded with it
works_with() {
	cc -Wall -Wextra -Werror -I"$ROOT" "$@" "$BATS_FILE_TMPDIR/says.c" -o says
	[ "$(./says)" = "$nothing" ]
	[ "$(LD_PRELOAD=$LIB ./says)" = "$recorded" ]
	[ "$(LD_PRELOAD=$LIB CUFLIGHT_DISABLE=1 ./says)" = $'version 1 active 0\nids 0 0\nmean -1 -1 -1\nerrno 7' ]
}

@test "the header works optimized and not, in strict C99, position-independent and not" {
	works_with -O0 -std=c99 -pedantic
	works_with -O2 -std=c11 -pedantic
	works_with -O2 -fno-pie -no-pie
	works_with -O2 -fPIC -pie -Wl,-z,now
	! command -v clang || CC=clang works_with -O2
}

@test "in a program without dynamic linking the header does nothing" {
	cc -static -I"$ROOT" "$BATS_FILE_TMPDIR/says.c" -o says 2>/dev/null || skip "no static libc here"
	[ "$(./says)" = "$nothing" ]
}

@test "in C++ a phase can be a scope" {
	command -v g++ || skip "no g++ here"
	for std in c++98 c++11 c++20; do
		g++ -std=$std -Wall -Wextra -Werror -I"$ROOT" "$BATS_FILE_TMPDIR/says.cc" -o "says_$std" || [ $std = c++98 ]
	done
	run -1 ./says_c++11
	LD_PRELOAD=$LIB ./says_c++20
	"$BUILT/cuflight" report --format=json -o report.json recordings
	python3 -c '
import json
report = json.load(open("report.json"))
assert [(p["name"], p["sort"], p["request_id"]) for p in report["phases"]] == [("scope", "phase", None), ("served", "request", 5)], report["phases"]
assert all(p["end_ns"] for p in report["phases"])'
}

@test "a library that a program opens can mark its phases, too" {
	cat >library.c <<-'EOF'
		#include "interpose/cuflight.h"
		void work(void);
		void work(void) { cuflight_phase_push("in a library"); cuflight_phase_pop(); }
	EOF
	cat >host.c <<-'EOF'
		#include <dlfcn.h>
		int main(void) { void (*work)(void) = (void (*)(void))dlsym(dlopen("./library.so", RTLD_NOW | RTLD_LOCAL), "work"); work(); return 0; }
	EOF
	cc -shared -fPIC -I"$ROOT" library.c -o library.so
	cc host.c -o host -ldl
	./host
	LD_PRELOAD=$LIB ./host
	"$BUILT/cuflight" report --full recordings | grep -q 'in a library *mark *1 '
}

@test "dlsym finds the functions as it finds those of any library" {
	cat >finds.c <<-'EOF'
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <stdio.h>
		int main(void) { printf("%d %d %d\n", !!dlsym(RTLD_DEFAULT, "cuflight_1_active"), !!dlsym(dlopen(NULL, RTLD_NOW), "cuflight_1_active"), !!dlsym(RTLD_DEFAULT, "cuflight_2")); }
	EOF
	cc finds.c -o finds -ldl
	[ "$(./finds)" = "0 0 0" ]
	[ "$(LD_PRELOAD=$LIB ./finds)" = "1 1 0" ]
}

@test "a forked child has its own names and open phases" {
	cat >forks.c <<-'EOF'
		#include "interpose/cuflight.h"
		#include <stdio.h>
		#include <sys/wait.h>
		#include <unistd.h>
		int main(void)
		{
			int status;
			cuflight_phase_push("both");
			if (!fork()) {
				cuflight_phase_pop(); /* the parent's: not open here */
				cuflight_phase_push("both");
				cuflight_phase_pop();
				return 0;
			}
			wait(&status);
			cuflight_phase_pop();
			return status;
		}
	EOF
	cc -I"$ROOT" forks.c -o forks
	LD_PRELOAD=$LIB ./forks
	"$BUILT/cuflight" report --format=json -o report.json recordings
	python3 -c '
import json
report = json.load(open("report.json"))
assert len(report["processes"]) == 2
assert sorted((p["name"], p["end_ns"] is None) for p in report["phases"]) == [("both", False)] * 2, report["phases"]
assert len({p["pid"] for p in report["phases"]}) == 2'
}

@test "a change of the sampler's mean while it runs keeps the estimate right" {
	cat >changes.c <<-'EOF'
		#include "interpose/cuflight.h"
		#include <stdio.h>
		#include <stdlib.h>
		#include <time.h>
		enum { BLOCKS = 100000, BYTES = 400 };
		static void *kept[3 * BLOCKS];
		int main(void)
		{
			struct timespec pause = { 0, 30000000 };
			for (int i = 0; i < BLOCKS; i++)
				kept[i] = malloc(BYTES);
			nanosleep(&pause, NULL);
			if (cuflight_set_sample_bytes(16384))
				return 1;
			nanosleep(&pause, NULL);
			for (int i = BLOCKS; i < 3 * BLOCKS; i++)
				kept[i] = malloc(BYTES);
			printf("%zu\n", (size_t)3 * BLOCKS * BYTES);
			return 0;
		}
	EOF
	cc -O1 -fno-builtin -I"$ROOT" changes.c -o changes
	CUFLIGHT_OPTIONS=sample=256KiB LD_PRELOAD=$LIB ./changes >said
	"$BUILT/cuflight" report --format=json -o report.json recordings
	python3 -c '
import json
said, host = int(open("said").read()), json.load(open("report.json"))["host"]
samples = json.load(open("report.json"))
print(said, host["malloc_live_bytes"], host.get("malloc_live_interval"))
assert 0.8 * said <= host["malloc_live_bytes"] <= 1.2 * said, (said, host["malloc_live_bytes"])'
}

@test "the short report on stderr names the phase and the request in which memory ran out" {
	cat >dies.c <<-'EOF'
		#include "tests/victims/doors.h"
		#include "interpose/cuflight.h"
		int main(int argc, char **argv)
		{
			CUdeviceptr space;
			door_open(argc, argv);
			cuflight_phase_push("prefill\033[31m of a long prompt");
			cuflight_request_begin("generate", 4711);
			return cu.alloc(&space, (size_t)1 << 50) ? 1 : 0;
		}
	EOF
	cc -D_GNU_SOURCE -Wno-unused-function -I"$ROOT" dies.c -o dies -ldl -lpthread
	export SIMCUDA_LIB=$BUILT/sim
	run -1 --separate-stderr "$ROOT/scripts/simcuda" env LD_PRELOAD="$LIB" ./dies
	# shellcheck disable=SC2154
	grep -q 'out of GPU memory: .*, in prefill.* of a long prompt, request 4711 generate$' <<<"$stderr"
	run ! grep -q $'\033' <<<"$stderr"
	"$BUILT/cuflight" report --full recordings >report
	sed 1d report | head -n 2 | tr '\n' ' ' | grep -q ', during prefill.*, request 4,711'
	grep -q '^  phase  *prefill.*, request 4,711 (generate)' report
}
