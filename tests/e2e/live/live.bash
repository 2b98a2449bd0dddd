# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Recorded servers on one simulated device, and a cuflight that watches them. Loaded by live/*.bats.
setup() {
	root=$(realpath "$BATS_TEST_DIRNAME/../../..")
	build=${BUILD:-$root/build}
	cuflight=$build/cuflight
	cd "$BATS_TEST_TMPDIR" || return
	unset "${!CUFLIGHT_@}" LD_PRELOAD
	export TZ=UTC LC_ALL=C.UTF-8 DEBUGINFOD_URLS="" PYTHONPATH=$build/ci_readers PYTHONDONTWRITEBYTECODE=1
	export SIMCUDA_STATE=$BATS_TEST_TMPDIR/devices
	mkdir -p rec
	started=
}

end_started() {
	local pid
	for pid in $started; do kill -KILL "$pid" 2>/dev/null || :; done
}

teardown() { end_started; }

# SECONDS COMMAND...: until the command succeeds
until_true() {
	local until=$((SECONDS + $1))
	shift
	while [ $SECONDS -lt $until ]; do
		! "$@" >said 2>&1 || return 0
		sleep 0.1
	done
	cat said >&2
	return 1
}

# NAME [DEVICE [DIRECTORY/]]: a server, recorded with $recorder's options; order NAME ... gives it work. Its pid is in NAME.pid.
start_server() {
	mkfifo "$1.orders"
	CUFLIGHT_OUTPUT=$PWD/${3:-rec/} CUFLIGHT_OPTIONS=size=4MiB${recorder:+:$recorder} "$root/scripts/simcuda" env "LD_PRELOAD=$build/libcuflight.so" \
		python3 "$root/tests/e2e/live/server.py" ${2:+"$2"} <"$1.orders" >"$1.out" 2>&1 3>&- &
	echo $! >"$1.pid"
	started+=" $!"
	exec {orders}>"$1.orders"
	eval "orders_$1=$orders done_$1=0"
	until_true ${PATIENCE:-60} [ -e "truth.$(<"$1.pid")" ]
}

has_done() { grep -q "\"orders\": $2[,}]" "truth.$(<"$1.pid")"; }

# NAME ORDER...: gives an order and waits until it is done
order() {
	local name=$1 fd=orders_$1 done=done_$1
	shift
	eval "$done=$((${!done} + 1))"
	echo "$*" >&"${!fd}"
	until_true ${PATIENCE:-60} has_done "$name" "${!done}"
}

kill_server() {
	kill -KILL "$(<"$1.pid")"
	wait "$(<"$1.pid")" 2>/dev/null || :
}

# ARGUMENT...: cuflight serve; its address is in $address
start_serve() {
	: >serve.out # of an earlier one
	"$cuflight" serve --listen=127.0.0.1:0 --processor=50 "$@" >serve.out 2>&1 3>&- &
	serve=$!
	started+=" $serve"
	until_true 30 grep -q 'http://' serve.out || grep -q libmicrohttpd serve.out || return
	! grep -q libmicrohttpd serve.out || skip "built without libmicrohttpd"
	address=$(grep -o 'http://[^/]*' serve.out)
}

get() { curl -sS --noproxy '*' --max-time 20 "$@"; }

# EXPRESSION...: scrapes until they are true of both formats
are_true() {
	get -o metrics.txt "$address/metrics" && python3 "$root/tests/e2e/live/metrics.py" metrics.txt "$@" &&
		get -H 'Accept: application/openmetrics-text; version=1.0.0' -o metrics.om "$address/metrics" &&
		python3 "$root/tests/e2e/live/metrics.py" metrics.om "$@"
}
metrics_become() {
	python3 -c 'import prometheus_client' 2>/dev/null || skip "prometheus-client was not fetched (scripts/setup)"
	until_true ${PATIENCE:-60} are_true "$@"
}
