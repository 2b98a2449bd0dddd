#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What is stated of a program while it runs: no peak is missed, nothing is accused too early, and
# what leaks is named, with the time that is left.
load host.bash

teardown() {
	[ -z "${victim:-}" ] || kill -KILL "$victim" 2>/dev/null || :
}

# cu.py: the driver by ctypes, on the simulated device
write_driver() {
	cat >cu.py <<'END'
import ctypes, os, signal, sys, time
cu = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert not cu.cuInit(0) and not cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cu.cuCtxSetCurrent(context)
def take(size):
    block = ctypes.c_uint64()
    assert not cu.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size))
    return block
def release(block):
    assert not cu.cuMemFree_v2(block)
def free_now():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert not cu.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    return free.value
def mark(name):
    open(name + ".part", "w").close()
    os.rename(name + ".part", name)
END
}

# PROGRAM: in the background, as the leader of nothing; $victim is its pid, when the file ready is there
start_victim() {
	CUFLIGHT_OUTPUT=rec/ CUFLIGHT_OPTIONS=size=16MiB "$root/scripts/simcuda" env LD_PRELOAD="$build/libcuflight.so" \
		"$BASH" -c 'echo $$ >pid; exec "$@"' bash "$@" >truth 2>&1 3>&- &
	for _ in $(seq 1800); do # the second program takes a minute
		[ ! -e ready ] || [ ! -s pid ] || break
		sleep 0.1
	done
	victim=$(<pid)
	[ -e ready ] || { cat truth; return 1; }
}

reports() { "$cuflight" report --json "$@" rec >report.json; }

@test "a spike of a millisecond is in the report, running or ended, as the program measured it" {
	write_driver
	cat >spike.py <<'END'
from cu import *
held = take(1 << 30)
before = free_now()
spike = take(5 << 30)
time.sleep(0.001)
release(spike)
print(1 << 30, 6 << 30, before - (5 << 30), flush=True)
mark("ready")
signal.pause()
END
	start_victim python3 spike.py
	local low peak free
	read -r low peak free <truth
	reports
	report_has "d.capture.end_state === 'running'"
	local same="((row) => row.live_bytes === $low && row.burst_bytes === $peak - $low && row.hour.peak_bytes === $peak &&
		row.hour.lowest_free_bytes === $free)(d.processes[0].recent.find((row) => row.device === 0))"
	report_has "$same"
	# the samples have no trace of it: without RECENT it is the peak of the whole run, of no known time
	kill -KILL "$victim"
	for _ in $(seq 100); do kill -0 "$victim" 2>/dev/null || break; sleep 0.1; done
	reports
	report_has "d.capture.end_state !== 'running' && d.judgement === null"
	report_has "$same"
	"$cuflight" clean --trim rec # a shorter file has the same
	reports
	report_has "$same"
}

@test "the spike was in no second before or after its own" {
	write_driver
	cat >spike.py <<'END'
from cu import *
held = take(1 << 30)
release(take(5 << 30))
second = time.monotonic_ns() // 10**9
while time.monotonic_ns() // 10**9 <= second + 61:
    time.sleep(0.2)
    release(take(1 << 20))
mark("ready")
signal.pause()
END
	start_victim python3 spike.py
	reports
	report_has "((row) => row.minute.peak_bytes === (1 << 30) + (1 << 20) && row.hour.peak_bytes === 6 * (1 << 30))(d.processes[0].recent.find((row) => row.device === 0))"
}

# Stops the victim for each look, so that report and list see the same moment
look() {
	kill -STOP "$victim"
	reports "$@"
	"$cuflight" report "$@" rec >screen
	"$cuflight" list --json rec >list.json
	"$cuflight" list rec >list
	kill -CONT "$victim"
}

@test "nothing is accused while a server warms up, however often it is asked" {
	mkdir rec
	SIMCUDA_DELAY_US=500 start_server
	local looks=0
	while [ $looks -lt 8 ]; do
		look
		report_has "d.capture.end_state === 'running'" || break
		looks=$((looks + 1))
		report_has "d.judgement.too_early && d.judgement.states.leak + d.judgement.states.growing === 0"
		report_has "d.cause === null && d.also === null && d.leaks.every((site) => site.class !== 'leak' && site.class !== 'growing')"
		report_has "d.judgement.resources.every((row) => row.outlook !== 'growing' && row.seconds_to_oom.expected === null)"
		grep -q 'too early to judge' screen
		grep -q 'too early to judge: .* of 5m00s' list
		! grep -q 'leak (' screen list
		grep -q '"too_early":true,"seconds_to_oom":null' list.json
	done
	[ $looks -ge 3 ] # it ran for long enough to be asked at all
	node "$root/tests/e2e/validate.cjs" --schema=analysis/view/cuflight.list-1.schema.json list.json || [ $? = 77 ]
}

# The server of scripts/quickstart
start_server() {
	touch ready
	start_victim "$build/victims/inference_server"
	for _ in $(seq 1800); do # the second program takes a minute
		compgen -G "rec/*.cuf" >/dev/null && "$cuflight" report --json rec >report.json 2>/dev/null &&
			report_has "d.capture.events_recorded > 400" >/dev/null && return 0
		sleep 0.05
	done
	return 1
}

write_leaker() {
	cat >leaker.py <<'END'
from cu import *
def load(): return [take(64 << 20) for _ in range(8)]
def remember(): kept.append(take(2 << 20))
def remember_prompt(turn):
    if turn < 20:
        cached.append(take(2 << 20))
kept, cached, weights = [], [], load()
for turn in range(10**6):
    work = take(48 << 20)
    remember_prompt(turn)
    remember()
    release(work)
    if turn == 400:
        mark("ready")
    time.sleep(0.005)
END
}

@test "what goes on rising is a leak after its time, and the time that is left is headroom by its rate" {
	write_driver
	write_leaker
	start_victim python3 leaker.py
	look --warm-up=1
	report_has "d.capture.end_state === 'running' && !d.judgement.too_early && d.judgement.states.leak === 1"
	report_has "d.judgement.sites[0].state === 'leak' && JSON.stringify(d.judgement.sites[0].stack).includes('remember') &&
		!JSON.stringify(d.judgement.sites[0].stack).includes('remember_prompt')"
	report_has "d.cause.id === 'S8' && d.judgement.sites.filter((site) => site.state !== 'leak').every((site) => site.state === 'steady')"
	report_has "((gpu) => gpu.outlook === 'growing' && gpu.burst_bytes === 48 << 20 &&
		gpu.headroom_bytes >= gpu.free_bytes - gpu.burst_bytes && gpu.headroom_bytes <= gpu.free_bytes &&
		Math.abs(gpu.headroom_bytes / gpu.growth_bytes_per_s - gpu.seconds_to_oom.expected) < 1 &&
		gpu.seconds_to_oom.soonest <= gpu.seconds_to_oom.expected && gpu.seconds_to_oom.latest >= gpu.seconds_to_oom.expected)(d.judgement.resources[0])"
	grep -q 'GPU 0 is full in .* at this rate' screen
}
