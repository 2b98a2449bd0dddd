#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The wheel in a fresh virtual environment of each Python that is here: that of `make bundle`, else one
# of this build's command and recorder.
bats_require_minimum_version 1.5.0
load ../cli.bash

setup_file() {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..") build=${BUILD:-$root/build} dist=$BATS_FILE_TMPDIR/dist
	if ! cp -r "$build/bundle/$(uname -m)/dist" "$BATS_FILE_TMPDIR/" 2>/dev/null; then
		mkdir "$BATS_FILE_TMPDIR"/{command,recorder}
		cp "$build/cuflight" "$BATS_FILE_TMPDIR/command/"
		cp "$build/libcuflight.so" "$BATS_FILE_TMPDIR/recorder/"
		echo licences >"$BATS_FILE_TMPDIR/THIRD_PARTY"
		(cd "$root" && SOURCE_DATE_EPOCH=1700000000 scripts/bundle/artifacts.py --arch "$(uname -m)" --build "$BATS_FILE_TMPDIR" \
			--version "$("$build/cuflight" --version | cut -d' ' -f2)" --sources scripts/bundle/sources.txt) >"$BATS_FILE_TMPDIR/list"
	fi
	export dist
	cat >"$BATS_FILE_TMPDIR/app.py" <<-'PYTHON'
		def remember(n):
		    return bytearray(n)  # line 2

		kept = [remember(1 << 20) for _ in range(200)]
	PYTHON
}

# MINOR: the path of this Python, if it is here and makes virtual environments; 3.14 is that of scripts/setup-python, too
python_of() {
	local path
	for path in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$1".*/bin/python3 /usr/local/bin/python3."$1" /usr/bin/python3."$1" \
		"$build/python/usr/bin/python3.$1"; do
		[ ! -x "$path" ] || ! "$path" -c 'import venv' 2>/dev/null || { echo "$path"; return; }
	done
	return 1
}

# its own pip, or where a distribution keeps that apart, this system's on that environment
pip_of_fresh() {
	local pip=(fresh/bin/python -m pip)
	[ -x fresh/bin/pip ] || pip=(python3 -m pip --python fresh/bin/python)
	"${pip[@]}" --disable-pip-version-check -q "$@"
}

# MINOR
works_with() {
	local python
	python=$(python_of "$1") || skip "no Python 3.$1 with venv here"
	"$python" -m venv fresh 2>"$BATS_TEST_TMPDIR/venv" || "$python" -m venv --clear --without-pip fresh
	pip_of_fresh install --no-index "$dist"/cuflight-*.whl
	pip_of_fresh install --no-index --target apart "$dist"/cuflight-*.whl
	fresh/bin/python -m cuflight --version | grep -q '^cuflight '
	for place in fresh apart; do
		"$place/bin/cuflight" run -q -o "$place.rec/" -- fresh/bin/python "$BATS_FILE_TMPDIR/app.py"
		"$place/bin/cuflight" report "$place.rec/" >screen
		grep -q '  remember (.*:2)  *200 MiB' screen || { cat screen >&2; return 1; }
	done
	pip_of_fresh uninstall -y cuflight
	[ -z "$(find fresh -name '*cuflight*')" ]
}

@test "Python 3.9: the wheel installs, names the line, and goes" { works_with 9; }
@test "Python 3.10: the wheel installs, names the line, and goes" { works_with 10; }
@test "Python 3.11: the wheel installs, names the line, and goes" { works_with 11; }
@test "Python 3.12: the wheel installs, names the line, and goes" { works_with 12; }
@test "Python 3.13: the wheel installs, names the line, and goes" { works_with 13; }
@test "Python 3.14: the wheel installs, names the line, and goes" { works_with 14; }

@test "the plugin of pytest needs the command's distribution of the same version" {
	python3 -m zipfile -e "$dist"/pytest_cuflight-*.whl plugin
	version=$(sed -n 's/^Version: //p' plugin/*.dist-info/METADATA)
	[ -e "$dist/cuflight-$version-py3-none-manylinux_2_17_$(uname -m).manylinux2014_$(uname -m).whl" ]
	grep -qx "Requires-Dist: cuflight>=$version" plugin/*.dist-info/METADATA
	grep -qx 'cuflight = pytest_cuflight.plugin' plugin/*.dist-info/entry_points.txt
}
