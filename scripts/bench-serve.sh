#!/bin/bash
# Measures `aiodb serve` beside redis-server with redis-benchmark: the server on one core, the client on another.
#
#   scripts/bench-serve.sh [--rounds=N] [--first-round=N] [--workloads=A,B] [--scale=N] [--dir=DIR] [--out=FILE]
#
# Each round runs each workload on both servers, in rotated order; a line of FILE (default build/bench/server.json) is one
# round of one of them, in the form of the other benches. The same line goes to standard error as the round ends, after one
# that says that the servers are ready. Rounds are counted from --first-round: odd ones begin with aiodb. --scale divides
# the requests, for a try. --dir is where the stores are made, on the disk to be measured (default build). Everything else
# on the machine should be idle. As root, since one workload has a server with less memory than data. Needs `make release`,
# redis-server and redis-benchmark. A campaign repeats this with a report: `make campaign NAME=serve`.
#
#   get set incr                    50 connections, all in memory, durability `interval` and appendfsync everysec
#   get_pipelined set_pipelined     the same, 16 requests at a time
#   set_durable set_durable_pipelined   100 connections, `sync` and appendfsync always
#   get_idle                        300 connections beside 5,000 that are idle
#   get_large_64 get_large_300      values of 1,000 bytes, four times the memory, beside what the device gives
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
aiodb=${AIODB:-$repository/target/release/aiodb}
rounds=5 first_round=1 scale=1 parent=$repository/build out=$repository/build/bench/server.json
workloads=get,set,incr,get_pipelined,set_pipelined,set_durable,set_durable_pipelined,get_idle,get_large_64,get_large_300
HOST=127.0.0.1 OURS_PORT=16401 THEIRS_PORT=16402
# Of the keys that clients ask for, and of values.
KEYS=100000 VALUE_BYTES=100
IDLE=5000
LARGE_KEYS=2000000 LARGE_VALUE_BYTES=1000 LARGE_MEMORY=512M
SERVER_CORE=0 CLIENT_CORE=1

fail() {
    echo "bench-serve: $1" >&2
    exit 1
}

for argument in "$@"; do
    case $argument in
        --rounds=*) rounds=${argument#*=} ;;
        --first-round=*) first_round=${argument#*=} ;;
        --workloads=*) workloads=${argument#*=} ;;
        --scale=*) scale=${argument#*=} ;;
        --dir=*) parent=${argument#*=} ;;
        --out=*) out=${argument#*=} ;;
        *) fail "unknown argument $argument: see the head of $0" ;;
    esac
done
[ -x "$aiodb" ] || fail "$aiodb is missing: make release"
for program in redis-server redis-benchmark redis-cli taskset; do
    command -v "$program" >/dev/null || fail "$program is missing: scripts/install-packages.sh redis-server util-linux"
done
[ "$(nproc)" -ge 2 ] || fail "the client needs a core of its own"

mkdir -p "$parent" "$(dirname "$out")"
directory=$(mktemp -d "$parent/bench-serve.XXXXXX")
round_numbers=$(seq "$first_round" $((first_round + rounds - 1)))
ours='' theirs='' idle=''

stop() {
    local process
    for process in $idle $ours $theirs; do
        kill "$process" 2>/dev/null || true
        # A server that is the child of another shell is waited for by its pid.
        while kill -0 "$process" 2>/dev/null; do sleep 0.1; done
    done
    ours='' theirs='' idle=''
    rm -rf "$directory/ours" "$directory/theirs"
    mkdir -p "$directory/theirs"
}

clean_up() {
    stop
    rm -rf "$directory"
}
trap clean_up EXIT

