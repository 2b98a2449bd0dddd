#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `cuflight run` as a launcher: statuses, signals, where recordings go, and what it prints when there is none.
load ../cli.bash
load ../../memory_cgroup.bash

small=--size=4MiB

@test "the command's status is passed on, also after a signal" {
	expect 0 run $small -- true
	expect 7 run $small -- sh -c 'exit 7'
	expect 143 run $small -- sh -c 'kill -TERM $$'
	expect 137 run $small -- sh -c 'kill -KILL $$'
	holds err 'killed by SIGKILL, but not by the OOM killer (oom_kill unchanged)'
	expect 127 run $small -- no-such-command
	holds err "cannot run 'no-such-command': not found"
	expect 126 run $small -- /etc/passwd
	holds err 'Permission denied'
	cp "$(type -P true)" here
	expect 127 run $small -- here
	holds err "did you mean './here'?"
}

@test "the command's own output is untouched, and its arguments are its own" {
	expect 0 run $small printf '%s\n' --help -o x --json
	[ "$(<out)" = $'--help\n-o\nx\n--json' ]
	"$cuflight" run $small -q -- cat >out <<<'from stdin'
	[ "$(<out)" = 'from stdin' ]
}

@test "it prints where the recording is and what explains it; with -q nothing" {
	local next
	expect 0 run $small -- true
	[ "$(recordings | wc -l)" = 1 ]
	holds err 'recorded cuflight.true.' 'KiB)'
	next=$(sed -n 's/^cuflight: explain it: cuflight //p' err)
	# shellcheck disable=SC2086 # a command line
	expect 0 $next
	holds out 'FINISHED: true (pid '
	expect 0 run -q $small -- true
	empty err
}

@test "-o takes a directory, a name, and a pattern; it makes what is missing" {
	expect 0 run $small -o new/deep/ -- true
	[ "$(recordings new/deep | wc -l)" = 1 ]
	expect 0 run $small -o one/name.cuf -- true
	[ -f one/name.cuf ]
	RANK=3 expect 0 run $small -o 'p/%e/%q{RANK}.%p.cuf' -- true
	[ "$(recordings p | sed 's/\.[0-9]*\.cuf$//')" = p/true/3 ]
	holds err 'recorded p/true/3.'
	CUFLIGHT_OUTPUT=$home/from/variable/ expect 0 run $small -- true
	[ "$(recordings from/variable | wc -l)" = 1 ]
	cd new && expect 0 run $small -o . -- sh -c 'cd /; true' # its own directory does not matter
	[ "$(recordings . | wc -l)" = 2 ]
}

@test "an existing recording is overwritten only with -f" {
	local before
	expect 0 run $small -o x.cuf -- true
	before=$(stat -c %i x.cuf)
	expect 125 run $small -o x.cuf -- touch ran
	holds err "x.cuf' exists; -f overwrites it"
	[ ! -e ran ]
	[ "$(stat -c %i x.cuf)" = "$before" ]
	expect 0 run $small -f -o x.cuf -- true
	[ "$(recordings)" = ./x.cuf ]
}

@test "a directory that cannot be created stops the run before it starts" {
	echo text >file
	expect 125 run $small -o file/rec/ -- touch ran
	holds err 'cannot create directory' 'Not a directory'
	[ ! -e ran ]
}

@test "settings reach the recorder; what the environment has stays, the command line counts" {
	CUFLIGHT_OPTIONS=stack_depth=5:host=off expect 0 run $small --host=full -v -- env
	holds out 'CUFLIGHT_OPTIONS=stack_depth=5:host=off:start='
	grep -q '^CUFLIGHT_OPTIONS=.*:verbose=1:.*host=full' out
	expect 0 report --json "$(recordings)"
	node -e 'const p = JSON.parse(require("fs").readFileSync(0)).processes[0]; process.exit(p.stack_depth === 5 && p.host_mode === "full" ? 0 : 1)' <out
}

@test "the library stands in front of another preload, and once" {
	cp "$build/libcuflight.so" other.so
	LD_PRELOAD="$home/other.so:$build/libcuflight.so" "$cuflight" run -q $small -- env >out 2>err
	[ "$(sed -n 's/^LD_PRELOAD=//p' out)" = "$(realpath "$build")/libcuflight.so:$home/other.so" ]
}

