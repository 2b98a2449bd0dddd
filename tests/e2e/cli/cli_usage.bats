#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What is said to people who ask for help, who mistype, and whose disk is full.
load ../cli.bash

# as the completion has them, which is made from the tables of the command
commands() { sed -n "s/^\tcommands='\(.*\)'$/\1/p" "$root/analysis/cmd/man/cuflight.bash" | tr ' ' '\n'; }

@test "alone it prints 10 lines of help and one for each command, with an example, and fails" {
	expect 2
	empty out
	[ "$(wc -l <err)" = $((10 + $(commands | wc -l))) ]
	holds err 'cuflight run -- python3 server.py'
	awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' err
}

@test "--help of every command goes to stdout, fits 80 columns and names every option of its completion" {
	local name option
	for name in $(commands); do
		expect 0 "$name" --help
		empty err
		holds out "usage: cuflight $name "
		awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' out
		for option in $(options_of "$name"); do
			holds out "${option%=}"
		done
		cp out long
		expect 0 help "$name"
		cmp out long
	done
}

@test "help CAUSE is prose; the weights are printed only with --rule" {
	# what helps any program comes before what is of one framework
	expect 0 help host-leak
	sed -n '/^How to fix it/{n;p}' out | grep -q -- '- close and unlink'
	expect 0 help gpu-leak
	holds out 'What it is' 'How to recognise it' 'Example' 'How to fix it' "'cuflight help --rule gpu-leak'"
	lacks out '[+-]0\.[0-9][0-9]'
	awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' out
	cp out prose
	expect 0 help S8 # the old id
	cmp out prose
	expect 0 help --rule gpu-leak
	grep -q '^  needs ' out
	grep -q '^  +0\.' out
	tr -s ' \n' ' ' <out >line
	holds line 'Each of the other requirements that is unknown multiplies the score by 0.7.'
	expect 2 help --rule
	expect 2 help --rule report
	empty out
}

@test "a beginning, an old id and a word list the causes that match" {
	expect 0 help causes
	[ "$(grep -c '^  [a-z]' out)" -ge 20 ]
	expect 0 help fragmentation
	holds out fragmentation-pinned fragmentation-growing-sizes fragmentation-pool
	lacks out 'gpu-leak'
	expect 0 help S6
	holds out fragmentation-pinned stranded-pool other-allocator
	expect 0 help leak
	holds out gpu-leak host-leak
}

@test "help --json has every command, option and cause" {
	expect 0 help --json
	node -e '
		const help = JSON.parse(require("fs").readFileSync(0));
		const bad = help.causes.filter((c) => !c.name_id || !c.about || !c.recognise || !c.example);
		const options = help.commands.flatMap((c) => c.options).filter((o) => !o.help);
		if (bad.length || options.length) { console.error(bad, options); process.exit(1); }
		process.exit(help.schema === "cuflight.help/1" && help.commands.length === Number(process.argv[1]) ? 0 : 1);
	' "$(grep -c . <(commands))" <out
	expect 2 help --json run
}

@test "--version names the format and the build" {
	local id
	expect 0 --version
	id=$(readelf -n "$cuflight" | sed -n 's/.*Build ID: //p')
	holds out 'recording format 1' "build $id"
	cp out first
	expect 0 run --version
	cmp out first
}

# in every way that a person may write one and a half
@test "sizes have decimals and the units of 1024 and of 1000" {
	"$cuflight" run -q '--size=4.5 MiB' --host=full -o x.cuf -- /bin/ls >/dev/null
	expect 0 check x.cuf 'host.peak <= 1.5GiB' 'host.peak <= 2 GB' 'host.peak <= 1.1 gib'
	holds out 'the limit is 1.50 GiB' 'the limit is 1.86 GiB'
	expect 2 check x.cuf 'host.peak <= 1,5GiB'
	holds err "expected 'host.peak <= 1.5GiB, 2GB or +3%'"
	expect 125 run --size=1.5 -- /bin/true
	holds err 'expected a size from'
	printf '[ls]\nhost.peak <= 0.00001 GiB\n' >cuflight.ini
	expect 1 check x.cuf
	holds out 'the limit of 10.5 KiB'
	expect 0 clean --total=1.5TB --dry-run .
}

@test "help has words where a report has figures" {
	expect 0 help --json
	for cause in $(python3 -c 'import json; print(*(c["name_id"] for c in json.load(open("out"))["causes"]))'); do
		expect 0 help "$cause"
		lacks out '<[a-z]'
		lacks out '[{}]'
		lacks out '[^=]\bN\b' # not as in maxsize=N
	done
}

