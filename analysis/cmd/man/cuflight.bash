# SPDX-License-Identifier: Apache-2.0
# bash completion of cuflight. Written by scripts/gen-docs from the tables of the command.
_cuflight() {
	local commands causes options choices=''
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
	commands='run report what-if top serve watch rules list pack clean check baseline diff phases export doctor env install help'
	causes='recovered memory-cap other-tenant model-too-large activations-too-large
		kv-cache-too-large kv-cache-leaves-no-room kv-cache-grew too-many-requests
		fragmentation-pinned fragmentation-growing-sizes stranded-pool other-allocator
		fragmentation-pool library-memory gpu-leak page-lock-refused host-leak pinned-fills-host
		host-cache allocator-keeps-freed managed-heap loading-needs-more-host host-work-at-once
		host-request-doubles host-request-does-not-fit host-request-too-large host-process-limit
		host-out-of-memory'
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$word")
		return
	fi
	case ${COMP_WORDS[1]} in
		run) options='--output= --force --library= --host-allocator= --check --limits= --baseline=
			--config= --suppressions= --no-default-suppressions --error-exitcode= --host=
			--sample= --size= --mode= --stack-depth= --python --unwind= --python-objects=
			--large-maps --mmap --probe --nvml --termination-log= --help --version --quiet
			--verbose --color=' ;;
		report) options='--format= --html --at= --run= --new --termination-log= --pid= --warm-up= --full
			--top= --no-pager --sysroot= --debuginfod --output= --force --json --help
			--version --quiet --verbose --color=' ;;
		what-if) options='--set= --all --output= --force --format= --json --help --version --quiet
			--verbose --color=' ;;
		top) options='--once --batch --json --count= --every= --top= --warm-up= --help --version
			--quiet --verbose --color=' ;;
		serve) options='--listen= --token-file= --allow-host= --metrics-file= --every=
			--labels-from-path= --no-sites --report-ended --termination-log= --memory=
			--warm-up= --processor= --help --version --quiet --verbose --color=' ;;
		watch) options='--rule= --rules= --dry-run --interval= --keep= --snapshots= --snapshot-bytes=
			--memory= --warm-up= --processor= --help --version --quiet --verbose --color=' ;;
		rules) options='--to= --output= --force --help --version --quiet --verbose --color=' ;;
		list) options='--output= --force --format= --json --help --version --quiet --verbose --color=' ;;
		pack) options='--output= --force --run= --sysroot= --warm-up= --help --version --quiet
			--verbose --color=' ;;
		clean) options='--keep= --days= --total= --trim --recursive --every= --yes --dry-run --help
			--version --quiet --verbose --color=' ;;
		check) options='--baseline= --config= --allow-inconclusive --any-environment --sysroot= --write=
			--suppressions= --no-default-suppressions --gen-suppressions= --output= --force
			--format= --json --help --version --quiet --verbose --color=' ;;
		baseline) options='--output= --force --sysroot= --help --version --quiet --verbose --color=' ;;
		diff) options='--at= --end --least= --top= --sysroot= --output= --force --format= --json --help
			--version --quiet --verbose --color=' ;;
		phases) options='--id= --sites --sysroot= --output= --force --format= --json --help --version
			--quiet --verbose --color=' ;;
		export) options='--to= --output= --force --table= --at= --kind= --device= --pid= --interpreter
			--run= --sysroot= --debuginfod --help --version --quiet --verbose --color=' ;;
		doctor) options='--library= --recordings= --size= --output= --force --format= --json --help
			--version --quiet --verbose --color=' ;;
		env) options='--docker --k8s= --systemd --image= --library= --recordings= --host= --sample=
			--size= --mode= --stack-depth= --python --unwind= --python-objects= --large-maps
			--mmap --probe --nvml --termination-log= --start= --output= --force --format=
			--json --help --version --quiet --verbose --color=' ;;
		install) options='--help --version --quiet --verbose --color=' ;;
		help) options='--rule --json --help --version --quiet --verbose --color=' ;;
		*) return ;;
	esac
	# readline splits --name=value at the '='
	if [[ $word == '=' ]]; then
		word=''
	elif [[ $before == '=' ]]; then
		before=${COMP_WORDS[COMP_CWORD-2]}
	fi
	case $before in
		--host-allocator) choices='own jemalloc' ;;
		--host) choices='off sampled full' ;;
		--mode) choices='0600 0640' ;;
		--unwind) choices='cfi libunwind fp' ;;
		--python-objects) choices='off auto start' ;;
		--color) choices='auto always never' ;;
		--format) choices='text json' ;;
		--to) choices='prometheus prometheus-tests alertmanager grafana' ;;
		--k8s) choices='sidecar daemonset init' ;;
	esac
	if [[ -n $choices ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
	elif [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
		[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
	elif [[ ${COMP_WORDS[1]} == help ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands causes $causes" -- "$word")
	fi
}
complete -o default -F _cuflight cuflight
