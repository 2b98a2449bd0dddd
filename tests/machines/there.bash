# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Programs of aarch64 under qemu. They and their libraries are the distribution's, fetched with separate
# package lists and unpacked into $there for this run; nothing of another machine is installed.
root=$(realpath "$BATS_TEST_DIRNAME/../..")
build=$(realpath "${BUILD:-$root/build}")
there=$BATS_FILE_TMPDIR/there

# PACKAGE...: an apt of its own, for the other architecture and without anything installed
fetch_programs() {
	local apt=$BATS_FILE_TMPDIR/apt package
	local options=(-qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User="$(id -un)"
		-o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache")
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$there" || return
	: >"$apt/status"
	apt-get "${options[@]}" update && apt-get "${options[@]}" --no-install-recommends --download-only -y \
		install "$@" || return
	for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$there" || return; done
}

# [-E NAME=VALUE...] PROGRAM [ARGUMENT...]
there() { qemu-aarch64 -L "$there" "$@"; }

# Python that keeps what it prints the bytes of, at line 5 of keeps.py
write_keeps() {
	cat >keeps.py <<'PYTHON'
import sys


def keep(count):
    return [str(i) * 5 for i in range(count)] # line 5


kept = keep(300000)
print(sum(map(sys.getsizeof, kept)))
PYTHON
}

# RECORDER: leaves keeps.cuf and truth
record_keeps() {
	write_keeps
	there -E PYTHONHOME="$there/usr" -E CUFLIGHT_OPTIONS=start=1:python_objects=start:sample=64KiB \
		-E CUFLIGHT_OUTPUT=keeps.cuf -E LD_PRELOAD="$1" "$there/usr/bin/python3" keeps.py >truth
}

# The report in keeps.json has these objects at their line, and no walk was refused.
judge_keeps() {
	python3 -c '
import json, sys
report, truth = json.load(open("keeps.json")), int(open("truth").read())
assert not [b for b in report["coverage"]["blind"] if "walks of Python" in str(b)], report["coverage"]["blind"]
found = 0
for site in report["leaks"]:
    frames = [f for f in site["stack"] if f["language"] == "python"]
    if frames and frames[0]["file"].endswith("keeps.py") and frames[0]["line"] == 5:
        assert frames[0]["function"].startswith("keep"), frames
        found += site["bytes"]
# five standard deviations of the sample, and the list itself
assert abs(found - truth) < 5 * (truth * 65536) ** 0.5 + (4 << 20), (found, truth)'
}
