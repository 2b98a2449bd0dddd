#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Man pages and completion: every example runs, every option is described, and the shell completes what there is.
load ../cli.bash

pages() { ls "$root"/analysis/cmd/man/*.1; }

# the commands of a page's EXAMPLES, one a line
examples() { sed -n 's/^\.Dl \$ //p' "$1" | sed 's/\\-/-/g; s/\\(dq/"/g'; }

@test "mandoc finds nothing wrong, and every page has its sections" {
	local page section
	for page in $(pages); do
		mandoc -T lint -W warning "$page"
		for section in NAME SYNOPSIS DESCRIPTION ENVIRONMENT FILES 'EXIT STATUS' EXAMPLES 'SEE ALSO'; do
			grep -qx "\.Sh $section" "$page" || { echo "$page has no $section" >&2; return 1; }
		done
	done
}

@test "every command has a page that describes all its options" {
	local name option
	for name in run report what-if check baseline diff phases doctor env; do
		for option in $(options_of "$name"); do
			mandoc -T ascii "$root/analysis/cmd/man/cuflight-$name.1" | sed 's/.\x08//g' | grep -qE -- "(^|[ ,])${option%=}([=[ ]|\$)" ||
				{ echo "cuflight-$name(1) lacks $option" >&2; return 1; }
		done
	done
}

@test "every example of the pages runs, in this order, and does not fail" {
	local page example count=0 status
	mkdir bin rec
	ln -s "$cuflight" bin/cuflight
	ln -s "$build/libcuflight.so" bin/libcuflight.so
	export PATH=$home/bin:$PATH
	printf 'print("served")\n' >server.py
	printf '#!/bin/sh\necho "$@"\n' | tee server >'test'
	chmod +x server test
	"$root/scripts/simcuda" cuflight run -q --size=4MiB -o rec/ -- "$build/victims/model_server" --commit=1
	cp rec/*.cuf server.cuf
	for page in before after run-1 run-2; do cp server.cuf $page.cuf; done
	rmdir none 2>/dev/null || true
	for page in $(pages); do
		while read -r example; do
			status=0
			bash -c "$example" >out 2>err </dev/null || status=$?
			# diff answers with 1 when something changed
			[[ $status = 0 || ( $example = 'cuflight diff'* && $status = 1 ) ]] || { echo "$(basename "$page"): $example" >&2; cat out err >&2; return 1; }
			count=$((count + 1))
		done < <(examples "$page")
	done
	[ "$count" -ge 10 ]
}

@test "the completion offers commands, options and choices" {
	# WORDS...: what is offered for the last word
	complete_words() {
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		COMPREPLY=()
		_cuflight
		echo "${COMPREPLY[*]}"
	}
	compopt() { :; } # only inside a completion
	# shellcheck source=/dev/null
	. "$root/analysis/cmd/man/cuflight.bash"
	[ "$(complete_words cuflight re)" = report ]
	[ "$(complete_words cuflight report --js)" = --json ]
	[ "$(complete_words cuflight report --for)" = '--format= --force' ]
	[ "$(complete_words cuflight report --format = j)" = json ]
	[ "$(complete_words cuflight run --host = '')" = 'off sampled full' ]
	[ "$(complete_words cuflight run --host '=')" = 'off sampled full' ]
	[ "$(complete_words cuflight help 'do')" = doctor ]
	[ "$(complete_words cuflight help 'gpu')" = gpu-leak ]
	[ -z "$(complete_words cuflight nonsense --x)" ]
}

@test "generated parts are up to date with the tables" {
	cp -r "$root/scripts" "$root/analysis" "$root/README.md" .
	mkdir -p interpose tests
	scripts/gen-docs "$build"
	diff -r analysis "$root/analysis"
	diff README.md "$root/README.md"
}