@test "a mistyped command or option is answered with the nearest one" {
	expect 2 reprot
	holds err "did you mean 'report'?"
	expect 2 report --jsno
	holds err "did you mean '--json'?"
	expect 2 help rum
	holds err "did you mean 'cuflight help run'?"
	expect 2 xyzzy
	holds err "'cuflight help' lists them"
	expect 2 help S99
	holds err "no help on 'S99'" "'cuflight help causes' the causes"
	expect 2 help oom
	holds err "did you mean 'cuflight help causes'?"
	expect 2 help gpu-leek
	holds err "did you mean 'cuflight help gpu-leak'?"
	expect 2 help fragmentaton
	holds err "did you mean 'cuflight help fragmentation'?"
	expect 2 help pymalloc
	holds err 'mentioned in the help on: allocator-keeps-freed'
	expect 2 export --format=pprof x.cuf
	holds err "did you mean '--to'?"
	expect 2 export x.cuf
	holds err 'the formats are' 'pprof'
	expect 2 help S6 S7
	holds err "too many arguments: 'S7'"
	expect 2 --output=x report
	holds err 'options follow the command'
	empty out
}

@test "usage errors of run are 125, for its own failures must not look like the command's" {
	expect 125 run
	expect 125 run --
	expect 125 run --hots=full -- true
	expect 125 run --size=3 -- true
	expect 125 run --error-exitcode=256 -- true
	expect 125 run --library=/nonexistent/libcuflight.so -- true
	holds err '/nonexistent/libcuflight.so: No such file or directory'
	[ -z "$(recordings)" ]
}

@test "a full disk or a closed stdout is no success" {
	local arguments
	record_one
	for arguments in '--version' 'help' 'run --help' 'report x.cuf' 'report --json x.cuf' 'doctor' 'env'; do
		# shellcheck disable=SC2086 # words
		run "$cuflight" $arguments >/dev/null
		status=0
		# shellcheck disable=SC2086
		"$cuflight" $arguments >/dev/full 2>err || status=$?
		[ "$status" = 2 ] || { [ "$arguments" = 'run --help' ] && [ "$status" = 125 ]; }
		holds err 'cannot write the result: No space left on device'
	done
	status=0
	"$cuflight" report x.cuf >&- 2>err || status=$?
	[ "$status" = 2 ]
	holds err 'cannot write the result'
}

@test "a reader that goes away ends it like any filter" {
	record_one
	"$cuflight" report x.cuf | head -n 1 >first
	[ "$(wc -l <first)" = 1 ]
	# the signal ignored, and the reader gone for sure
	(trap '' PIPE; sleep 0.3; status=0; "$cuflight" report x.cuf 2>err || status=$?; echo "$status" >status) | { true; }
	[ "$(<status)" = 2 ]
	holds err 'cannot write the result: Broken pipe'
}

