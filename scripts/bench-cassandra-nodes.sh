#!/bin/bash
# Measures what moves whole tables between nodes of Cassandra: a node that joins and takes its share, and a repair of replicas
# that agree, with aiodb and with Cassandra's own memtables.
#
#   scripts/bench-cassandra-nodes.sh [OUT]
#
# Writes a line of JSON for each round to OUT. LINES names what is compared, as Line.java has it; JOIN_ROWS and REPAIR_ROWS are
# the rows of 1 KB of each table, ROUNDS how often each is done. Nothing throttles streams and compactions. Everything else on
# the machine should be idle. bench-cassandra-setup.sh says how the nodes are set up. Needs the jars of `make java`.
set -euo pipefail

# shellcheck source=scripts/bench-cassandra-setup.sh
. "$(dirname "$0")/bench-cassandra-setup.sh"
SETTINGS="$SETTINGS
stream_throughput_outbound: 0MiB/s
entire_sstable_stream_throughput_outbound: 0MiB/s
compaction_throughput: 0MiB/s"
# A node that joins answers when it has its share.
export START_SECONDS=3600

out=${1:-/dev/null}
read -ra lines <<<"${LINES:-aiodb default tuned}"
JOIN_ROWS=${JOIN_ROWS:-4000000}
REPAIR_ROWS=${REPAIR_ROWS:-1000000}
ROUNDS=${ROUNDS:-3}
ROW_BYTES=1024

# Makes the tables of some lines, with so many copies and rows, on the nodes that there are.
load() {
    local replicas=$1 rows=$2 names=$3 node
    client --rounds=0 --workloads=get --lines="$names" --rows="$rows" --value-bytes=$ROW_BYTES --replicas="$replicas" >/dev/null
    for node in $(seq "$replicas"); do cluster nodetool "$node" flush bench; done
    await_idle
}

# Hundredths of seconds that all nodes have had of the processors.
processor_time() {
    local pid
    for pid in "$CLUSTER"/node*/pid; do cat "/proc/$(cat "$pid")/stat"; done | awk '{ sum += $14 + $15 } END { print sum }'
}

# Waits until all nodes do nothing for two seconds, in which a working one would have 200.
await_idle() {
    local before now
    now=$(processor_time)
    while :; do
        before=$now
        sleep 2
        now=$(processor_time)
        if [ $((now - before)) -lt 20 ]; then return; fi
    done
}

# Writes down one round.
note() {
    printf '{"operation":"%s","line":"%s","round":%d,"seconds":%.1f,"megabytes":%.0f,"processor_seconds":%.1f}\n' "$@" | tee -a "$out"
}

# The moment of a node's last log line with a text, in seconds of the day.
moment() {
    grep --fixed-strings "$2" "$CLUSTER/node$1/system.log" | tail -n 1 | awk '{ split($2, t, ":"); print t[1] * 3600 + t[2] * 60 + t[3] }'
}

# Seconds between two moments, over midnight too.
between() {
    awk -v from="$1" -v to="$2" 'BEGIN { print to - from + (to < from ? 86400 : 0) }'
}

# A second node joins a first one that has a table, is taken away again, and so on.
join_rounds() {
    local line=$1 round before share id
    cluster create 1
    load 1 "$JOIN_ROWS" "$line"
    for round in $(seq "$ROUNDS"); do
        before=$(processor_time)
        cluster add
        await_idle
        share=$(cluster nodetool 1 status bench | awk -v node="127.0.$NETWORK.2" '$2 == node { print $6 / 100; exit }')
        note join "$line" "$round" \
            "$(between "$(moment 2 'JOINING: Starting to bootstrap')" "$(moment 2 'All sessions completed')")" \
            "$(awk -v share="$share" -v rows="$JOIN_ROWS" -v bytes=$ROW_BYTES 'BEGIN { print share * rows * bytes / 1e6 }')" \
            "$(awk -v before="$before" -v now="$(processor_time)" 'BEGIN { print (now - before) / 100 }')"
        id=$(cluster nodetool 1 status | awk -v node="127.0.$NETWORK.2" '$2 == node { print $7 }')
        cluster kill 2
        rm -rf "$CLUSTER/node2"
        until cluster nodetool 1 status | grep --quiet '^DN'; do sleep 1; done
        # It has all rows still.
        cluster nodetool 1 removenode "$id"
    done
    cluster destroy
}

# Two nodes with the same rows compare them, table by table in turn.
repair_rounds() {
    local line round began ended before
    cluster create 2
    load 2 "$REPAIR_ROWS" "$(IFS=, && echo "${lines[*]}")"
    for round in $(seq 0 "$ROUNDS"); do
        for line in "${lines[@]}"; do
            before=$(processor_time)
            began=$EPOCHREALTIME
            cluster nodetool 1 repair --full bench "rows_$line" >"$CLUSTER/repair.log" || fail "the repair failed: see $CLUSTER/repair.log"
            ended=$EPOCHREALTIME
            await_idle
            # The first warms up.
            if [ "$round" = 0 ]; then continue; fi
            note repair "$line" "$round" "$(between "$began" "$ended")" \
                "$(awk -v rows="$REPAIR_ROWS" -v bytes=$ROW_BYTES 'BEGIN { print 2 * rows * bytes / 1e6 }')" \
                "$(awk -v before="$before" -v now="$(processor_time)" 'BEGIN { print (now - before) / 100 }')"
        done
    done
    cluster destroy
}

: >"$out"
cluster destroy
trap 'cluster destroy' EXIT
repair_rounds
for line in "${lines[@]}"; do join_rounds "$line"; done
