#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The real thing, with Debian's Prometheus and Alertmanager: servers that will run out of memory, and
# one whose memory is in holes, are announced while they run, one that works in bursts is not, and
# the report of the dead has the same cause. All times are a thirtieth: the warm-up, and how long a rule must hold.
load live.bash

need() { command -v "$1" >/dev/null || skip "no $1 here (scripts/setup all)"; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

start_prometheus() {
	alerts=127.0.0.1:$(free_port)
	prometheus=127.0.0.1:$(free_port)
	"$cuflight" rules | sed 's/for: \([0-9]*\)m/for: \1s/' >cuflight.rules.yml
	"$cuflight" rules --to=alertmanager | sed 's/group_wait: .*/group_wait: 1s/' >alertmanager.yml
	cat >prometheus.yml <<END
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [ cuflight.rules.yml ]
alerting: { alertmanagers: [ { static_configs: [ { targets: [ $alerts ] } ] } ] }
scrape_configs: [ { job_name: cuflight, honor_labels: true, static_configs: [ { targets: [ ${address#http://} ] } ] } ]
END
	prometheus-alertmanager --config.file=alertmanager.yml --storage.path=am --cluster.listen-address= --web.listen-address="$alerts" >am.log 2>&1 3>&- &
	started+=" $!"
	prometheus --config.file=prometheus.yml --storage.tsdb.path=tsdb --web.listen-address="$prometheus" >prom.log 2>&1 3>&- &
	started+=" $!"
	until_true 60 get -f "http://$prometheus/-/ready"
}

# PROCESS ALERT: it has reached the Alertmanager; its description is in described.PROCESS
is_announced() {
	get "http://$alerts/api/v2/alerts" >alerts.json && python3 - "$@" <<'END'
import json, sys
process, name = sys.argv[1:]
for alert in json.load(open('alerts.json')):
    if alert['labels'].get('process') == process and alert['labels']['alertname'] == name:
        open('described.' + process, 'w').write(alert['annotations']['description'])
        sys.exit(0)
sys.exit(1)
END
}

# NAME DEVICE KIND: a server that works without end
start_working() {
	start_server "$1" "$2"
	order "$1" name "\"$1\""
	order "$1" weights 64
	local fd=orders_$1
	echo "serve $3" >&"${!fd}"
}

# NAME: at most seven tenths of the device were used when the alert came
is_early() { python3 "$root/tests/e2e/live/metrics.py" metrics.txt "m('gpu_memory_free_bytes', process='$1') > 0.3 * 16 * 2**30"; }

# NAME ALERT: it came while the server ran; the report of the killed one has its cause
is_announced_alive() {
	until_true 240 is_announced "$@"
	kill -0 "$(<"$1.pid")"
	get -o metrics.txt "$address/metrics"
}
# NAME BEGIN: the cause of the dead begins so
agrees_dead() {
	kill_server "$1"
	"$cuflight" report --json rec/*."$(<"$1.pid")".cuf >report.json
	python3 - "$@" <<'END'
import json, sys
cause = json.load(open('report.json'))['cause']['name_id']
print(cause, '|', sys.argv[2:])
assert (cause + ' at ').startswith(sys.argv[2]), cause
END
}

@test "a leak, a growing KV cache and a cache in holes are announced while they run, a healthy server never, and the report agrees" {
	local name
	need prometheus
	need prometheus-alertmanager
	export SIMCUDA_DEVICES=4 TORCH_ALLOCATOR=$build/victims/torch/libc10_cuda.so
	start_working leak 3 leak
	start_working kv 1 kv
	start_working healthy 2 healthy
	start_working fragmented 0 fragmented # PyTorch's stand-in has one device
	start_serve --warm-up=10 rec
	start_prometheus
	for name in leak kv; do
		is_announced_alive "$name" CuflightOutOfMemoryPredicted
		is_early "$name"
		agrees_dead "$name" "$(sed 's/ at .*/ at /' "described.$name")"
	done
	is_announced_alive fragmented CuflightFragmentation
	agrees_dead fragmented fragmentation # what the alert is called after
	kill -0 "$(<healthy.pid)"
	get "http://$prometheus/api/v1/query?query=ALERTS%7Bprocess=%22healthy%22%7D" | grep -q '"result":\[\]'
	# each panel has data
	"$cuflight" rules --to=grafana >grafana.json
	python3 - "$prometheus" <<'END'
import json, sys, urllib.parse, urllib.request
empty = []
for panel in json.load(open('grafana.json'))['panels']:
    query = urllib.parse.urlencode({'query': 'last_over_time((' + panel['targets'][0]['expr'] + ')[5m:1s])'})
    answer = json.load(urllib.request.urlopen(f'http://{sys.argv[1]}/api/v1/query?{query}'))
    if not answer['data']['result']:
        empty.append(panel['title'])
assert not empty, empty
END
}
