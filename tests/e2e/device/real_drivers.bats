#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# NVIDIA's real drivers, which load and answer look-ups without a GPU: whatever the driver answers, the
# recorder answers the same, or its hook for exactly the function that the driver answered. Drivers are
# those of Debian's releases (`scripts/setup drivers`), and fetched for tests only.
bats_require_minimum_version 1.5.0
load ../cli.bash

# RELEASE: every export of this driver, and every name that the recorder knows, in every way and version
same_answers() {
	local driver
	driver=$(find "$build/drivers/$1" -name 'libcuda.so.[0-9]*.*' 2>/dev/null | head -n 1)
	[ -n "$driver" ] || skip "no driver of $1 here (scripts/setup drivers)"
	nm -D --defined-only "$driver" | awk '$3 ~ /^cu/ { print $3 }' >exports
	[ "$(wc -l <exports)" -gt 400 ]
	grep -oE '\bcu[A-Z][A-Za-z0-9_]*' "$root/tests/sim/names.def" >known
	(cat exports known; sed 's/_v[0-9]*\(_pts[zd]\)\?$//; s/_pt[sd][zs]$//' exports) | sort -u >names
	"$build/victims/driver_lookups" "$driver" <names >native
	CUFLIGHT_OUTPUT=$home/ LD_PRELOAD=$build/libcuflight.so "$build/victims/driver_lookups" "$driver" <names >recorded
	python3 - <<-'PYTHON'
		native, recorded = [[line.rsplit(" ", 1) for line in open(name)] for name in ("native", "recorded")]
		exports = {question.split()[1]: answer.strip() for question, answer in native if question.startswith("dlsym ")}
		assert len(native) == len(recorded) > 40000, (len(native), len(recorded))
		hooks = {"same": 0, "hook": 0}
		for (question, answer), (also, ours) in zip(native, recorded):
		    assert question == also, (question, also)
		    answer, ours = answer.strip(), ours.strip()
		    if ours.startswith("libcuflight.so!"):
		        assert exports[ours.split("!")[1]] == answer, f"{question} {answer}, and recorded {ours}"
		        hooks["hook"] += 1
		    else:
		        assert ours == answer, f"{question} {answer}, and recorded {ours}"
		        hooks["same"] += 1
		print(hooks)
		assert hooks["hook"] > 1000 and hooks["same"] > 1000, hooks
	PYTHON
}

@test "driver 470 (Debian 11): each look-up is the driver's, or the hook of exactly that function" { same_answers bullseye; }
@test "driver 535 (Debian 12): each look-up is the driver's, or the hook of exactly that function" { same_answers bookworm; }
@test "driver 550 (Debian 13): each look-up is the driver's, or the hook of exactly that function" { same_answers trixie; }
@test "driver 555 (Debian experimental): each look-up is the driver's, or the hook of exactly that function" { same_answers experimental; }
