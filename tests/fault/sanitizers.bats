#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Forty-four small programs in the manner of AddressSanitizer's and ThreadSanitizer's own tests: each
# ends with the status, the output and the reports that it has without the recorder. Reports are
# compared by what they accuse, because frames of ours are on the stacks in them.
load broken.bash

# SANITIZER SOURCE LAST: programs 0 to LAST, in both modes
same_reports() {
	local number mode
	export ASAN_OPTIONS=verify_asan_link_order=0:allocator_may_return_null=1
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -w -g -O0 "-fsanitize=$1" \
		"$root/tests/fault/sanitizers/$2.c" -o "$home/$2" -lpthread ||
		skip "the compiler has no -fsanitize=$1"
	for number in $(seq 0 "$3"); do
		observe native timeout 60 "$home/$2" "$number"
		[ "$(<"$home/native.status")" != 99 ] # there is such a program
		for mode in host=full host=sampled; do
			observe recorded timeout 60 env "LD_PRELOAD=$library" \
				"CUFLIGHT_OUTPUT=$output/" \
				"CUFLIGHT_OPTIONS=start=1:size=4MiB:$mode" "$home/$2" "$number"
			compare
			diff <(accused native) <(accused recorded) >&2
			! grep '^cuflight: ' "$home/recorded.err" >&2
		done
		[ "$number" = 0 ] && grep -q Sanitizer "$home/native.err" || [ "$number" != 0 ]
	done
	readable_in "$output" "$3"
}

# WAY: what the reports say, without addresses and stacks
accused() {
	grep -E 'Sanitizer|byte\(s\)|of size|is located|by thread|by main thread' "$home/$1.err" |
		sed -E '/SUMMARY: (Address|Thread)Sanitizer: [a-z]/s/(: [a-z]+[- ]?[a-z]*).*/\1/
			s/0x[0-9a-f]+/0x/g; s/[0-9]+==/==/; s/(pid=|tid=|T)[0-9]+/\1/g
			s/\(?(pc|bp|sp) 0x//g; s#/[^ ]*##g'
}

@test "programs that AddressSanitizer accuses, and some that it does not" {
	same_reports address faulty 22
}

@test "programs that ThreadSanitizer accuses, and some that it does not" {
	same_reports thread races 20
}
