#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `cuflight top` on a terminal: keys, sizes, signals, and a terminal that goes away. The terminal is tmux.
load live.bash

need_screen() {
	command -v tmux >/dev/null || skip "no tmux here"
	strings_of_build=$(ldd "$cuflight" 2>/dev/null) || :
	[[ $strings_of_build == *libncurses* ]] || skip "built without ncursesw"
	mux new-session -d -s keep cat # with its last session tmux would go, while the next one begins
}

mux() { tmux -S "$BATS_TEST_TMPDIR/tmux" -f /dev/null "$@"; }

teardown() {
	! command -v tmux >/dev/null || mux kill-server 2>/dev/null || :
	local pid
	for pid in $started; do kill -KILL "$pid" 2>/dev/null || :; done
}

capture() { mux capture-pane -p -t top; }
shows() { capture >screen && grep -q -- "$1" screen; }
shows_not() { capture >screen && ! grep -q -- "$1" screen; }
# TEXT: until the screen has it
see() { until_true ${PATIENCE:-60} shows "$1" || { cat screen; return 1; }; }
see_not() { until_true ${PATIENCE:-60} shows_not "$1" || { cat screen; return 1; }; }
# both servers are analysed
shows_all() { capture >screen && grep -q '^ 3.81 GiB .* steady .*alloca' screen && ! grep -q 'not analysed' screen; }
see_all() { until_true ${PATIENCE:-60} shows_all || { cat screen; return 1; }; }
keys() { mux send-keys -t top "$@"; }

# WIDTH HEIGHT ARGUMENT...: top in a shell, whose prompt comes when it has ended
start_top() {
	local width=$1 height=$2
	shift 2
	mux new-session -d -s top -x "$width" -y "$height" "env PS1='shell> ' bash --norc --noprofile -i"
	see 'shell>'
	keys "${TERMINAL:-}$cuflight top $*; echo ended with \$?" Enter
}

# two servers of which one holds more
start_two() {
	start_server one
	start_server two
	order one keep 900
	order two name '"wörker 服务"'
	order two keep 3000
}

# Figures that differ from run to run are masked, and with them how many blanks stand before them.
# So is the line that allocates, if it is the right one: the server may be changed.
mask() {
	local line
	line=$(grep -n cuMemAlloc_v2 "$BATS_TEST_DIRNAME/server.py" | cut -d: -f1)
	sed -E -e "s/server\.py:$line\b/server.py:LINE/" -e 's/ *[0-9.]+ (us|ms|s)\b/ TIME/g' -e 's/ *[0-9]+[dhm][0-9]+[hms]/ TIME/g' -e 's/[0-9]{2}:[0-9]{2}:[0-9]{2}/CLOCK/' \
		-e '/^(python3|wörker)/s/ +[0-9]+ +/ PID /' -e '/^(python3|wörker)/s/ +[0-9]{1,2}\.[0-9]+ MiB +/ RESIDENT /' -e 's/ +$//' -e 's/ +CLOCK/ CLOCK/'
}

# NAME: the screen is that of the golden
is_golden() {
	capture | mask >masked
	[ -z "${ACCEPT:-}" ] || cp masked "$BATS_TEST_DIRNAME/$1"
	diff "$BATS_TEST_DIRNAME/$1" masked
}

@test "80x24 and 200x60 are as kept, with names of wide characters" {
	need_screen
	local size
	start_two
	for size in '80 24' '200 60'; do
		# shellcheck disable=SC2086 # two numbers
		start_top $size --color=never rec
		see_all
		keys /
		see 'filter: _'
		keys d e v i c e Enter
		see '^filter: device  (' # as it is typed, it hides rows already
		see_not ' host '
		is_golden "top_${size/ /x}.txt"
		capture | awk -v columns="${size% *}" 'length > columns { exit 1 }'
		keys q
		see 'ended with 0'
		mux kill-session -t top
	done
}

