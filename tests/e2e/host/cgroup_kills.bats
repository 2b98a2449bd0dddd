#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The kernel kills a process at a limit of 64 MiB. A plain preload leaves a recording in time, and it
# names the line that kept the memory: Python objects, C++, maps, forked workers, shared memory,
# files of tmpfs.

load host.bash
load ../../memory_cgroup.bash

limited_setup() { # a memory cgroup of 64 MiB; $group
	memory_cgroup "cuflight-kills.$$.$BATS_TEST_NUMBER" $((64 << 20)) || skip "$why_no_group"
	[ "$(stat -f -c %T .)" != tmpfs ] || skip "files here are memory of the cgroup"
}

teardown() {
	rm -f /dev/shm/cuflight-kills-$$-*
	remove_memory_cgroup
}

# COMMAND...: with a plain preload, until the kernel kills it; leaves report.json and screen
killed() {
	limited_setup
	CUFLIGHT_OUTPUT=rec/ LD_PRELOAD=$build/libcuflight.so in_memory_cgroup timeout 60 "$@" >out 2>err || true
	"$cuflight" report --json rec >report.json
	"$cuflight" report rec >screen
	report_has 'd.processes.some((p) => p.end_state === "oom_killed" || p.end === "oom_killed") || d.capture.end_state === "oom_killed"'
}

# LINE BYTES_LEAST: the process holds as much at this line of Python or C
holds() { report_has "d.leaks.filter((s) => s.kind === 'host' && s.stack.some((f) => (f.file || '').endsWith('/${1%:*}') && f.line === ${1#*:})).reduce((n, s) => n + s.bytes, 0) >= $2"; }

python() { python3 -c 'import sys; print(sys.executable)'; }

@test "Python objects: a recording, and the line that keeps them" {
	cat >agent.py <<'EOF'
class Turn:
    def __init__(self, i):
        self.scores = [float(i + k) for k in range(10)]
kept = []
while True:
    kept.append(Turn(len(kept)))
EOF
	killed "$(python)" agent.py
	holds agent.py:3 $((16 << 20))
	grep -q '^KILLED BY THE KERNEL (out of memory)' screen
	grep -q 'agent.py:3' screen
	! grep -q MALLOC_ARENA_MAX screen
}

@test "what a few large blocks filled is not called a runtime's heap where there is none" {
	cat >few.py <<'EOF'
import time
kept = []
while True:
    kept.append(bytes([len(kept)]) * (4 << 20))
    time.sleep(0.05)
EOF
	killed "$(python)" few.py
	holds few.py:4 $((48 << 20))
	! grep -q managed-heap screen
}

@test "small blocks of C++: a recording, and the line that keeps them" {
	command -v c++ >/dev/null || skip "no C++ compiler here"
	cat >sessions.cc <<'EOF'
#include <map>
#include <string>
#include <unistd.h>
struct Session { std::string name; long numbers[8]; };
static std::map<int, Session *> sessions;
void open_session(int i) { sessions[i] = new Session{ std::string(40, 'x'), {} }; }
int answer(int i) { return (int)std::string(200 + i % 100, 'y').size(); } // its work, by which its pace is measured
int main()
{
	// growth is judged where the program lived longer than the clock of its events can blur
	for (int i = 0;; i++) {
		open_session(i);
		answer(i);
		if (i % 500 == 0) usleep(1000);
	}
}
EOF
	c++ -g -O0 -o sessions sessions.cc
	killed ./sessions
	holds sessions.cc:6 $((24 << 20))
	report_has 'd.cause.name_id === "host-leak"'
	grep -q 'open_session (sessions.cc:6) holds' screen
	! grep -q MALLOC_ARENA_MAX screen
}

