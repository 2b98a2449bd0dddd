#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What `cuflight rules` prints, as the programs read it that it is for.
load live.bash

need() { command -v "$1" >/dev/null || skip "no $1 here (scripts/setup all)"; }

@test "promtool accepts the rules, and each one fires on its input and on no other" {
	need promtool
	"$cuflight" rules -o cuflight.rules.yml
	"$cuflight" rules --to=prometheus-tests -o tests.yml
	promtool check rules cuflight.rules.yml | tee checked
	grep -q '12 rules found' checked
	[ "$(grep -c '^- name: Cuflight' tests.yml)" = 12 ]
	promtool test rules tests.yml
	# a rule that does not hold is seen: the tests do test
	sed -i 's/< 3600/< 1/' cuflight.rules.yml
	if promtool test rules tests.yml; then return 1; fi
}

@test "rules and panels name only metrics that serve exposes" {
	"$cuflight" help --json >help.json
	"$cuflight" rules >rules
	"$cuflight" rules --to=grafana >grafana
	python3 - <<'END'
import json, re
known = {metric['name'] for metric in json.load(open('help.json'))['metrics']}
dashboard = json.load(open('grafana'))
expressions = [target['expr'] for panel in dashboard['panels'] for target in panel['targets']]
text = '\n'.join(re.findall(r"expr: '(.*)'", open('rules').read()) + expressions + re.findall(r'printf "(\w+)', open('rules').read()))
used = set(re.findall(r'\bcuflight_\w+', text))
assert len(used) > 15, used
assert used <= known, used - known
END
}

@test "amtool accepts the routes" {
	need amtool
	"$cuflight" rules --to=alertmanager -o alertmanager.yml
	amtool check-config alertmanager.yml
}
