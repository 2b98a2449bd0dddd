#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Programs that do not use a GPU run unchanged under the recorder: same output, same exit status,
# same files. A plain preload leaves nothing behind, because there was nothing to record.
load ../preload.bash

@test "bash runs unchanged: pipes, subshells, functions, arithmetic" {
	unchanged_by_recording bash -c 'f() { echo "$1"; }; for i in $(seq 50); do f "$((i * i))"; done | sort -n | tail -n 5; (echo sub; exit 3) || echo "status $?"; wait < <(:); echo done'
}

@test "bash keeps its exit status and standard error" {
	expected_status=42
	unchanged_by_recording bash -c 'echo out; echo err >&2; exit 42'
}

@test "bash that dies by a signal is seen to die by it" {
	expected_status=137
	unchanged_by_recording bash -c 'echo out; kill -KILL $$'
}

@test "ls lists a large folder unchanged" {
	unchanged_by_recording ls -l /usr/bin
}

@test "python3 runs unchanged: containers, threads, subprocess" {
	need python3
	unchanged_by_recording python3 -c '
import subprocess, sys, threading
rows = [{"i": i, "text": str(i) * 10} for i in range(20000)]
total = []
threads = [threading.Thread(target=lambda k=k: total.append(sum(r["i"] for r in rows[k::4]))) for k in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sum(total), subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True).stdout.strip())'
}

@test "gcc compiles a real file to the same object" {
	need gcc
	export ROOT=$root
	unchanged_by_recording sh -c 'gcc -std=gnu11 -O2 -g -D_GNU_SOURCE -I"$ROOT" -fdebug-prefix-map="$PWD"=. \
		-c "$ROOT/tests/victims/driver/is_interposed.c" -o one.o && cksum one.o'
}

@test "sqlite3 runs unchanged over a hundred thousand rows" {
	need sqlite3
	unchanged_by_recording sqlite3 :memory: 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
		select count(*), sum(i), max(length(hex(i))) from n; create table t(a, b);
		insert into t with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select i, hex(i) from n;
		select sum(a), count(distinct b) from t;'
}

@test "git creates a repository, commits to it and reads it" {
	need git
	export GIT_AUTHOR_DATE=2001-01-01T00:00:00Z GIT_COMMITTER_DATE=2001-01-01T00:00:00Z GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
	export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
	unchanged_by_recording sh -c 'git init -q -b main . && seq 20000 >numbers && git add . && git commit -q -m one && seq 5 >>numbers &&
		git commit -q -a -m two && git -c pack.threads=1 gc -q && git log --stat && git fsck'
}

@test "perl runs unchanged: strings and hashes" {
	need perl
	unchanged_by_recording perl -e 'my %h; $h{$_ % 1000} .= "x$_" for 1 .. 100000; my $n = 0; $n += length for values %h; print "$n ", scalar(keys %h), "\n"; print join(",", map { `echo $_` =~ s/\n//r } 1 .. 3), "\n"'
}

@test "node runs unchanged: buffers, promises, worker threads" {
	need node
	unchanged_by_recording node -e '
const { Worker } = require("worker_threads");
const words = Array.from({ length: 50000 }, (_, i) => Buffer.from("w" + i).toString("base64"));
new Worker("require(\"worker_threads\").parentPort.postMessage(6 * 7)", { eval: true }).on("message", (m) => console.log(m, words.join("").length));'
}

@test "tmux runs unchanged: a server, a window, its screen" {
	need tmux
	unchanged_by_recording sh -c '
		export TMUX_TMPDIR=$TMPDIR TERM=screen; unset TMUX
		tmux -L own -f /dev/null new-session -d -x 80 -y 24 "seq 5; exec cat" || exit
		n=0; until tmux -L own capture-pane -p | grep -q "^5$" || [ $n = 100 ]; do n=$((n + 1)); sleep 0.1; done
		tmux -L own capture-pane -p; tmux -L own kill-server'
}
