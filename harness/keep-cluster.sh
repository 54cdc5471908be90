#!/bin/bash
# Makes a cluster of real Cassandra nodes with scripts/cluster.sh and stays until one of them ends, so that the harness
# can treat it as one server. CLUSTER, NETWORK, SETTINGS and the others are those of scripts/cluster.sh.
#
#   harness/keep-cluster.sh READY NODES [MEMTABLE...]
#
# READY is a file that is made once all nodes answer. MEMTABLE is what the nodes' memtable `aiodb` is, see `map` there: one for all of
# them, or one for each. PARAMETERS are of those that are `aiodb`.
# ENTER lists files of control groups, with NODE for a node's number, that a node's process is put into before it starts.
set -euo pipefail

if [ $# -lt 2 ] || [ -z "${CLUSTER:-}" ]; then
    echo "usage: CLUSTER=DIRECTORY $0 READY NODES [MEMTABLE...]" >&2
    exit 2
fi
ready=$1 nodes=$2
shift 2
if [ $# -gt 1 ] && [ $# -ne "$nodes" ]; then
    echo "$0: $# memtables are neither one for all nodes nor one for each of $nodes" >&2
    exit 2
fi
memtables=("$@")
# At those that another node sees alive, with a second and the start of a virtual machine between.
LOOKS=60
# shellcheck source=harness/within.sh
source "$(dirname "$0")/within.sh"

# How many nodes one sees alive.
seen_by() {
    "$cluster_sh" nodetool "$1" status | grep --count '^UN ' || true
}

restarted=
within 1 create 1
for node in $(seq 2 "$nodes"); do within "$node" add; done
for node in $(seq "$nodes"); do
    memtable=${memtables[node - 1]:-${memtables[0]:-aiodb}}
    if [ "$memtable" = aiodb ]; then continue; fi
    "$cluster_sh" stop "$node" >&2
    PARAMETERS='' "$cluster_sh" map "$node" "$memtable" >&2
    within "$node" start "$node"
    restarted=1
done
# A node that does not see another one alive tells it of a new table a minute later.
if [ -n "$restarted" ] && [ "$nodes" -gt 1 ]; then
    for node in $(seq "$nodes"); do
        for ((look = 0; $(seen_by "$node") < nodes; look++)); do
            if [ "$look" -ge "$LOOKS" ]; then
                echo "node $node does not see all $nodes nodes alive" >&2
                exit 1
            fi
            sleep 1
        done
    done
fi
touch "$ready"

runs() {
    grep --quiet --null-data --fixed-strings -e "-Daiodb.node=$CLUSTER/node$1" "/proc/$(cat "$CLUSTER/node$1/pid")/cmdline" 2> /dev/null
}

while true; do
    for node in $(seq "$nodes"); do
        if ! runs "$node"; then
            tail -n 20 "$CLUSTER/node$node/system.log" >&2 || true
            echo "node $node has ended" >&2
            exit 1
        fi
    done
    sleep 1
done
