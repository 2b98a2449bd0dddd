#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A node's daemon, and what `cuflight env --k8s` prints. There is no cluster: the schemas of
# Kubernetes judge the manifests, and what they start is started here.
load live.bash

expect_usage() {
	local status=0
	"$cuflight" "$@" >usage.out 2>usage.err || status=$?
	[ $status = 2 ]
}

@test "labels from the path: a process and its recording have the names of their folders, whatever these are" {
	local hostile=$'a"b\\c\nd\xff{}'
	start_server one '' rec/shop/server-0/main/
	start_server two '' "rec/$hostile/pod/"
	start_server three
	order one weights 10
	order two weights 20
	order three weights 30
	mkdir -p rec/shop/server-1/main
	{ printf 'CUFLIGHT'; head -c 9000 /dev/zero; } >rec/shop/server-1/main/damaged.cuf
	start_serve --labels-from-path=namespace/pod/container rec
	metrics_become "m('gpu_memory_bytes', namespace='shop', pod='server-0', container='main', owner='weights') == 10 << 20" \
		"m('gpu_memory_bytes', pod='pod', owner='weights') == 20 << 20" \
		"n('gpu_memory_bytes', pod='pod', container='pod') == 0" \
		"m('gpu_memory_bytes', process='python3', owner='weights') + m('gpu_memory_bytes', process='python3 #2', owner='weights') + m('gpu_memory_bytes', process='python3 #3', owner='weights') == 60 << 20" \
		"m('up', namespace='shop', pod='server-1', container='main') == 0 and n('up', pod='server-1') == 1" \
		"n('up') == 4 and n('process_info', namespace='shop') == 1 and n('build_info') == 1"
	grep -qF 'namespace="a\"b\\c\nd'$'\xef\xbf\xbd''{}",pod="pod"' metrics.txt
	if grep 'namespace=' metrics.txt | grep -v '^cuflight_'; then return 1; fi
	! command -v promtool >/dev/null || promtool check metrics <metrics.txt
}

@test "labels from the path: a name that is none, or that a metric has, is refused" {
	local names
	for names in process gpu/pod 1/2 a//b __a a-b '' pod/pod a/b/c/d/e; do
		expect_usage serve --listen=127.0.0.1:0 "--labels-from-path=$names" rec
		grep -q 'labels-from-path' usage.err
	done
}

# ARGUMENT...
read_manifest() { python3 "$root/tests/e2e/live/manifests.py" "$@"; }

needs_yaml() { python3 -c 'import yaml' 2>/dev/null || skip "pyyaml was not fetched (scripts/setup)"; }

@test "manifests: Kubernetes 1.30 to 1.37 accepts each form, volumes and ports belong together" {
	local form
	export PYTHONPATH=$build/kubernetes:$root/tests/e2e/live
	python3 -c 'import kubernetes_validate' || skip "kubernetes-validate was not fetched (scripts/setup all)"
	for form in sidecar daemonset init; do
		"$cuflight" env --k8s=$form --host=full --termination-log=/models/log --image='it"s\a:1' >$form.yml
		read_manifest $form.yml check
		read_manifest $form.yml validate >accepted
		read -r count versions <accepted
		[ "$versions" -ge 8 ] && [ "$count" -ge "$versions" ]
		python3 -c "
import manifests
for pod in manifests.pods(manifests.documents('$form.yml')):
    assert all(container['image'] == 'it\"s\\\\a:1' for container in manifests.containers(pod) if container['name'] != 'server')
options = next(v['value'] for v in manifests.named(manifests.documents('$form.yml'), 'server')['env'] if v['name'] == 'CUFLIGHT_OPTIONS').split(':')
assert set(options) == {'host=full', 'termination_log=/models/log', 'mode=0640'}, options"
	done
}

@test "manifests: their PrometheusRule is what cuflight rules prints, and promtool accepts it" {
	needs_yaml
	"$cuflight" env --k8s=sidecar >sidecar.yml
	"$cuflight" rules >rules.yml
	read_manifest sidecar.yml rules >spec.json
	python3 -c "
import json, yaml
assert json.load(open('spec.json')) == yaml.safe_load(open('rules.yml'))"
	! command -v promtool >/dev/null || promtool check rules spec.json
}