wait_for() {
    local try
    for try in $(seq 200); do
        if [ "$(redis-cli -h $HOST -p "$1" ping 2>/dev/null)" = PONG ]; then return; fi
        sleep 0.1
    done
    # The logs go with the directory.
    tail -n 5 "$directory"/*.log >&2
    fail "the server at port $1 does not answer after $try tries"
}

# start DURABILITY APPENDFSYNC
start() {
    stop
    taskset -c $SERVER_CORE "$aiodb" serve "$directory/ours" --port $OURS_PORT --durability "$1" >"$directory/ours.log" 2>&1 &
    ours=$!
    taskset -c $SERVER_CORE redis-server --bind $HOST --port $THEIRS_PORT --dir "$directory/theirs" --save '' \
        --appendonly yes --appendfsync "$2" >"$directory/theirs.log" 2>&1 &
    theirs=$!
    wait_for $OURS_PORT
    wait_for $THEIRS_PORT
}

# The processor's time that a process has had, in hundredths of a second.
ticks() {
    awk '{ print $14 + $15 }' "/proc/$1/stat"
}

# resident PID: bytes
resident() {
    awk '/^VmRSS/ { print $2 * 1024 }' "/proc/$1/status"
}

# measure WORKLOAD LINE ROUND PID PORT REQUESTS [ARGUMENT...]: one round, and what redis-benchmark says of it
measure() {
    local workload=$1 line=$2 round=$3 process=$4 port=$5 requests=$(($6 / scale)) before after row
    shift 6
    before=$(ticks "$process")
    row=$(taskset -c $CLIENT_CORE redis-benchmark -h $HOST -p "$port" -n "$requests" --csv "$@" | tail -1 | tr -d '"')
    after=$(ticks "$process")
    # name,rps,avg,min,p50,p95,p99,max; latencies are in milliseconds
    echo "$row" | awk -F, -v workload="$workload" -v line="$line" -v round="$round" -v ticks=$((after - before)) \
        -v requests="$requests" '{
        printf "{\"workload\":\"%s\",\"line\":\"%s\",\"round\":%d,\"per_second\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"cpu_us\":%.2f}\n",
            workload, line, round, $2, 1000 * $5, 1000 * $7, 10000 * ticks / requests
    }' | tee -a "$out" >&2
}

# both WORKLOAD ROUND REQUESTS [ARGUMENT...]: the servers take turns in being first
both() {
    local workload=$1 round=$2 requests=$3
    shift 3
    if [ $((round % 2)) = 1 ]; then
        measure "$workload" aiodb "$round" "$ours" $OURS_PORT "$requests" "$@"
        measure "$workload" redis "$round" "$theirs" $THEIRS_PORT "$requests" "$@"
    else
        measure "$workload" redis "$round" "$theirs" $THEIRS_PORT "$requests" "$@"
        measure "$workload" aiodb "$round" "$ours" $OURS_PORT "$requests" "$@"
    fi
}

# What is measured begins here: what came before was preparation.
ready() {
    echo "bench-serve: the servers are ready" >&2
}

wanted() {
    [[ ",$workloads," == *,$1,* ]]
}

# records KEYS VALUE_BYTES: puts under the keys that redis-benchmark asks for
records() {
    awk -v keys="$1" -v bytes="$2" 'BEGIN {
        value = sprintf("%0*d", bytes, 0)
        for (key = 0; key < keys; key++)
            printf "*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$%d\r\n%s\r\n", key, bytes, value
    }'
}

fill() {
    records "$2" "$3" | redis-cli -h $HOST -p "$1" --pipe >"$directory/fill.log" || fail "cannot fill port $1: $(cat "$directory/fill.log")"
}

in_memory() {
    local round usual=(-c 50 -d "$VALUE_BYTES" -r "$KEYS")
    start interval:1000 everysec
    fill $OURS_PORT $KEYS $VALUE_BYTES
    fill $THEIRS_PORT $KEYS $VALUE_BYTES
    ready
    for round in $round_numbers; do
        if wanted get; then both get "$round" 400000 "${usual[@]}" -t get; fi
        if wanted set; then both set "$round" 400000 "${usual[@]}" -t set; fi
        # Without -r all count up one key.
        if wanted incr; then both incr "$round" 400000 -c 50 -t incr; fi
        if wanted get_pipelined; then both get_pipelined "$round" 2000000 "${usual[@]}" -P 16 -t get; fi
        if wanted set_pipelined; then both set_pipelined "$round" 2000000 "${usual[@]}" -P 16 -t set; fi
    done
}

durable() {
    local round usual=(-c 100 -d "$VALUE_BYTES" -r "$KEYS")
    start sync always
    ready
    for round in $round_numbers; do
        if wanted set_durable; then both set_durable "$round" 150000 "${usual[@]}" -t set; fi
        if wanted set_durable_pipelined; then both set_durable_pipelined "$round" 600000 "${usual[@]}" -P 16 -t set; fi
    done
}

# Connections that say nothing: what they take of memory, and whether others are late for them.
idle() {
    local round before after
    # The server is started with as many.
    ulimit -n $((IDLE + 1000)) || fail "$IDLE connections need as many open files: ulimit -n"
    start interval:1000 everysec
    fill $OURS_PORT $KEYS $VALUE_BYTES
    before=$(resident "$ours")
    redis-benchmark -h $HOST -p $OURS_PORT -c $IDLE -I >/dev/null 2>&1 &
    idle=$!
    while [ "$(redis-cli -h $HOST -p $OURS_PORT info clients | awk -F: '/^connected_clients/ { print $2 + 0 }')" -lt $IDLE ]; do sleep 0.2; done
    after=$(resident "$ours")
    ready
    for round in $round_numbers; do
        measure get_idle aiodb "$round" "$ours" $OURS_PORT 400000 -c 300 -r $KEYS -t get
    done
    echo "{\"workload\":\"idle\",\"line\":\"aiodb\",\"round\":$first_round,\"connection_bytes\":$(((after - before) / IDLE))}" | tee -a "$out" >&2
}

# ceiling DEPTH ROUND: what the device gives the same reads with as many in flight
ceiling() {
    "$aiodb" bench queue-depth --dir "$directory" --pairs $((LARGE_KEYS / scale)) --value-bytes $LARGE_VALUE_BYTES --depths "$1" --threads 1 \
        --backends uring --index hash --max-seconds 10 --json-file "$directory/ceiling.json" >/dev/null
    grep -o '"ceiling_reads_per_s": *[0-9.]*' "$directory/ceiling.json" | head -1 | cut -d: -f2 | awk -v depth="$1" -v round="$2" '{
        printf "{\"workload\":\"get_large_%d\",\"line\":\"device\",\"round\":%d,\"per_second\":%.1f}\n", depth, round, $1
    }' | tee -a "$out" >&2
}

large() {
    local round keys=$((LARGE_KEYS / scale)) depth process
    stop
    taskset -c $SERVER_CORE "$repository/scripts/with-memory.sh" $LARGE_MEMORY "$aiodb" serve "$directory/ours" --port $OURS_PORT \
        --durability none >"$directory/ours.log" 2>&1 &
    wait_for $OURS_PORT
    process=$(redis-cli -h $HOST -p $OURS_PORT info server | awk -F: '/^process_id/ { print $2 + 0 }')
    ours=$process
    fill $OURS_PORT "$keys" $LARGE_VALUE_BYTES
    ready
    for round in $round_numbers; do
        for depth in 64 300; do
            if wanted "get_large_$depth"; then
                measure "get_large_$depth" aiodb "$round" "$process" $OURS_PORT 200000 -c "$depth" -r "$keys" -t get
                ceiling "$depth" "$round"
            fi
        done
    done
}

: >"$out"
if [[ $workloads =~ (^|,)(get|set|incr|get_pipelined|set_pipelined)(,|$) ]]; then in_memory; fi
if [[ $workloads == *durable* ]]; then durable; fi
if wanted get_idle; then idle; fi
if [[ $workloads == *large* ]]; then large; fi
echo "bench-serve: $out"