@test "env prints lines that a shell can evaluate, and that record" {
	local lines library
	library=$(realpath "$build")/libcuflight.so
	expect 0 env --recordings="$home/it's here/" --host=full --size=4MiB --stack-depth=9
	(
		export LD_PRELOAD=
		lines=$(<out)
		eval "$lines"
		[ "$LD_PRELOAD" = "$library" ]
		[ "$CUFLIGHT_OUTPUT" = "$home/it's here/" ]
		[ "$CUFLIGHT_OPTIONS" = host=full:size=4MiB:stack_depth=9 ]
		bash -c :
	)
	[ "$(find "it's here" -name 'cuflight.bash.*.cuf' | wc -l)" = 1 ]
}

@test "env of an installation: one path for the loaders of all systems, which any shell and file keeps" {
	local folder
	mkdir -p there/bin
	make -s -C "$root" O="$build" PREFIX="$home/there" DESTDIR= install >/dev/null 2>make.err || { cat make.err; return 1; }
	there/bin/cuflight env >out
	(
		export LD_PRELOAD=
		eval "$(<out)"
		[ "$LD_PRELOAD" = "$home/there/\$LIB/libcuflight.so" ]
		CUFLIGHT_OPTIONS=start=1 CUFLIGHT_OUTPUT=$home/any.cuf bash -c :
	)
	[ -s any.cuf ]
	for folder in lib lib64 "lib/$(uname -m)-linux-gnu"; do cmp "there/$folder/libcuflight.so" "$build/libcuflight.so"; done
	expect 0 env --docker --library='/opt/$LIB/libcuflight.so'
	holds out 'ENV LD_PRELOAD=/opt/\$LIB/libcuflight.so' 'COPY libcuflight.so /opt/lib64/libcuflight.so' "COPY libcuflight.so /opt/lib/$(uname -m)-linux-gnu/libcuflight.so"
	expect 0 env --k8s=sidecar --library='/opt/$LIB/libcuflight.so'
	holds out 'value: "/opt/$LIB/libcuflight.so"' 'install, "/opt"'
	expect 0 env --systemd --library='/opt/$LIB/libcuflight.so'
	holds out 'Environment="LD_PRELOAD=/opt/$LIB/libcuflight.so"'
	make -s -C "$root" O="$build" PREFIX="$home/there" DESTDIR= uninstall
	[ -z "$(find there -name 'libcuflight*')" ]
}

@test "env for a Dockerfile and a service names the library where it will be" {
	local form
	for form in docker systemd; do
		expect 0 env --$form --library=/usr/lib/libcuflight.so --probe
		empty err
		holds out /usr/lib/libcuflight.so probe=1 CUFLIGHT_OUTPUT
	done
	expect 2 env --k8s --image=x
	expect 2 env --image=x
	expect 2 env --k8s=init --library=/x/libcuflight.so
	expect 2 env --k8s=init --recordings=rec/%p
	expect 2 env --k8s=init --recordings=/rec
	expect 0 env --json --host=off --library=/x/libcuflight.so
	node -e 'const v = JSON.parse(require("fs").readFileSync(0)); process.exit(v.CUFLIGHT_OPTIONS === "host=off" && v.LD_PRELOAD === "/x/libcuflight.so" && v.CUFLIGHT_OUTPUT === null ? 0 : 1)' <out
	expect 2 env --library=/x/libcuflight.so what
	expect 2 env --termination-log=/a:b
	holds err "separates settings by ':'"
}

@test "-o writes a whole file or none, and overwrites with -f alone" {
	record_one
	expect 0 report -o r.txt x.cuf
	empty out
	cp r.txt before
	expect 2 report -o r.txt x.cuf
	holds err "'r.txt' exists; -f overwrites it"
	cmp r.txt before
	expect 0 report -f --json -o r.txt x.cuf
	[ "$(head -c 1 r.txt)" = '{' ]
	expect 2 report -o /nonexistent/r.txt x.cuf
	holds err "cannot write '/nonexistent/r.txt': No such file or directory"
	# the place comes first: reading may take long
	echo 'no recording' >bad.cuf
	expect 2 report -o /nonexistent/r.txt bad.cuf
	holds err "cannot write '/nonexistent/r.txt': No such file or directory"
	expect 2 report -o new.txt bad.cuf
	holds err 'bad.cuf'
	expect 2 report --at=#9 -o new.txt x.cuf
	[ ! -e new.txt ]
	expect 2 report -f -o /dev/full x.cuf
	holds err "cannot write '/dev/full': No space left on device"
	[ -z "$(find . -name '*.tmp.*')" ]
	expect 0 report -o /dev/null x.cuf
	expect 0 report -o - x.cuf
	[ -s out ]
}

@test "colour: on a terminal alone, unless told otherwise" {
	record_one
	expect 0 report x.cuf
	lacks out $'\033'
	expect 0 report --color=always x.cuf
	grep -q $'\033\[' out
	FORCE_COLOR=1 expect 0 report x.cuf
	grep -q $'\033\[' out
	NO_COLOR=1 FORCE_COLOR=1 expect 0 report x.cuf
	lacks out $'\033'
	TERM=xterm script -qec "'$cuflight' report x.cuf" /dev/null </dev/null >out
	grep -q $'\033\[' out
	TERM=dumb script -qec "'$cuflight' report x.cuf" /dev/null </dev/null >out
	lacks out $'\033'
	NO_COLOR=1 TERM=xterm script -qec "'$cuflight' report x.cuf" /dev/null </dev/null >out
	lacks out $'\033'
}

@test "results are pure ASCII where the locale is not UTF-8, whatever names hold" {
	mkdir 'grün'
	cp "$(type -P true)" 'grün/größe'
	"$cuflight" run -q --size=4MiB -o g.cuf -- 'grün/größe'
	LC_ALL=C expect 0 report g.cuf
	ascii out
	LC_ALL=C.UTF-8 expect 0 report g.cuf
	grep -q 'größe' out
}
