#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A library works in threads of its own: the report names the line of the program that created them.
# Where the program's own code runs in the thread, its line is named, as ever.

load ../host/host.bash

# COMMAND...: recorded; what it printed is in truth, its report in screen and report.json
recorded() {
	"$cuflight" run -q -o rec/ -- "$@" >truth
	"$cuflight" report rec >screen
	"$cuflight" report --json rec >report.json
}

# FUNCTION [WORDS]: what it said that it holds is in one row, the first, with its line and these words
names_line() {
	local held place
	read -r held place < <(sed -nE 's/^holds ([0-9]+) at (.*)$/\1 \2/p' truth)
	cat truth screen
	awk '/^Who held/ { getline; print; exit }' screen >first
	grep -qE "$1 \(([^ ]*\.(c|py))?:${place#*:}\)${2-} " first
	report_has "Math.abs(d.leaks.filter((s) => s.stack.some((f) => (f.file || '').endsWith('/${place%:*}') && f.line === ${place#*:})).reduce((n, s) => n + s.bytes, 0) - $held) <= $held / 8"
}

@test "C: a thread's function of the C library: the line that created the thread" {
	recorded "$build/victims/thread_creators" libc
	names_line run_in_library ", in a thread"
	# the stack goes on where the thread was created, without what runs it
	report_has 'd.leaks[0].stack.some((f) => f.function === "main")'
	report_has '!d.leaks[0].stack.some((f) => f.function === "start_thread")'
}

@test "C11: a thread's function of the C library: the line that created the thread" {
	recorded "$build/victims/thread_creators" c11
	names_line run_in_library_c11 ", in a thread"
}

@test "C: main itself has the C library copy, here and in a thread: its lines" {
	cat >m.c <<-'C'
		#include <pthread.h>
		#include <stdlib.h>
		#include <string.h>
		char *kept[40];
		int main(void) { char *m = malloc(1 << 20); memset(m, 'x', (1 << 20) - 1); m[(1 << 20) - 1] = 0;
		for (int i = 0; i < 20; i++)
		kept[i] = strdup(m);
		for (int i = 20; i < 40; i++) { pthread_t t;
		pthread_create(&t, NULL, (void *(*)(void *))(void *)strdup, m);
		pthread_join(t, (void **)&kept[i]); }
		return 0; }
	C
	cc -g -O1 -pthread -o m m.c
	recorded ./m
	cat screen
	grep -qE '^  main \((m.c)?:7\) +20.0 MiB' screen
	grep -qE '^  main \((m.c)?:9\), in a thread +20.0 MiB' screen
}

@test "C: the program's own function in a thread: its line" {
	recorded "$build/victims/thread_creators" own
	names_line copy_text
	report_has '!d.leaks[0].stack.some((f) => f.function === "main")'
}

@test "C: a child that was forked in a thread has creators of its own only" {
	recorded "$build/victims/thread_creators" fork
	child=$(sed -nE 's/^child ([0-9]+)$/\1/p' truth)
	"$cuflight" report --pid="$child" rec >screen
	"$cuflight" report --json --pid="$child" rec >report.json
	names_line run_in_library ", in a thread"
	report_has 'd.leaks[0].stack.some((f) => f.function === "fork_in_thread") && !d.leaks[0].stack.some((f) => f.function === "main")'
}

@test "C: threads that create their successors make no new stack each time" {
	recorded "$build/victims/thread_creators" chain
	python3 - "$root" rec/*.cuf <<-'PYTHON'
		import struct, sys
		sys.path.insert(0, sys.argv[1] + "/tests")
		import recording
		one = recording.Recording(sys.argv[2])
		_, offset, size = one.sections[recording.STACK_INDEX]
		stacks = sum(recording.STACK.unpack_from(one.data, at)[2] != 0 for at in range(offset, offset + size, recording.STACK.size))
		print(stacks, "stacks")
		sys.exit(not 4 <= stacks < 100)
	PYTHON
}

@test "Python: what a pool of threads made is at the line that created the pool's threads" {
	cat >pool.py <<-'PYTHON'
		import inspect
		from concurrent.futures import ThreadPoolExecutor
		kept = []
		def load():
		    with ThreadPoolExecutor(4) as pool:
		        kept.extend(pool.map(bytes.upper, [b"x" * (4 << 20)] * 20)); print(f"holds {20 * (4 << 20)} at pool.py:{inspect.currentframe().f_lineno}")
		load()
	PYTHON
	recorded python3 pool.py
	names_line load ", in a thread"
}

@test "Python: a pool that waits keeps the name of the task that created its threads" {
	cat >waits.py <<-'PYTHON'
		import inspect
		from concurrent.futures import ThreadPoolExecutor
		kept = []
		pool = ThreadPoolExecutor(1)
		def warm():
		    pool.submit(len, b"").result(); return inspect.currentframe().f_lineno
		def load():
		    kept.extend(pool.map(bytes.upper, [b"x" * (4 << 20)] * 20))
		print(f"holds {20 * (4 << 20)} at waits.py:{warm()}")
		load()
	PYTHON
	recorded python3 waits.py
	# not load, which no stack has: so the line says that it is a thread's
	names_line warm ", in a thread"
}

@test "Python: the program's own function in a thread: its line" {
	cat >own.py <<-'PYTHON'
		import inspect, threading
		kept = []
		def read(count):
		    for i in range(count):
		        kept.append(b"x" * (4 << 20)); line = inspect.currentframe().f_lineno
		    print(f"holds {count * (4 << 20)} at own.py:{line}")
		thread = threading.Thread(target=read, args=(20,))
		thread.start()
		thread.join()
	PYTHON
	recorded python3 own.py
	names_line read
}