@test "signals sent to it reach the command once; those of the terminal are the command's already" {
	cat >trap.sh <<'EOF'
trap 'echo term; exit 9' TERM
trap 'echo int >>ints' INT
echo ready >ready
while :; do sleep 0.05; done
EOF
	set -m # a process group of its own
	"$cuflight" run -q $small -- bash trap.sh >out 2>err &
	local pid=$! status=0
	timeout 100 sh -c 'until [ -e ready ]; do sleep 0.05; done'
	kill -INT "$pid"
	timeout 100 sh -c 'until [ -s ints ]; do sleep 0.05; done'
	kill -TERM "$pid"
	wait "$pid" || status=$?
	[ "$status" = 9 ]
	[ "$(<out)" = term ]
	[ "$(wc -l <ints)" = 1 ]
}

@test "Ctrl-C on a terminal is delivered once" {
	cat >trap.sh <<'EOF'
trap 'echo int >>ints' INT
echo ready >ready
until [ -s ints ]; do sleep 0.05; done
sleep 0.3 # a second one would come
exit 5
EOF
	# bash, because dash would die of the signal itself
	SHELL=$(command -v bash) timeout 100 script -qec "'$cuflight' run -q $small -- bash trap.sh; echo status \$? >status" /dev/null \
		< <(timeout 100 sh -c 'until [ -e ready ]; do sleep 0.05; done; printf "\003"; until [ -s status ]; do sleep 0.05; done') >/dev/null
	[ "$(<status)" = 'status 5' ]
	[ "$(wc -l <ints)" = 1 ]
}

@test "a command that cannot be recorded still runs, and the reason is printed" {
	command -v gcc >/dev/null || skip "no compiler"
	echo 'int main(void) { return 4; }' >s.c
	gcc -static -o static s.c 2>/dev/null || skip "no static libc"
	expect 4 run $small -- ./static
	holds err 'nothing was recorded:' 'is statically linked' 'link it dynamically'
	CUFLIGHT_DISABLE=1 expect 3 run $small -- sh -c 'exit 3'
	holds err 'CUFLIGHT_DISABLE=1 is set'
	[ -z "$(recordings)" ]
}

@test "processes behind one that left no recording belong to the run" {
	cat >holds.sh <<'EOF'
exec env CUFLIGHT_OPTIONS="$CUFLIGHT_OPTIONS:host=full" true
EOF
	expect 0 run $small -o rec/ -- sh -c 'sh -c "sh holds.sh; :"; :'
	[ "$(recordings rec | wc -l)" -ge 2 ]
	holds err 'processes (' 'explain it: cuflight report rec'
}

@test "--error-exitcode replaces a 0 when memory leaked, and nothing else" {
	local victim=$build/victims/leak_per_request
	[ -x "$victim" ] || skip "no victims built"
	expect 0 run $small -- "$root/scripts/simcuda" "$victim"
	expect 9 run $small --error-exitcode=9 -- "$root/scripts/simcuda" "$victim"
	holds err 'the report has findings: exit status is 9 instead of 0'
	expect 0 run $small --error-exitcode=9 -- "$root/scripts/simcuda" "$build/victims/healthy_churn"
	expect 4 run $small --error-exitcode=9 -- sh -c 'exit 4'
}

@test "as the first process of a container it reaps orphans and still sees its command" {
	unshare --fork --pid --mount-proc true 2>/dev/null || skip "no PID namespaces here"
	status=0
	unshare --fork --pid --mount-proc "$cuflight" run -q $small -- sh -c '(sleep 0.1 & ) ; sleep 0.3; exit 6' 2>err || status=$?
	[ "$status" = 6 ]
}

@test "a kill by the OOM killer is recognised by the cgroup's count" {
	local status=0
	memory_cgroup "cuflight-test.$$" $((32 << 20)) || skip "$why_no_group"
	in_memory_cgroup "$cuflight" run $small -- perl -e '$x = "x" x (200 << 20); print length $x' >out 2>err || status=$?
	remove_memory_cgroup
	[ "$status" = 137 ]
	holds err 'killed by the kernel'\''s OOM killer' 'oom_kill count rose by 1 (limit 32.0 MiB)'
}

@test "a chain of exec is one process: one recording, under the first name" {
	expect 3 run $small -o rec/ -- sh -c 'exec env sh -c "exec sh -c \"exit 3\""'
	[ "$(ls rec | wc -l)" = 1 ]
	expect 3 run $small -o one.cuf -- sh -c 'exec sh -c "exit 3"'
	[ "$(echo one*)" = one.cuf ]
	expect 0 report --json one.cuf
	holds out '"end_status":3'
	expect 0 run $small --host=full -o all/ -- sh -c 'exec env true'
	[ "$(ls all | wc -l)" -ge 2 ] # every host event was asked for
}
