#!/bin/bash
# Tests scripts/cluster.sh with real nodes: nodes are made, killed, started, added, replaced and removed, and no row is
# lost. Takes some minutes, and memory for three nodes.
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
export CLUSTER=$repository/build/test-cluster
# Addresses of its own, beside a cluster of `make cluster`.
export NETWORK=90
ROWS=200

cluster() {
    "$repository/scripts/cluster.sh" "$@"
}

fail() {
    echo "test-cluster: $1" >&2
    exit 1
}

clean_up() {
    local code=$?
    # What nodes said is worth keeping only where something went wrong.
    if [ "$code" -ne 0 ]; then tail -n 20 "$CLUSTER"/node*/system.log >&2 || true; fi
    cluster destroy
}

# The command must fail, and say why.
refuses() {
    local message=$1 said
    shift
    if said=$(cluster "$@" 2>&1); then fail "$* succeeded, where it should say \"$message\""; fi
    [[ $said == *"$message"* ]] || fail "$* said \"$said\" where it should say \"$message\""
}

check_members() {
    local wanted=$1 found
    found=$(cluster status | grep --count '^UN ' || true)
    [ "$found" = "$wanted" ] || fail "$found members are up where $wanted should be, after: $2"
    echo "test-cluster: $wanted members after: $2"
}

check_rows() {
    local found
    found=$(cluster cql "SELECT count(*) FROM test.rows")
    [ "$found" = "Row[$ROWS]" ] || fail "found $found, not $ROWS rows, after: $1"
}

cluster destroy
trap clean_up EXIT

refuses "give a number of nodes" create none
refuses "there are addresses for 250 nodes" create 100000
refuses "250 nodes need 175000 MB of memory" create 250
refuses "there is no node 1" start 1
NETWORK=101 refuses "NETWORK is a number from 0 to 100" status

cluster create 2
check_members 2 "create 2"
refuses "there is a cluster in" create 1
CLUSTER=$CLUSTER-2 refuses "127.0.90.1:9042 is in use" create 1
statements=(
    "CREATE KEYSPACE test WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}"
    "CREATE TABLE test.rows (id int PRIMARY KEY, value text)"
)
for id in $(seq $ROWS); do
    statements+=("INSERT INTO test.rows (id, value) VALUES ($id, 'value $id')")
done
cluster cql "${statements[@]}"
check_rows "inserts"

cluster kill 2
cluster start 2
check_members 2 "kill and start"
check_rows "kill and start"

cluster add
check_members 3 "add"
check_rows "add"

cluster kill 2
cluster replace 2
check_members 3 "replace"
check_rows "replace"

cluster remove 1
check_members 2 "remove"
check_rows "remove"
refuses "1 nodes would be left" remove 3
check_members 2 "a refused remove"

cluster destroy
[ ! -e "$CLUSTER" ] || fail "something was left in $CLUSTER"
left=$(grep --files-with-matches --null-data -e "^-Daiodb.node=$CLUSTER/" /proc/[0-9]*/cmdline 2>/dev/null || true)
[ -z "$left" ] || fail "these processes were left: $left"
trap - EXIT
echo "test result: ok. 1 passed; 0 failed; the cluster was made, changed and destroyed"
