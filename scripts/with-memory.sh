#!/bin/bash
# Runs a command in a control group that may have so much memory, page cache included and without swap: what a store does when
# memory is short. Needs root and the memory controller of either version of the control groups.
#
#   scripts/with-memory.sh SIZE COMMAND [ARGUMENT...]
#
# SIZE is a number of bytes, or one with the suffix K, M or G. On a system with systemd the same is
# `systemd-run --scope -p MemoryMax=SIZE -p MemorySwapMax=0 COMMAND...`.
set -euo pipefail

if [ $# -lt 2 ]; then
    echo "usage: $0 SIZE COMMAND [ARGUMENT...]" >&2
    exit 2
fi
size=$1
shift

fail() {
    echo "with-memory: $1" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || fail "only root may make a control group"
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    group=/sys/fs/cgroup/aiodb-memory-$$
    echo +memory >/sys/fs/cgroup/cgroup.subtree_control || fail "the memory controller cannot be switched on"
    limit=memory.max swap=memory.swap.max swap_size=0
elif [ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then
    group=/sys/fs/cgroup/memory/aiodb-memory-$$
    limit=memory.limit_in_bytes swap=memory.memsw.limit_in_bytes swap_size=$size
else
    fail "the memory controller is not mounted below /sys/fs/cgroup"
fi

mkdir "$group"
# shellcheck disable=SC2317 # The trap calls it.
remove_group() {
    local try
    # Where a signal ends this shell, the command that got it too may take a while to end.
    for try in $(seq 100); do
        if rmdir "$group" 2>/dev/null; then return; fi
        sleep 0.1
    done
    echo "with-memory: $group has processes after $try tries, and stays" >&2
}
trap remove_group EXIT
echo "$size" >"$group/$limit" || fail "$size is no size of memory that this system takes"
# Kernels that do not account for swap do not have this file.
if [ -e "$group/$swap" ]; then echo "$swap_size" >"$group/$swap"; fi

# The command joins the group before it begins, so that all of its memory counts.
code=0
bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@" || code=$?
exit "$code"
