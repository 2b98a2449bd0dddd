#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Whether a process lives, as report, list, top, serve and watch tell it: from its own pid namespace,
# from another one with the same files (a sidecar), by another user, on tmpfs and overlayfs, stopped,
# forked, with its file replaced or copied. It runs, has ended, or is unknown: never killed while it lives.
load live.bash

teardown() {
	end_started
	rm -rf "${public:-none}"
}

prepare() {
	python=$(PATH=/usr/bin:/bin command -v python3) || skip "no python3 that every user has"
	public=$(mktemp -d /tmp/lives.XXXXXX) # every user reaches it
	chmod 755 "$public"
	cd "$public" || return
	cp "$cuflight" program
	cp "$build/libcuflight.so" .
	mkdir -m 777 told
	place=rec inside=()
	cat >victim.py <<'END'
import os, signal, sys
held = [bytearray(8 << 20) for _ in range(12)]
child = os.fork()
if not child:
    signal.pause()
print(os.getpid(), child, flush=True)
signal.pause()
END
}

# FILE [COMMAND...]: a victim in the background, by the command; it is $victim. Its $child sleeps.
start_victim() {
	local pids=$1
	shift
	"${inside[@]}" "$@" env CUFLIGHT_OUTPUT="$place/" CUFLIGHT_OPTIONS=size=4MiB:mode=0640 \
		LD_PRELOAD="$PWD/libcuflight.so" "$python" victim.py >"$pids" 3>&- &
	until_true 60 [ -s "$pids" ]
	read -r victim child <"$pids"
	started+=" $victim $child"
	recording=$("${inside[@]}" sh -c 'echo "$0"/*.cuf' "$place")
}

end_process() {
	kill -KILL "$1"
	until_true 60 is_gone "$1"
}
is_gone() { ! kill -0 "$1" 2>/dev/null || grep -q ') Z' "/proc/$1/stat" 2>/dev/null; }

elsewhere() { unshare --pid --fork --kill-child --mount-proc "$@"; } # a pid namespace of its own
may_unshare() { elsewhere true 2>/dev/null || skip "this user may not make a pid namespace"; }
# of root's group: it reads what mode=0640 lets it
as_nobody() { setpriv --reuid=65534 --regid=65534 --groups=0 "$@"; }
may_change_user() { as_nobody true 2>/dev/null || skip "needs root, to be somebody else"; }
elsewhere_as_nobody() { elsewhere setpriv --reuid=65534 --regid=65534 --groups=0 "$@"; }
in_mounts() { nsenter -t "$keeper" -m --wd=. unshare --pid --fork --kill-child --mount-proc "$@"; }
here() { "$@"; }

# What a JSON file has for a key, the first time
value_of() { grep -o "\"$1\": *[\"a-z_]*" "$2" | head -n 1 | sed 's/.*: *//; s/"//g'; }

# The metrics of serve, which its own shell ends: that is in its pid namespace
# shellcheck disable=SC2016 # of that shell
serve_once='./program serve --metrics-file=told/metrics.prom --every=1 "$0" 2>told/said &
for _ in $(seq 300); do [ ! -s told/metrics.prom ] || break; sleep 0.1; done
cat told/metrics.prom; kill $!; wait'

# WORDS COMMAND...: what the five tell, run by the command
is_seen_as() {
	local words=$1 seen
	shift
	"$@" ./program report --json "$recording" >report.json
	"$@" ./program list --json "$place" >list.json
	"$@" ./program top --once --json "$place" >top.json
	"$@" sh -c "$serve_once" "$place" >served
	"$@" ./program watch -n --keep=told --rule 'process_running < 1 -> log' "$place" >watched
	seen="$(value_of end_state report.json) $(value_of end_state list.json) $(value_of is_running top.json)"
	seen+=" $(sed -n 's/^cuflight_process_running{.*} //p' served) $(sed -n 's/.*: \([01]\)$/\1/p' watched)"
	[ "$seen" = "$words" ] || { echo "$seen"; cat told/said; return 1; }
}
running="running running true 1 1" killed="killed killed false 0 0" unknown="unknown unknown null  "

@test "a stopped process runs, from its own pid namespace and from another; a killed one has ended, though its child sleeps" {
	prepare
	may_unshare
	start_victim pids
	is_seen_as "$running" here
	kill -STOP "$victim"
	is_seen_as "$running" here
	is_seen_as "$running" elsewhere
	end_process "$victim"
	is_seen_as "$killed" here # the child has the file mapped
	end_process "$child"
	is_seen_as "$killed" elsewhere
}

