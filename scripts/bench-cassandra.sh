#!/bin/bash
# Measures aiodb beside Cassandra's own memtables, and beside one that does nothing, on one node that it makes and destroys.
#
#   scripts/bench-cassandra.sh [--rows=N] [--seconds=N] [--rounds=N] [--lines=A,B] [--workloads=A,B] [--out=FILE] ...
#
# Settings.java says what the arguments are, Line.java and Workload.java what is compared. Everything else on the machine should
# be idle. bench-cassandra-setup.sh says how the node is set up; all of its heap is there from the start, so that what it has
# when idle includes it. LIMITED=1, as root: once all is loaded the node may use what it has then, and a third of the data's
# size, as memory; its reads of files come without more read-ahead than READ_AHEAD_KB. Needs the jars of `make java`.
set -euo pipefail

# shellcheck source=scripts/bench-cassandra-setup.sh
. "$(dirname "$0")/bench-cassandra-setup.sh"
JVM_OPTIONS="$JVM_OPTIONS -XX:+AlwaysPreTouch"
READ_AHEAD_KB=${READ_AHEAD_KB:-16}

# What is undone at the end: a control group, and how far the disk reads ahead, as `file value`.
group=
read_ahead=

clean_up() {
    cluster destroy
    if [ -n "$read_ahead" ]; then echo "${read_ahead#* }" >"${read_ahead% *}"; fi
    # The kernel needs a moment after the last process has gone.
    if [ -n "$group" ]; then rmdir "$group" || { sleep 1 && rmdir "$group"; }; fi
}

make_group() {
    local root=/sys/fs/cgroup/memory
    if [ ! -d "$root" ]; then root=/sys/fs/cgroup; fi
    mkdir "$root/aiodb-bench-$$" || fail "cannot make a control group in $root: only root may limit a node's memory"
    group=$root/aiodb-bench-$$
}

# How far the disk under a directory reads ahead is that disk's, for all of its users.
limit_read_ahead() {
    local disk queue
    disk=$(lsblk --noheadings --output KNAME,PKNAME "$(findmnt --noheadings --output SOURCE --target "$1")" | awk '{ print $NF }')
    queue=/sys/block/$disk/queue/read_ahead_kb
    [ -w "$queue" ] || fail "$queue cannot be written: only root may set how far a disk reads ahead"
    read_ahead="$queue $(cat "$queue")"
    echo "$READ_AHEAD_KB" >"$queue"
    echo "read-ahead of $disk: $READ_AHEAD_KB KB"
}

cluster destroy
trap clean_up EXIT
limit=()
if [ -n "${LIMITED:-}" ]; then
    make_group
    limit_read_ahead "$repository/build"
    limit=("--memory-group=$group")
fi
# The node is born in its group, so that all of its memory is counted there, and none of the bench's.
(
    if [ -n "$group" ]; then echo "$BASHPID" >"$group/cgroup.procs"; fi
    exec "$repository/scripts/cluster.sh" create 1
)
client "${limit[@]}" "$@"
