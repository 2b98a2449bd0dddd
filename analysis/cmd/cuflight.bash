# SPDX-License-Identifier: Apache-2.0
# bash completion of cuflight. Made by scripts/gen-docs out of the command tables; change those.
_cuflight() {
	local commands options choices='' word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
	commands='run report doctor env help'
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$word")
		return
	fi
	case ${COMP_WORDS[1]} in
		run) options='--output= --force --library= --host-allocator= --error-exitcode= --host= --sample= --size= --stack-depth= --python --mmap --probe --nvml --termination-log= --help --version --quiet --verbose --color=' ;;
		report) options='--at= --sysroot= --debuginfod --output= --force --format= --json --help --version --quiet --verbose --color=' ;;
		doctor) options='--library= --recordings= --size= --output= --force --format= --json --help --version --quiet --verbose --color=' ;;
		env) options='--docker --k8s --systemd --library= --recordings= --host= --sample= --size= --stack-depth= --python --mmap --probe --nvml --termination-log= --start= --output= --force --format= --json --help --version --quiet --verbose --color=' ;;
		help) options='--as= --help --version --quiet --verbose --color=' ;;
		*) return ;;
	esac
	# readline splits --name=value at the '='
	if [[ $word == '=' ]]; then word=''; elif [[ $before == '=' ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
	case $before in
		--host-allocator) choices='own jemalloc' ;;
		--host) choices='off sampled full' ;;
		--color) choices='auto always never' ;;
		--format) choices='text json' ;;
		--as) choices='text mdoc bash markdown' ;;
	esac
	if [[ -n $choices ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
	elif [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
		[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
	elif [[ ${COMP_WORDS[1]} == help ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
	fi
}
complete -o default -F _cuflight cuflight