# DIRECTORY NAME: what a process is called from a pid namespace where the reader has pid 1, as the victim in its own
has_name() { elsewhere ./program top --once --json "$1" >named && grep -q "\"process\":\"$2" named; }

@test "of a copy nobody is called killed who lives; a process of a pid namespace below is found, and has its own name" {
	prepare
	may_unshare
	start_victim pids
	local first=$recording
	[ "$(stat -c %W "$first")" != 0 ] || skip "this file system does not keep when a file was made"
	mkdir copies
	cp "$recording" copies/one.cuf
	place=copies recording=copies/one.cuf
	is_seen_as "$running" here
	is_seen_as "$unknown" elsewhere # its original is mapped, but who knows of that
	end_process "$victim"
	end_process "$child"
	is_seen_as "$killed" here
	cp "$first" copies/one.cuf
	is_seen_as "$killed" here

	unshare --pid --fork --kill-child --mount-proc env CUFLIGHT_OUTPUT="$PWD/below/" CUFLIGHT_OPTIONS=size=4MiB \
		LD_PRELOAD="$PWD/libcuflight.so" "$python" victim.py >pids.below 3>&- &
	local keeper=$!
	started+=" $keeper"
	until_true 60 [ -s pids.below ]
	has_name below python3
	place=below.copies
	mkdir $place
	cp below/*.cuf $place
	recording=$(echo $place/*.cuf)
	is_seen_as "$running" here
	kill -KILL "$keeper" # and with it all of its namespace
	until_true 60 is_gone_below
}
# Only the first pid namespace of a machine is told of all that end
is_gone_below() {
	if [ "$(stat -Lc %i /proc/self/ns/pid)" = $((0xEFFFFFFC)) ]; then
		is_seen_as "$killed" here
	else
		is_seen_as "$unknown" here
	fi
}

@test "another user is told the same where the pid can be looked up, and unknown where nothing can" {
	prepare
	may_unshare
	may_change_user
	start_victim pids
	is_seen_as "$running" as_nobody
	is_seen_as "$unknown" elsewhere_as_nobody
	elsewhere_as_nobody ./program top --once "$place" | grep 'may have ended'
	end_process "$victim"
	end_process "$child"
	is_seen_as "$killed" as_nobody
	is_seen_as "$unknown" elsewhere_as_nobody
}

@test "root is told of another user's process" {
	prepare
	may_unshare
	may_change_user
	mkdir -m 777 rec
	start_victim pids as_nobody
	is_seen_as "$running" here
	is_seen_as "$running" elsewhere
	end_process "$victim"
	end_process "$child"
	is_seen_as "$killed" elsewhere
}

# TYPE OPTIONS: a mount of it on mounted, which only a keeper has, and who enters its mounts
mount_for_some() {
	rm -f is_mounted
	# shellcheck disable=SC2016 # of the other shell
	unshare -m sh -c 'mount -t "$1" -o "$2" none mounted || exit; touch is_mounted; exec sleep 1000' - "$@" 3>&- &
	keeper=$!
	started+=" $keeper"
	until_true 60 is_mounted_or_gone
	[ -e is_mounted ] || skip "no $1 mounts here"
	inside=(nsenter -t "$keeper" -m --wd=.)
}
is_mounted_or_gone() { [ -e is_mounted ] || ! kill -0 "$keeper"; }

# TYPE OPTIONS
check_mount() {
	may_unshare
	mkdir mounted lower upper work
	mount_for_some "$@"
	place=mounted/rec
	start_victim pids
	is_seen_as "$running" in_mounts
	end_process "$victim"
	end_process "$child"
	is_seen_as "$killed" in_mounts
}

@test "a sidecar that shares a tmpfs and no pid namespace is told the same" {
	prepare
	check_mount tmpfs size=64m
}

@test "a sidecar that shares an overlayfs and no pid namespace is told the same" {
	prepare
	check_mount overlay "lowerdir=$PWD/lower,upperdir=$PWD/upper,workdir=$PWD/work"
}

@test "a recording whose file is replaced is what the file is now" {
	prepare
	start_victim pids
	cp "$recording" copy
	mv copy "$recording" # nobody has it mapped
	is_seen_as "$running" here
	end_process "$victim"
	is_seen_as "$killed" here
	local first=$recording
	place=other start_victim pids.2
	mv "$recording" "$first"
	place=rec recording=$first
	is_seen_as "$running" here
}
