#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What scripts/bundle makes of a command and a recorder, here those of this build: `make bundle` compiles its own.
bats_require_minimum_version 1.5.0
load ../cli.bash

# FOLDER: the artifacts
bundle() {
	mkdir -p "$1/command" "$1/recorder"
	cp "$cuflight" "$1/command/"
	cp "$build/libcuflight.so" "$1/recorder/"
	echo 'licences' >"$1/THIRD_PARTY"
	version=$("$cuflight" --version | cut -d' ' -f2)
	(cd "$root" && SOURCE_DATE_EPOCH=1700000000 scripts/bundle/artifacts.py --arch "$(uname -m)" --version "$version" \
		--build "$1" --sources scripts/bundle/sources.txt) >list
}

@test "two folders and two umasks give the same bytes, with sums and an SBOM of every pinned source" {
	(umask 077 && bundle "$home/a")
	(umask 022 && bundle "$home/b")
	[ "$(ls a/dist | wc -l)" = 7 ]
	diff -r a/dist b/dist
	(cd a/dist && sha256sum --quiet --check SHA256SUMS)
	grep -vc '^#' "$root/scripts/bundle/sources.txt" >wanted
	node -p 'JSON.parse(require("fs").readFileSync(process.argv[1])).components.length' a/dist/*.cdx.json | cmp - wanted
}

@test "a wheel works in a prefix and with --target" {
	local python place command
	bundle "$home/a"
	for place in '--prefix=p' '--target=t'; do
		python3 -m pip --disable-pip-version-check -q install --no-index --no-warn-script-location "$place" a/dist/cuflight-*.whl
	done
	for place in p t; do
		command=$(find "$place" -path '*/bin/cuflight') # Debian's pip has p/local/bin
		"$command" run -q --size=4MiB -o "$place.cuf" -- true
		expect 0 report "$place.cuf"
		"$command" env >lines
		grep -q "$home/$place/.*/*cuflight/libcuflight.so" lines
		python=$(dirname "$(dirname "$(find "$place" -name __main__.py)")")
		[[ $(PYTHONPATH=$python python3 -m cuflight --version) = "$("$cuflight" --version)" ]]
		PYTHONPATH=$python python3 -c 'import cuflight, os; assert os.path.exists(cuflight.library())'
	done
}

@test "a .deb and a tar work where they are unpacked" {
	command -v dpkg-deb >/dev/null || skip "no dpkg-deb"
	bundle "$home/a"
	dpkg-deb -x a/dist/*.deb deb
	mkdir tar && tar xf a/dist/*-linux-*.tar.gz -C tar --strip-components=1
	deb/usr/bin/cuflight run -q --size=4MiB -o deb.cuf -- true
	tar/bin/cuflight run -q --size=4MiB -o tar.cuf -- true
	expect 0 report deb.cuf
	expect 0 report tar.cuf
	tar/bin/cuflight env >lines
	grep -qF "/tar/\$LIB/libcuflight.so" lines
	[ -s deb/usr/share/doc/cuflight/copyright ]
	[ -s tar/share/doc/cuflight/THIRD_PARTY ]
	dpkg-deb -f a/dist/*.deb Depends | grep -qx 'libc6 (>= 2.17)'
}

@test "dpkg installs the .deb, and removes all of it" {
	command -v dpkg-deb >/dev/null || skip "no dpkg-deb"
	bundle "$home/a"
	mkdir -p r/var/lib/dpkg/{updates,info}
	touch r/var/lib/dpkg/status
	dpkg_there() { dpkg --root="$home/r" --log=/dev/null --force-not-root --force-depends --force-script-chrootless "$@" >log 2>&1 || { cat log >&2; false; }; }
	dpkg_there -i a/dist/*.deb
	r/usr/bin/cuflight run -q --size=4MiB -o deb.cuf -- true
	expect 0 report deb.cuf
	dpkg_there --purge cuflight
	[ -z "$(find r -name '*cuflight*')" ]
}

teardown() {
	local pid
	for pid in ${started:-}; do kill -KILL "$pid" 2>/dev/null || :; done
}

get() { curl -sS --noproxy '*' --max-time 60 "$address/$1"; }

@test "the shipped command serves what runs: metrics, the page, a report from a process of its own" {
	local shipped
	shipped=$build/bundle/$(uname -m)/command/cuflight
	[ -x "$shipped" ] || skip "no bundle here (make bundle)"
	CUFLIGHT_OUTPUT=rec/ CUFLIGHT_OPTIONS=start=1:size=4MiB LD_PRELOAD=$build/libcuflight.so sleep 1000 3>&- &
	started=$!
	until ls rec/*.cuf >/dev/null 2>&1; do kill -0 "$started" || return; sleep 0.1; done
	"$shipped" serve --listen=127.0.0.1:0 rec >serve.out 2>&1 3>&- &
	started+=" $!"
	until grep -q 'http://' serve.out; do kill -0 $! || return; sleep 0.1; done
	address=$(grep -o 'http://[^/]*' serve.out)
	until get metrics | grep -qx 'cuflight_process_running{.*process="sleep".*} 1'; do kill -0 $! || return; sleep 0.1; done
	get '' >page && grep -q '<title>cuflight' page
	get 'report?process=sleep' | grep -q '^RUNNING: sleep'
	get 'report.json?process=sleep' | python3 -m json.tool >/dev/null
}