# CONTAINER COMMAND...: runs the command of a container here
in_place=()
words_of() { read_manifest "$1" words "$2" "${in_place[@]}" >words && mapfile -t words <words; }

@test "manifests: the init container brings the library, the server is recorded, the sidecar serves and reports" {
	needs_yaml
	in_place=("/bin/cuflight=$cuflight" "/opt/cuflight=$PWD/opt" "/recordings/=$PWD/rec/" "/etc/cuflight=$PWD/secret" /dev/termination-log="$PWD/log" ":9741=127.0.0.1:0")
	mkdir opt secret
	echo a-token-of-sixteen >secret/token
	"$cuflight" env --k8s=sidecar --size=4MiB >sidecar.yml
	words_of sidecar.yml cuflight-install
	"${words[@]}"
	start_server one
	order one weights 30
	kill_server one
	read_manifest sidecar.yml env server "${in_place[@]}" >environment
	mapfile -t environment <environment
	mkfifo pod.orders
	env "${environment[@]}" "$root/scripts/simcuda" python3 "$root/tests/e2e/live/server.py" <pod.orders >pod.out 2>&1 3>&- &
	echo $! >pod.pid
	started+=" $!"
	exec {orders}>pod.orders
	orders_pod=$orders done_pod=0
	until_true 60 [ -e "truth.$(<pod.pid)" ]
	order pod weights 20
	words_of sidecar.yml cuflight
	"${words[@]}" >serve.out 2>&1 3>&- &
	started+=" $!"
	until_true 30 grep -qE 'http://|libmicrohttpd' serve.out
	! grep -q libmicrohttpd serve.out || skip "built without libmicrohttpd"
	address=$(grep -o 'http://[^/]*' serve.out)
	[ "$(get -o /dev/null -w '%{http_code}' "$address/metrics")" = 401 ]
	until_true 60 has_weights
	until_true 60 grep -qF "(pid $(<one.pid))" serve.out
	kill_server pod
	until_true 60 grep -qF "(pid $(<pod.pid))" serve.out
	until_true 60 grep -qF "(pid $(<pod.pid))" log
	# the next pod on the node, in the other form: nothing is new
	"$cuflight" env --k8s=init >init.yml
	words_of init.yml cuflight-report
	"${words[@]}" >again
	[ ! -s again ]
	rm rec/.cuflight-reported
	"${words[@]}" >again
	cmp again log
}

@test "manifests: the cleaner of a node removes what has ended and empty folders, again and again, and leaves who runs" {
	needs_yaml
	in_place=("/bin/cuflight=$cuflight" "/recordings/=$PWD/rec/")
	start_server one '' rec/shop/pod-1/server/
	start_server two '' rec/shop/pod-2/server/
	start_server three '' rec/shop/pod-3/server/
	order one weights 10
	order two weights 10
	order three weights 10
	kill_server three
	"$cuflight" report --new rec/shop/pod-3/server >said
	[ -e rec/shop/pod-3/server/.cuflight-reported ]
	mkdir -p rec/shop/pod-0/server
	"$cuflight" env --k8s=daemonset >daemonset.yml
	words_of daemonset.yml cuflight-clean
	words=("${words[@]/--days=7/--days=0}")
	"${words[@]/--every=3600/--every=1}" >removed 2>said.clean 3>&- &
	started+=" $!"
	until_true 60 [ ! -e rec/shop/pod-0 ]
	until_true 60 [ ! -e rec/shop/pod-3 ]
	[ -e rec/shop/pod-1/server ]
	kill_server one
	until_true 60 [ ! -e rec/shop/pod-1 ]
	compgen -G "rec/shop/pod-2/server/*.cuf"
	kill -0 "$(<two.pid)"
}

has_weights() { get -H 'Authorization: Bearer a-token-of-sixteen' "$address/metrics" | grep -q 'owner="weights"} 20971520'; }
