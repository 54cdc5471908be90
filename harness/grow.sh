#!/bin/bash
# Lets nodes join a running cluster, one at a time at fixed seconds, while a client asks it all the time.
#
#   harness/grow.sh NODES SECONDS COMMAND...
#
# One node is there. COMMAND is the client; it ends by itself. Every SECONDS after it has begun a further node joins, until
# there are NODES, or later where the one before has not joined yet. What happens is said on standard error, in lines that
# begin with `grow: `. CLUSTER, ENTER and the others are those of keep-cluster.sh.
set -euo pipefail

if [ $# -lt 3 ] || [ -z "${CLUSTER:-}" ]; then
    echo "usage: CLUSTER=DIRECTORY $0 NODES SECONDS COMMAND..." >&2
    exit 2
fi
nodes=$1 seconds=$2
shift 2
# shellcheck source=harness/within.sh
source "$(dirname "$0")/within.sh"

"$@" &
client=$!
began=$SECONDS
for node in $(seq 2 "$nodes"); do
    wait_s=$((began + (node - 1) * seconds - SECONDS))
    if [ "$wait_s" -gt 0 ]; then sleep "$wait_s"; fi
    echo "grow: node $node joins" >&2
    within "$node" add
    # What it was sent stands in its log.
    sed --quiet "s/.*Prepare completed[.] Receiving \([0-9]* files([^)]*)\).*/grow: node $node receives \1/p" \
        "$CLUSTER/node$node/system.log" >&2
    echo "grow: node $node has joined" >&2
done
wait "$client"
