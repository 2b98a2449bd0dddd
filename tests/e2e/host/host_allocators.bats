#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Allocators other than glibc's: behind the recorder (its hooks call them), in front of it (calls
# bypass it), inside one object under other names, and inside one object without any name. The
# report names each, and what it shows of each is right.

load host.bash

# LIBRARY...: the leaking victim with these preloaded in this order, every event recorded; leaves its truth and the report
leak_under() {
	local IFS=:
	rm -rf rec
	LD_PRELOAD="$*" CUFLIGHT_OUTPUT=rec/ CUFLIGHT_OPTIONS=start=1:host=full:size=256MiB "$build/victims/host_leak" >truth
	"$cuflight" report --json rec >report.json
}

@test "tcmalloc behind the recorder: every block, and its statistics" {
	have libtcmalloc_minimal.so.4
	leak_under "$build/libcuflight.so" libtcmalloc_minimal.so.4
	"$root/tests/e2e/check_truth.py" truth report.json
	report_has 'd.host.allocator.name === "tcmalloc" && d.host.allocator.role === "process"'
	# what it allocated is what was recorded, plus its rounding, when it was last asked: the process ended later
	report_has 'd.host.allocator.books_ns < d.processes[0].end_ns'
	report_has 'd.host.allocator.live_bytes > d.host.malloc_live_bytes * 0.9 && d.host.allocator.live_bytes < d.host.malloc_live_bytes * 1.02'
	report_has 'd.host.allocator.system_bytes >= d.host.allocator.live_bytes && d.host.verdict === "fine"'
}

@test "mimalloc behind the recorder: every block, and the part of its statistics that it reserved" {
	have libmimalloc.so.2
	leak_under "$build/libcuflight.so" libmimalloc.so.2
	grep -v '^host verdict' truth >leak_alone # its statistics are too few for a verdict
	"$root/tests/e2e/check_truth.py" leak_alone report.json
	report_has 'd.host.allocator.name === "mimalloc" && /^[0-9]+[.][0-9]+[.][0-9]+$/.test(d.host.allocator.version) && d.host.verdict === null'
	report_has 'd.host.allocator.live_bytes === null && d.host.allocator.system_bytes > d.host.malloc_live_bytes'
	report_has 'd.host.resident.some((r) => r.part === "malloc_live" && r.bytes === d.host.malloc_live_bytes)'
}

