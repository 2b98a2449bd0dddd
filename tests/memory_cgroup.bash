# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A memory cgroup in which the kernel kills: v1 or v2, whichever this machine has. Loaded by tests.

# NAME BYTES: sets $group to its folder, or $why_no_group. Also for a cgroup v2 that has to hand the
# controller down first.
memory_cgroup() {
	local root=/sys/fs/cgroup limit=memory.max
	if [ -f $root/cgroup.controllers ]; then
		grep -qw memory $root/cgroup.controllers || { why_no_group='cgroup v2 without its memory controller'; return 1; }
		grep -qw memory $root/cgroup.subtree_control || echo +memory 2>/dev/null >$root/cgroup.subtree_control || { why_no_group='cgroup v2: no right to hand down the memory controller'; return 1; }
	else
		root=$root/memory limit=memory.limit_in_bytes
	fi
	why_no_group='no memory cgroup that could be made here'
	mkdir "$root/$1" 2>/dev/null || return 1
	group=$root/$1
	echo "$2" >"$group/$limit" && return
	why_no_group='the cgroup takes no limit'
	rmdir "$group"
	group=
	return 1
}

# COMMAND...: runs in $group.
in_memory_cgroup() { sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - "$group" "$@"; }

# Its processes may need a moment to be gone.
remove_memory_cgroup() {
	local _
	[ -d "${group:-/nonexistent}" ] || return 0
	for _ in 1 2 3 4 5 6 7 8 9 10; do rmdir "$group" 2>/dev/null && return; sleep 0.2; done
}