@test "keys: sort, filter, split, pause, stack, help; the selected row stays selected" {
	need_screen
	start_two
	start_top 80 24 rec
	see_all
	keys n
	see 'sorted by name'
	capture | awk '/CALL SITE/ { on = 1; next } on && /[a-z]/ { print }' | sed '$d' >rows
	[ "$(head -1 rows | grep -c '<module>')" = 1 ]
	keys b
	see 'sorted by bytes'
	[ "$(capture | awk '/CALL SITE/ { getline; print $1, $2 }')" = '3.81 GiB' ]
	keys m
	see 'rows of its own'
	see '2.93 GiB .* allocate'
	see ' 900 MiB .* allocate'
	keys m
	see 'are merged'
	keys Enter
	see 'STACK, innermost first'
	see '^  keep ('
	see '2.93 GiB .* wörker'
	see '900 MiB .* python3'
	keys Escape
	see 'CALL SITE'
	keys h
	see 'sort by bytes, rate'
	keys q
	see 'CALL SITE'
	keys /
	keys n o w h e r e
	see 'no call site has that in it'
	keys Escape
	see ' allocate'
	keys p
	see PAUSED
	order two keep 2000
	keys j
	keys k
	see '3.81 GiB .* allocate'
	grep -q PAUSED screen
	keys p
	see '5.76 GiB .* allocate'
	keys q
	see 'ended with 0'
}

@test "another size, a stop and its continuation draw the screen anew, and the shell has its own meanwhile" {
	need_screen
	start_two
	start_top 80 24 rec
	see_all
	mux resize-window -t top -x 120 -y 40
	see 'm split  g GPU'
	mux resize-window -t top -x 60 -y 20
	see_not 'm split'
	see_all
	keys C-z
	see 'Stopped'
	grep -q 'shell>' screen
	[ "$(mux display-message -p -t top '#{alternate_on}')" = 0 ]
	keys 'echo typed' Enter
	see '^typed'
	keys fg Enter
	see_all
	[ "$(mux display-message -p -t top '#{alternate_on}')" = 1 ]
	mux resize-window -t top -x 80 -y 24
	keys h
	see 'sort by bytes, rate'
	keys q
	keys q
	see '^typed'
	keys 'echo over' Enter
	see '^over'
	[ "$(mux display-message -p -t top '#{alternate_on}#{cursor_flag}')" = 01 ]
}

@test "SIGTERM, SIGINT and a terminal that is closed end it; the terminal is as before" {
	need_screen
	local signal pid
	start_two
	for signal in TERM INT HUP; do
		start_top 80 24 rec
		see_all
		pid=$(mux list-panes -t top -F '#{pane_pid}')
		kill -$signal "$(pgrep -P "$pid" -x cuflight)"
		see 'ended with 0'
		[ "$(mux display-message -p -t top '#{alternate_on}#{cursor_flag}')" = 01 ]
		keys 'echo typed' Enter
		see '^typed'
		mux kill-session -t top
	done
	start_top 80 24 rec
	see_all
	pid=$(pgrep -P "$(mux list-panes -t top -F '#{pane_pid}')" -x cuflight)
	mux kill-session -t top
	is_gone() { ! kill -0 "$pid" 2>/dev/null; }
	until_true ${PATIENCE:-60} is_gone
}

@test "a snapshot is a pack of the row's process, which report reads" {
	need_screen
	start_two
	start_top 80 24 rec
	see_all
	keys s
	see 'wrote cuflight-'
	"$cuflight" report --json "cuflight-$(<two.pid)"-*.cufpack >report.json
	python3 - "$(<two.pid)" <<'END'
import json, sys
report = json.load(open('report.json'))
assert [str(process['pid']) for process in report['processes']] == [sys.argv[1]]
assert sum(row['bytes'] for row in report['devices'][0]['owners'] if row['kind'] == 'device') == 3000 << 20
END
	[ "$("$cuflight" top --once rec | grep -c '(pid')" = 2 ]
}

coloured_lines() { mux capture-pane -p -e -t top | grep -c $'\e\[\([0-9]*;\)*3[0-7]m' || :; }

@test "colour only where it may be; without a cursor that moves, a frame is printed" {
	need_screen
	start_two
	start_top 80 24 rec
	see_all
	[ "$(coloured_lines)" -gt 0 ]
	mux kill-session -t top
	TERMINAL='NO_COLOR=1 ' start_top 80 24 rec
	see_all
	[ "$(coloured_lines)" = 0 ]
	mux kill-session -t top
	TERMINAL='TERM=dumb ' start_top 80 24 rec
	see 'ended with 0'
	grep -q '(pid' screen
	"$cuflight" top rec </dev/null >frame
	grep -q '3000 MiB\|2.93 GiB' frame
}