@test "tcmalloc and mimalloc in front of the recorder are named in coverage, once, with statistics that take no lock" {
	local name library
	have libtcmalloc_minimal.so.4
	have libmimalloc.so.2
	for name in tcmalloc=libtcmalloc_minimal.so.4 mimalloc=libmimalloc.so.2; do
		library=${name#*=} name=${name%=*}
		leak_under "$library" "$build/libcuflight.so"
		report_has "d.coverage.blind.filter((b) => b.text.includes('$library') && !b.text.startsWith('another library')).length === 1"
		report_has "d.coverage.blind.some((b) => /$library.* defines malloc itself .${name}.:/.test(b.text))"
		report_has "d.host.other_allocators.length === 1 && d.host.other_allocators[0].role === 'in_front'"
		report_has "d.host.other_allocators[0].system_bytes === null || d.host.other_allocators[0].system_bytes > 64 << 20"
	done
	report_has 'd.host.other_allocators[0].system_bytes !== null' # mimalloc
}

@test "statistics are of the program's own time: a killed process has them, with jemalloc and glibc" {
	local library
	for library in '' libjemalloc.so.2; do
		[ -z "$library" ] || have_jemalloc
		rm -rf rec
		cat >killed.c <<-'END'
			#include <signal.h>
			#include <stdlib.h>
			#include <string.h>
			#include <unistd.h>
			enum { BLOCKS = 400, BYTES = 200000 };
			static char *blocks[BLOCKS];
			int main(void)
			{
				for (int i = 0; i < BLOCKS; i++)
					memset(blocks[i] = malloc(BYTES), 1, BYTES);
				for (int i = 0; i < BLOCKS; i++) {
					if (i == BLOCKS / 2)
						sleep(1); /* readings are paced by time */
					if (i % 4)
						free(blocks[i]);
				}
				raise(SIGKILL);
			}
		END
		"${CC:-cc}" -fno-builtin killed.c -o killed
		LD_PRELOAD="$build/libcuflight.so${library:+:$library}" CUFLIGHT_OUTPUT=rec/ CUFLIGHT_OPTIONS=start=1 ./killed || [ $? = 137 ]
		"$cuflight" report --json rec >report.json
		report_has 'd.capture.end_state === "killed" && d.host.allocator.books_ns > 0'
		# 80 MB, of which 20 are left (23 as jemalloc rounds); the last reading is at most 5 from that
		report_has 'd.host.allocator.live_bytes > 18e6 && d.host.allocator.live_bytes < 31e6'
		report_has 'd.host.resident.reduce((sum, row) => sum + row.bytes, 0) === d.host.rss_bytes'
	done
}

@test "jemalloc linked into a library under hidden names, and stripped, is named in coverage" {
	local archive
	archive=$(compgen -G '/usr/lib/*/libjemalloc_pic.a' | head -n 1)
	[ -n "$archive" ] || skip "no libjemalloc_pic.a here"
	echo '#include <stdlib.h>
	void *own_take(size_t bytes) { return malloc(bytes); }' >own.c
	"${CC:-cc}" -shared -fPIC -fno-builtin own.c -o libown.so "$archive" -Wl,--exclude-libs,ALL -lstdc++ -lm -lpthread -ldl
	strip libown.so
	[ "$(nm -D --defined-only libown.so | grep -cv own_take)" = 0 ]
	echo 'void *own_take(unsigned long); int main(void) { return !own_take(64 << 20); }' >uses.c
	"${CC:-cc}" uses.c -o uses ./libown.so
	"$cuflight" run -q -o rec/ -- ./uses
	"$cuflight" report --json rec >report.json
	report_has 'd.coverage.blind.some((b) => /libown.so has jemalloc built in: its allocations are not recorded/.test(b.text))'
	"$cuflight" run -q -o plain/ -- "$build/victims/host_leak" 1 >/dev/null
	"$cuflight" report --json plain >report.json
	report_has '!d.coverage.blind.some((b) => /built in/.test(b.text))'
}

@test "CPython's own mimalloc is named only where it is used: without the GIL" {
	echo '#include <stdlib.h>
	const char *const message = "mimalloc: warning: "; int main(void) { return !malloc(64 << 20); }' >main.c
	for name in python3.13 python3.13t; do
		"${CC:-cc}" -fno-builtin main.c -o $name
		"$cuflight" run -q -o $name.cuf -- ./$name
		"$cuflight" report --json $name.cuf >$name.json
	done
	grep -q '/python3.13t has mimalloc built in' python3.13t.json
	! grep -q 'built in' python3.13.json
}

@test "an allocator in front of the recorder is named in coverage" {
	have_jemalloc
	LD_PRELOAD="libjemalloc.so.2:$build/libcuflight.so" CUFLIGHT_OUTPUT=rec/ CUFLIGHT_OPTIONS=start=1 "$build/victims/host_leak" 1 >/dev/null
	"$cuflight" report --json rec >report.json
	report_has 'd.coverage.blind.some((b) => /libjemalloc.* defines malloc itself \(jemalloc\)/.test(b.text))'
}

@test "an object with its own allocator is named in coverage, with its statistics" {
	# an object that has jemalloc under the names that Arrow builds it with: only its mallctl shows anything
	cat >own.c <<-'END'
		#include <stdlib.h>
		#include <string.h>
		/* code of the object is on a stack */
		__attribute__((constructor)) static void use(void) { free(malloc(1 << 20)); }
		int je_arrow_mallctl(const char *name, void *old, size_t *bytes, void *new, size_t new_bytes)
		{
			if (!strcmp(name, "epoch"))
				return 0;
			if (strcmp(name, "stats.allocated") || !old || *bytes != sizeof(size_t))
				return 2;
			*(size_t *)old = 123456789;
			return 0;
		}
	END
	"${CC:-cc}" -shared -fPIC -fno-builtin own.c -o libown.so
	"$cuflight" run -q -o rec/ -- perl -e 'require DynaLoader; DynaLoader::dl_load_file($ARGV[0]) or die; $x = "x" x 3e7' "$PWD/libown.so"
	"$cuflight" report --json rec >report.json
	report_has 'd.coverage.blind.some((b) => /libown.so has a private allocator \(jemalloc\)/.test(b.text))'
	report_has 'd.host.other_allocators[0].live_bytes === 123456789 && d.host.allocator.name === "glibc"'
}

@test "a program that is linked with jemalloc runs on it, is recorded, and its statistics are read" {
	local library
	have_jemalloc
	library=$(compgen -G '/usr/lib/*/libjemalloc.so.2' | head -n 1)
	echo 'int puts(const char *); void *malloc(unsigned long); int main(void) { return !malloc(30000000) || puts("end state exit 0") < 0; }' >linked.c
	"${CC:-cc}" -fno-builtin linked.c -o linked -Wl,--no-as-needed "$library"
	"$cuflight" run -q -o rec/ -- ./linked
	"$cuflight" report --json rec >report.json
	report_has 'd.host.allocator.name === "jemalloc" && d.host.malloc_live_bytes >= 30000000 && d.host.allocator.live_bytes >= 30000000'
}
