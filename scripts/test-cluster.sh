#!/bin/bash
# Tests scripts/cluster.sh with real nodes: nodes are made, killed, started, added, replaced and removed, and no row is
# lost. Takes some minutes, and memory for three nodes.
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
export CLUSTER=$repository/build/test-cluster
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

if cluster create none 2>/dev/null; then fail "a cluster of \"none\" nodes was made"; fi
if cluster create 100000 2>/dev/null; then fail "a cluster was made that no memory suffices for"; fi
if cluster start 1 2>/dev/null; then fail "a node was started that does not exist"; fi

cluster create 2
check_members 2 "create 2"
if cluster create 1 2>/dev/null; then fail "a cluster was made over another one"; fi
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
if cluster remove 3 2>/dev/null; then fail "a node was removed that the replicas need"; fi
check_members 2 "a refused remove"

cluster destroy
[ ! -e "$CLUSTER" ] || fail "something was left in $CLUSTER"
trap - EXIT
echo "test result: ok. 1 passed; 0 failed; the cluster was made, changed and destroyed"