@test "anonymous maps: a recording, and the line that makes them" {
	cat >tensors.c <<'EOF'
#include <string.h>
#include <sys/mman.h>
void map_tensor(void) { memset(mmap(0, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 1 << 20); }
int main(void) { for (;;) map_tensor(); }
EOF
	cc -g -o tensors tensors.c
	killed ./tensors
	holds tensors.c:3 $((48 << 20))
}

@test "forked workers that each keep a little: a recording of one that was killed, and the line" {
	cat >workers.py <<'EOF'
import os
base = [float(i) for i in range(200000)]
def work(kept):
    while True:
        kept.append(str(len(kept)) * 8)
for _ in range(3):
    if not os.fork():
        work([])
os.wait()
os._exit(0)
EOF
	killed "$(python)" workers.py
	holds workers.py:5 $((4 << 20))
	grep -q 'workers.py:5' screen
}

@test "shared memory: a recording, and the line that makes it" {
	cat >shares.py <<'EOF'
import mmap, os, sys
def publish(kept, i):
    fd = os.open("/dev/shm/%s-%d" % (sys.argv[1], i), os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 1 << 20)
    block = mmap.mmap(fd, 1 << 20)
    os.close(fd)
    block[:] = b"x" * (1 << 20)
    kept.append(block)
kept = []
while True:
    publish(kept, len(kept))
EOF
	killed "$(python)" shares.py cuflight-kills-$$
	holds shares.py:5 $((32 << 20))
	grep -q 'shares.py:5' screen
	report_has 'd.host.maps.shared_bytes >= 32 << 20'
	tr -s '\n ' ' ' <screen | grep -q 'Fix: close and unlink what the marked call sites share' || { cat screen; false; }
}

# LINES...: of publish.c, which publishes in a segment of System V what its caller made, until it is killed. What a turn
# works, it frees: a busy machine slows a program down at any time, and its pace is that of its work then.
segments() {
	{
		printf '#include <stdlib.h>\n#include <string.h>\n#include <sys/shm.h>\n#include <unistd.h>\n'
		printf '%s\n' "$@"
	} >publish.c
	cc -g -O0 -o publish publish.c
	killed ./publish
	holds publish.c:6 $((32 << 20))
	report_has 'd.host.maps.shared_bytes >= 32 << 20 && d.cause.name_id === "host-leak"'
	tr -s '\n ' ' ' <screen | grep -q 'Fix: close and unlink what the marked call sites share' || { cat screen; false; }
}

@test "segments of System V: a recording, and the line that attaches what it made" {
	segments 'void publish(int id) {' '	memset(shmat(id, 0, 0), 1, 1 << 20);' '	shmctl(id, IPC_RMID, 0); }' \
		'int main(void) { for (;;) { publish(shmget(IPC_PRIVATE, 1 << 20, 0600)); free(malloc(1 << 20)); usleep(2000); } }'
}

@test "segments of System V that others made and left: who attached them" {
	segments 'void publish(int id) {' '	memset(shmat(id, 0, 0), 1, 1 << 20);' '	shmctl(id, IPC_RMID, 0); }' \
		'int made(void) { int to[2], id; pipe(to); if (!vfork()) { id = shmget(IPC_PRIVATE, 1 << 20, 0600); write(to[1], &id, sizeof id); _exit(0); }' \
		'	read(to[0], &id, sizeof id); close(to[0]); close(to[1]); return id; }' \
		'int main(void) { for (;;) { publish(made()); free(malloc(1 << 20)); usleep(2000); } }'
}

@test "where malloc grows beside shared memory that does not, the advice is not about sharing" {
	cat >beside.c <<-'C'
		#include <stdlib.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <unistd.h>
		void keep(void) { memset(malloc(1 << 20), 1, 1 << 20); }
		int main(void) {
		memset(mmap(0, 24 << 20, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0), 1, 24 << 20);
		for (;;) { keep(); free(malloc(1 << 20)); usleep(2000); } }
	C
	cc -g -O0 -o beside beside.c
	killed ./beside
	holds beside.c:5 $((24 << 20))
	report_has 'd.cause.name_id === "host-leak" && d.host.cgroup.shmem_bytes >= 20 << 20'
	! tr -s '\n ' ' ' <screen | grep -q 'marked call sites share' || { cat screen; false; }
}

@test "files of tmpfs: a recording, and the process is not blamed" {
	cat >spools.py <<'EOF'
import sys
def spool(i):
    with open("/dev/shm/%s-%d" % (sys.argv[1], i), "wb") as file:
        file.write(b"x" * (1 << 20))
for i in range(500):
    spool(i)
EOF
	killed "$(python)" spools.py cuflight-kills-$$
	report_has 'd.cause.id === "S9"'
	grep -q 'of 64.0 MiB; .* of that was resident in this' screen || { cat screen; false; }
}

@test "shared memory that is closed and never unlinked: said to be shared memory, to unlink" {
	cat >publishes.py <<'EOF'
import sys, time
from multiprocessing import resource_tracker, shared_memory
def publish(i):
    block = shared_memory.SharedMemory("%s-%d" % (sys.argv[1], i), create=True, size=1 << 20)
    block.buf[:] = b"x" * (1 << 20)
    block.close()
    time.sleep(0.005)
resource_tracker.register = lambda *rest: None
for i in range(500):
    publish(i)
EOF
	killed "$(python)" publishes.py cuflight-kills-$$
	report_has 'd.cause.id === "S9" && d.host.cgroup.shmem_bytes > 32 << 20'
	tr -s '\n ' ' ' <screen | grep -q 'Fix: unlink shared memory that nobody needs' || { cat screen; false; }
	! grep -q "record the container's other processes" screen
}

@test "a program that does not grow leaves no recording in such a cgroup" {
	limited_setup
	CUFLIGHT_OUTPUT=rec/ LD_PRELOAD=$build/libcuflight.so in_memory_cgroup "$(python)" -c 'import json; print(len(json.dumps([1.5] * 100000)))'
	[ ! -e rec ] || [ -z "$(ls rec)" ]
}
