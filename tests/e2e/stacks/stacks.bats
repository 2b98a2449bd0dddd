#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Stacks in real programs: at every allocation the walker's stack is the same as libunwind's, frame
# by frame. A stack that stops early must be rare; one that differs is a bug.
bats_require_minimum_version 1.5.0

setup() {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	oracle=${BUILD:-$root/build}/bench/walker_oracle.so
	ldconfig -p | grep -q 'libunwind\.so\.8 ' || skip "no libunwind here"
	cd "$BATS_TEST_TMPDIR" || return
}

# PROGRAM COMMAND...: checks the line of the process called PROGRAM
agrees() {
	local program=$1 line stacks equal early longer differ
	shift
	command -v "$1" >/dev/null || skip "no $1 here"
	LD_PRELOAD=$oracle "$@" >out 2>err
	line=$(grep "^walker_oracle: $program\[" err | tail -n 1)
	echo "$line" | tee -a "${ORACLE_LOG:-/dev/null}" >&2
	[ -n "$line" ]
	number() { sed -E "s/.*[ ,]$1 ([0-9]+).*/\1/" <<<"$line"; }
	stacks=$(number stacks) equal=$(number equal) early=$(number 'stopped early') longer=$(number longer) differ=$(number differ)
	[ "$stacks" -gt 1000 ]
	[ "$differ" = 0 ]
	[ "$longer" = 0 ]
	[ $((equal + early)) = "$stacks" ]
	[ $((early * 50)) -le "$stacks" ]
}

@test "python3: every stack is the same as libunwind's" {
	PYTHONMALLOC=malloc agrees 'python3[.0-9]*' python3 -c '
import json, re, threading
def work():
    text = json.dumps({str(i): [i] * 10 for i in range(1000)})
    assert len(json.loads(text)) == 1000 and re.findall("[0-9]+", text)
    def down(n): return [n] if not n else down(n - 1) + [n]
    down(300)
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]'
}

@test "sqlite3: every stack is the same as libunwind's" {
	agrees sqlite3 sqlite3 :memory: 'create table t(a, b);
		with recursive c(i) as (select 1 union all select i + 1 from c where i < 50000) insert into t select i, hex(randomblob(20)) from c;
		create index x on t(b); select count(*) from t where b like "%AB%";'
}

@test "g++ -O2 of templates: every stack is the same as libunwind's" {
	cat >t.cc <<-'CC'
		#include <algorithm>
		#include <map>
		#include <string>
		#include <vector>
		int main(int c, char **v)
		{
			std::map<std::string, std::vector<int>> m;
			for (int i = 0; i < c; i++) m[v[i]].push_back(i);
			return std::any_of(m.begin(), m.end(), [](auto &e) { return e.second.size() > 1; });
		}
	CC
	export ORACLE_EVERY=3
	agrees cc1plus g++ -O2 -std=c++17 -c t.cc -o t.o
}

@test "node, with code compiled at run time: every stack is the same as libunwind's" {
	cat >t.js <<-'JS'
		const all = {};
		for (let i = 0; i < 5000; i++) all["k" + i] = { a: [i, i + 1], b: Buffer.alloc(100) };
		const text = JSON.stringify(all);
		require("zlib").gunzipSync(require("zlib").gzipSync(text));
		for (let i = 0; i < 500; i++) require("crypto").createHash("sha256").update(text.slice(0, i)).digest("hex");
	JS
	agrees node node t.js
}

@test "perl: every stack is the same as libunwind's" {
	agrees perl perl -e 'my %h; $h{$_} = [1 .. 10] for 1 .. 5000; my $s = join ",", keys %h; my @x = sort split /,/, $s; print "$#x\n"'
}

@test "git: every stack is the same as libunwind's" {
	git -C "$root" rev-parse HEAD >/dev/null 2>&1 || skip "no repository here"
	agrees git git -C "$root" log --stat -n 40
}

@test "an executable with gaps between its segments: every stack is the same as libunwind's" {
	cat >gaps.c <<-'C'
		#include <stdlib.h>
		__attribute__((noinline)) long down(int n)
		{
			void *volatile p = malloc(n + 1);
			long sum = n ? down(n - 1) : 0;
			free(p);
			return sum + 1;
		}
		int main(void)
		{
			for (int i = 0; i < 100; i++) down(20);
		}
	C
	"${CC:-cc}" -O2 -fomit-frame-pointer -no-pie -Wl,-z,separate-code,-z,max-page-size=0x200000 -o gaps gaps.c
	agrees gaps ./gaps
}
