#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Whether a process without an end record still lives: as seen from its own pid namespace, from
# another one (a sidecar), and by a user who may not ask. It is running, gone, or unknown: never
# killed while it lives.
load host.bash

write_victim() {
	cat >victim.py <<'END'
import os, signal, sys, time
held = [bytearray(8 << 20) for _ in range(12)]
if "fork" in sys.argv:
    child = os.fork()
    if not child:
        signal.pause()
    print(child, flush=True)
open("ready", "w").close()
signal.pause()
END
}

teardown() {
	: "${started:=}"
	local pid
	for pid in $started $(cat child 2>/dev/null); do kill -KILL "$pid" 2>/dev/null || :; done
}

# [fork]: the victim, in the background; $victim is its pid
start_victim() {
	write_victim
	CUFLIGHT_OUTPUT=rec/ CUFLIGHT_OPTIONS=size=4MiB LD_PRELOAD=$build/libcuflight.so python3 victim.py "$@" >child 3>&- &
	victim=$!
	started+=" $victim"
	for _ in $(seq 600); do [ ! -e ready ] || return 0; sleep 0.1; done
	return 1
}

# SIGKILL, and it is gone for its parent, too
end_victim() {
	kill -KILL "$victim"
	wait "$victim" || :
}

elsewhere() { unshare --pid --fork --mount-proc "$@"; } # a pid namespace of its own
may_unshare() { elsewhere true 2>/dev/null || skip "this user may not make a pid namespace"; }

# STATE COMMAND...: what `report` says, run by the command
is_seen_as() {
	local state=$1
	shift
	"$@" "$cuflight" report --json rec/*."$victim".cuf >report.json
	report_has "d.processes[0].end_state === '$state'" || { grep -o '"end_\(state\|why\)":[^,]*' report.json; return 1; }
	"$@" "$cuflight" report rec/*."$victim".cuf >screen
}

@test "a living process is running, from its own pid namespace and from another, and gone within a second after SIGKILL" {
	may_unshare
	start_victim
	is_seen_as running
	is_seen_as running elsewhere
	grep -q '^RUNNING: ' screen
	kill -STOP "$victim"
	is_seen_as running elsewhere
	end_victim
	is_seen_as killed elsewhere
	is_seen_as killed
}

@test "who forked and was killed is gone where its pid can be looked up, though its child has the file mapped" {
	start_victim fork
	end_victim
	kill -0 "$(<child)"
	is_seen_as killed
}

@test "who may not ask is told that the end is unknown, and check is inconclusive" {
	may_unshare
	[ "$(id -u)" = 0 ] || skip "needs root, to be somebody else"
	start_victim
	chmod 755 . rec "$BATS_TEST_TMPDIR"
	chmod 644 rec/*.cuf
	cp "$cuflight" somebodys
	cuflight=./somebodys is_seen_as unknown elsewhere setpriv --reuid=65534 --regid=65534 --clear-groups
	grep -q '^NO END RECORDED: ' screen
	grep -q 'It may still run' screen
	status=0
	elsewhere setpriv --reuid=65534 --regid=65534 --clear-groups ./somebodys check rec >verdict || status=$?
	[ "$status" = 3 ]
	grep -q 'cannot be seen from here' verdict
}

@test "a recording of a living process is neither removed nor trimmed from another pid namespace" {
	may_unshare
	start_victim
	elsewhere "$cuflight" clean --total=1 --yes rec >said 2>&1
	elsewhere "$cuflight" clean --trim rec >>said 2>&1
	compgen -G "rec/*.$victim.cuf" >/dev/null || { cat said; return 1; }
	is_seen_as running elsewhere
}

@test "mode=0640 lets the group read, whatever the umask is; a shorter file keeps it; without it only the owner reads" {
	local mode
	umask 077
	for mode in 0640 0600; do
		CUFLIGHT_OUTPUT=$mode/here/ CUFLIGHT_OPTIONS=mode=$mode:start=1 LD_PRELOAD=$build/libcuflight.so "$BASH" -c :
		stat -c '%a %b' $mode $mode/here $mode/here/*.cuf >before
		"$cuflight" report $mode/here >/dev/null
		stat -c '%a %b' $mode $mode/here $mode/here/*.cuf >after
		! cmp before after # it is shorter now
		[ "$(awk '{ print $1 }' after | tr '\n' ' ')" = "$([ $mode = 0640 ] && echo "750 750 640 " || echo "700 700 600 ")" ]
	done
}

@test "run with mode=0640: the directory that it makes is the group's to read, whatever the umask is" {
	umask 077
	"$cuflight" run -q --mode=0640 -o option/here/ -- true
	CUFLIGHT_OPTIONS=mode=0640 "$cuflight" run -q -o variable/here/ -- true
	"$cuflight" run -q -o own/here/ -- true
	[ "$(stat -c %a option option/here variable variable/here own own/here | tr '\n' ' ')" = "750 750 750 750 700 700 " ]
}

# Two threads replace blocks of 1 MiB as fast as they can: at each moment 998 to 1,000 are live.
write_replacer() {
	cat >replacer.py <<'END'
import ctypes, random, threading
cu = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert not cu.cuInit(0) and not cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
def take():
    block = ctypes.c_uint64()
    assert not cu.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(1 << 20))
    return block.value
def serve(number):
    cu.cuCtxSetCurrent(context)
    blocks = [take() for _ in range(500)]
    open(f"ready{number}", "w").close()
    while True:
        i = random.randrange(500)
        cu.cuMemFree_v2(ctypes.c_uint64(blocks[i]))
        blocks[i] = take()
for number in range(2):
    threading.Thread(target=serve, args=[number]).start()
END
}

@test "a server that never rests is read as of one moment, or the report says that it is not" {
	write_replacer
	CUFLIGHT_OUTPUT=rec/ "$root/scripts/simcuda" env LD_PRELOAD="$build/libcuflight.so" "$BASH" -c 'echo $$ >pid; exec python3 replacer.py' 3>&- &
	for _ in $(seq 600); do [ ! -e ready0 ] || [ ! -e ready1 ] || break; sleep 0.1; done
	started+=" $(<pid)"
	# a thread that waits for a processor inside a call may leave no such moment: then the report says so
	for _ in $(seq 20); do
		"$cuflight" report --json rec >report.json
		report_has "((held) => (held % 1048576 === 0 && held >= 998 * 1048576 && held <= 1000 * 1048576) ||
			JSON.stringify(d.coverage).includes('no one moment was found'))(d.devices[0].owners.find((row) => row.kind === 'device').bytes)"
	done
	"$cuflight" report --json rec >report.json
	report_has "d.processes[0].end_state === 'running' && d.devices[0].owners.reduce((sum, row) => sum + (row.in_sum ? row.bytes : 0), 0) === d.devices[0].total_bytes"
}
