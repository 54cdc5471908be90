#!/bin/bash
# A real Apache Cassandra cluster on this machine: a process for each node, with the addresses 127.0.0.1, 127.0.0.2, ...
#
#   scripts/cluster.sh create N          make and start N nodes
#   scripts/cluster.sh status            the ring, and which processes run
#   scripts/cluster.sh cql STATEMENT...  run CQL on the first node that runs
#   scripts/cluster.sh nodetool NODE ARGUMENT...
#   scripts/cluster.sh replicas KEYSPACE once a second what each node has done as a replica, until it is stopped
#   scripts/cluster.sh stop|kill|start NODE          with its database server, if it has one
#   scripts/cluster.sh stop-server|kill-server|start-server NODE    the server alone
#   scripts/cluster.sh add               one more node, which takes its share of the data
#   scripts/cluster.sh replace NODE      a new node in the place of one that is dead
#   scripts/cluster.sh remove NODE       a node hands its data to the others and is deleted
#   scripts/cluster.sh map NODE MEMTABLE what its memtable `aiodb` is from its next start: aiodb, trie, skiplist, or
#                                        aiodb with another store behind it: rocksdb, lmdb, mysql or redis;
#                                        for the last two the node gets a database server of its own
#   scripts/cluster.sh destroy           end all processes and delete everything
#
# All lies in build/cluster, or where CLUSTER says. A node listens on 127.0.0.NODE: 9042 for CQL, 7000 for the others;
# JMX is on 127.0.0.1, port 7300 + NODE. NETWORK=3 makes that 127.0.3.NODE and 7300 + 3 * 250 + NODE, so that several
# clusters have room on a machine. PLUGIN names a jar whose memtable `aiodb` the nodes get; without it they get the one
# that `make java` has built, if it has. JVM_OPTIONS are further options of the nodes' virtual machines, SETTINGS further lines
# of their cassandra.yaml, in which DIRECTORY stands for the node's own, MEMTABLES further memtable configurations there,
# COMMIT_LOG when their commit log is on the device (periodic, batch), DURABILITY that of their memtable `aiodb` (interval,
# sync), PARAMETERS further ones of it, a line each, and CLASSES is put before their class path. SERVER_MEMORY_MB is what MySQL
# may cache (64), ACCESS how `map NODE mysql` has single rows read (jdbc, direct, handler, procedure). Needs a JDK 17 and Maven,
# which brings Cassandra.
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
cluster=${CLUSTER:-$repository/build/cluster}
jars=$repository/build/cassandra
stores=$repository/build/cassandra-stores
resources=$repository/java/cluster
plugin=${PLUGIN-$repository/java/cassandra/target/aiodb-cassandra-0.1.0.jar}
number=${NETWORK:-0}
network=127.0.$number

# A node takes about 550 MB, 690 MB under load.
NODE_MEMORY_MB=700
# In less time a node that joins may not see the others' data and join without.
RING_DELAY_MS=8000
# What a start would measure for seconds.
ROW_OVERHEAD_BYTES=180
START_SECONDS=${START_SECONDS:-300}
STOP_SECONDS=60
NODES_MAXIMUM=250
NETWORKS_MAXIMUM=100

fail() {
    echo "cluster: $1" >&2
    exit 1
}

# shellcheck source=scripts/cluster-servers.sh
. "$repository/scripts/cluster-servers.sh"

if [[ ! $number =~ ^[0-9]{1,3}$ ]] || [ "$number" -gt $NETWORKS_MAXIMUM ]; then
    fail "NETWORK is a number from 0 to $NETWORKS_MAXIMUM, not $number"
fi
case ${COMMIT_LOG:-periodic} in
    periodic | batch) ;;
    *) fail "COMMIT_LOG is periodic or batch, not $COMMIT_LOG" ;;
esac
JMX_BASE=$((7300 + number * NODES_MAXIMUM))

java=java
for home in /usr/lib/jvm/java-17-openjdk-*; do
    if [ -x "$home/bin/java" ]; then java=$home/bin/java; fi
done

# What Cassandra wants of a JDK 17.
jvm_options=(-Xms160m -Xmx512m -XX:+UseSerialGC -Djdk.attach.allowAttachSelf=true -Dio.netty.tryReflectionSetAccessible=true)
for package in java.base/jdk.internal.misc java.base/java.lang.ref java.management.rmi/com.sun.jmx.remote.internal.rmi \
    java.rmi/sun.rmi.registry java.rmi/sun.rmi.server java.sql/java.sql jdk.unsupported/sun.misc \
    jdk.compiler/com.sun.tools.javac.file jdk.attach/sun.tools.attach; do
    jvm_options+=("--add-exports=$package=ALL-UNNAMED")
done
for package in java.base/java.lang.module java.base/jdk.internal.loader java.base/jdk.internal.ref \
    java.base/jdk.internal.reflect java.base/jdk.internal.math java.base/jdk.internal.module \
    java.base/jdk.internal.util.jar java.base/sun.nio.ch java.base/java.io java.base/java.lang.reflect \
    java.base/java.lang java.base/java.util java.base/java.nio jdk.management/com.sun.management.internal \
    jdk.compiler/com.sun.tools.javac; do
    jvm_options+=("--add-opens=$package=ALL-UNNAMED")
done

fetch() {
    if [ -e "$jars/complete" ]; then return; fi
    "$repository/scripts/install-packages.sh" openjdk-17-jdk-headless maven
    rm -rf "$jars"
    mvn --batch-mode --quiet -Dstyle.color=never --file "$resources/pom.xml" dependency:copy-dependencies -DoutputDirectory="$jars" ||
        fail "cannot fetch Cassandra: see above"
    touch "$jars/complete"
}

# What goes into the lib/ of a node with another store, beside the plug-in.
store_jars() {
    case $1 in
        rocksdb) echo "$repository/java/store-rocksdb/target/store-rocksdb-0.1.0.jar:$stores/rocksdb/*" ;;
        lmdb) echo "$repository/java/store-lmdb/target/store-lmdb-0.1.0.jar:$stores/lmdb/*" ;;
        # These have their drivers in them.
        mysql | redis) echo "$repository/java/store-$1/target/store-$1-0.1.0-cassandra.jar" ;;
    esac
}

fetch_store() {
    local store=$1 artifact
    [ -e "$(store_jars "$store" | cut -d : -f 1)" ] ||
        fail "the jar of java/store-$store is missing: run \`make java\` first"
    # LMDB's other dependencies are among Cassandra's.
    case $store in
        rocksdb) artifact=org.rocksdb:rocksdbjni:$(version rocksdb) ;;
        lmdb) artifact=org.lmdbjava:lmdbjava:$(version lmdbjava) ;;
        mysql | redis)
            "$repository/scripts/install-packages.sh" "${store/mysql/mariadb}-server"
            return
            ;;
    esac
    if [ -e "$stores/$store/complete" ]; then return; fi
    mvn --batch-mode --quiet -Dstyle.color=never --file "$resources/pom.xml" dependency:copy -Dartifact="$artifact" -DoutputDirectory="$stores/$store" ||
        fail "cannot fetch $artifact: see above"
    touch "$stores/$store/complete"
}

version() {
    sed --quiet "s/.*<$1.version>\(.*\)<.*/\1/p" "$repository/java/pom.xml"
}

nodes() {
    local node
    for node in "$cluster"/node*/; do
        if [ -d "$node" ]; then basename "$node" | sed 's/^node//'; fi
    done | sort -n
}

known() {
    [[ ${1:-} =~ ^[0-9]+$ ]] || fail "name a node by its number: $(nodes | xargs)"
    [ -d "$cluster/node$1" ] || fail "there is no node $1: there are $(nodes | xargs)"
}

# The process of a node, if it runs.
process() {
    local pid
    pid=$(cat "$cluster/node$1/pid" 2>/dev/null) || return 1
    # Another process may have the number by now.
    grep --quiet --null-data --fixed-strings --line-regexp -e "-Daiodb.node=$cluster/node$1" "/proc/$pid/cmdline" 2>/dev/null || return 1
    echo "$pid"
}

running() {
    local node
    for node in $(nodes); do
        if process "$node" >/dev/null; then echo "$node"; fi
    done
}

listens() {
    (exec 3<>"/dev/tcp/$network.$1/$2") 2>/dev/null
}

check_room() {
    local count=$1 first=$2 available node port
    # The length is looked at first, since a number of many digits would overflow.
    if [ ${#count} -gt 3 ] || [ $((first + count - 1)) -gt $NODES_MAXIMUM ]; then
        fail "there are addresses for $NODES_MAXIMUM nodes, $network.1 to $network.$NODES_MAXIMUM"
    fi
    available=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
    [ "$available" -ge $((count * NODE_MEMORY_MB)) ] ||
        fail "$count nodes need $((count * NODE_MEMORY_MB)) MB of memory, $available are available: start fewer, or free some"
    for node in $(seq "$first" $((first + count - 1))); do
        for port in 9042 7000; do
            if listens "$node" "$port"; then fail "$network.$node:$port is in use: end what listens there"; fi
        done
    done
}

mapped() {
    cat "$cluster/node$1/memtable" 2>/dev/null || echo aiodb
}

# What a node's memtable `aiodb` is.
plugin_configuration() {
    echo "    aiodb:"
    local memtable further=${PARAMETERS:-}
    memtable=$(mapped "$1")
    case $memtable in
        trie | skiplist)
            echo "      inherits: $memtable"
            return
            ;;
    esac
    further=${further//$'\n'/$'\n        '}
    cat <<YAML
      class_name: io.aiodb.cassandra.AiodbMemtable
      parameters:
        durability: ${DURABILITY:-interval}
        store: $memtable
$(server_parameters "$1" "$memtable")
${further:+        $further}
YAML
}

commit_log() {
    case ${COMMIT_LOG:-periodic} in
        periodic) printf 'commitlog_sync: periodic\ncommitlog_sync_period: 10000ms\n' ;;
        batch) echo "commitlog_sync: batch" ;;
    esac
}

map() {
    case ${2:-} in
        aiodb) rm -f "$cluster/node$1/memtable" ;;
        trie | skiplist) echo "$2" >"$cluster/node$1/memtable" ;;
        rocksdb | lmdb)
            fetch_store "$2"
            echo "$2" >"$cluster/node$1/memtable"
            ;;
        mysql | redis)
            fetch_store "$2"
            make_server "$1" "$2"
            echo "$2" >"$cluster/node$1/memtable"
            ;;
        *) fail "name a memtable: aiodb, trie, skiplist, rocksdb, lmdb, mysql or redis" ;;
    esac
    configure "$1"
}

configure() {
    local node=$1 directory=$cluster/node$1 settings=${SETTINGS:-}
    mkdir -p "$directory"
    cat >"$directory/cassandra.yaml" <<YAML
cluster_name: aiodb
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
num_tokens: 16
storage_compatibility_mode: NONE
listen_address: $network.$node
rpc_address: $network.$node
endpoint_snitch: SimpleSnitch
$(commit_log)
memtable:
  configurations:
    skiplist:
      class_name: SkipListMemtable
    trie:
      class_name: TrieMemtable
    default:
      inherits: skiplist
$(if [ -e "$plugin" ]; then plugin_configuration "$node"; fi)
${MEMTABLES:-}
# A node is to say itself what its memtables do not support.
materialized_views_enabled: true
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "$network.$(cat "$cluster/seed")"
${settings//DIRECTORY/$directory}
YAML
}

# Starts a node and waits until it answers CQL. Further arguments are options of its virtual machine.
start() {
    local node=$1 directory=$cluster/node$1 pid waited store
    shift
    if process "$node" >/dev/null; then fail "node $node runs already"; fi
    start_servers "$node"
    local more_options
    read -ra more_options <<<"${JVM_OPTIONS:-}"
    local plugin_options=() class_path="$jars/*"
    if [ -e "$plugin" ]; then
        # Of all stores that any node has, since what a node was mapped to before may still hold rows.
        for store in rocksdb lmdb mysql redis; do class_path="$(store_jars "$store"):$class_path"; done
        class_path="$plugin:$class_path"
        plugin_options=(-Dcassandra.schema.update_handler_factory.class=io.aiodb.cassandra.AiodbSchemaHandlerFactory)
    fi
    class_path=${CLASSES:+$CLASSES:}$class_path
    # Without descriptors of this shell, which would live as long as the node.
    setsid "$java" "${jvm_options[@]}" "${more_options[@]}" "${plugin_options[@]}" -cp "$class_path" \
        -Daiodb.node="$directory" -XX:ErrorFile="$directory/crash.log" -Dcassandra.config="file://$directory/cassandra.yaml" \
        -Dcassandra.storagedir="$directory" -Dlogback.configurationFile="$resources/logback.xml" \
        -Dcassandra-foreground=yes -Dcassandra.jmx.local.port=$((JMX_BASE + node)) \
        -Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra.ring_delay_ms=$RING_DELAY_MS \
        -Dcassandra.memtable.row_overhead_size=$ROW_OVERHEAD_BYTES "$@" \
        org.apache.cassandra.service.CassandraDaemon </dev/null >"$directory/output.log" 2>&1 3>&- 4>&- 5>&- 9>&- &
    pid=$!
    echo "$pid" >"$directory/pid"
    for ((waited = 0; waited < START_SECONDS; waited++)); do
        if listens "$node" 9042; then
            echo "node $node answers at $network.$node:9042"
            return
        fi
        kill -0 "$pid" 2>/dev/null || break
        sleep 1
    done
    end "$node" KILL
    # The reason stands above its stack trace.
    grep --no-messages --extended-regexp '^(Exception|Caused by|[a-z.]+\.[A-Z][A-Za-z]*(Exception|Error))' "$directory/output.log" >&2 || true
    tail -n 5 "$directory/output.log" "$directory/system.log" >&2 || true
    fail "node $node did not start within $START_SECONDS s: see $directory/system.log"
}

# Ends a node and then its database servers with a signal.
end() {
    end_process "$1" "$2"
    end_servers "$1" "$2"
}

# Ends a node's process with a signal, and waits for its end.
end_process() {
    local node=$1 signal=$2 pid waited
    pid=$(process "$node") || return 0
    kill -s "$signal" "$pid"
    for ((waited = 0; waited < STOP_SECONDS * 10; waited++)); do
        # The kernel closes the connections of a process that was killed after it has taken its name away.
        process "$node" >/dev/null || listens "$node" 9042 || listens "$node" 7000 || return 0
        sleep 0.1
    done
    fail "node $node (process $pid) did not end within $STOP_SECONDS s of SIG$signal"
}

nodetool() {
    local node=$1
    shift
    "$java" "${jvm_options[@]}" -cp "$jars/*" -Dlogback.configurationFile="$resources/logback.xml" \
        -Daiodb.node="$cluster" org.apache.cassandra.tools.NodeTool -p $((JMX_BASE + node)) "$@"
}

# Counts of reads and writes that reached each node, and how long they took there.
replicas() {
    local node ports=()
    for node in $(nodes); do ports+=($((JMX_BASE + node))); done
    exec "$java" -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Daiodb.watch="$cluster" "$resources/Replicas.java" "$1" "${ports[@]}"
}

first_running() {
    running | sed --quiet 1p | grep . || fail "no node runs"
}

# Makes a node with the next number and starts it.
join() {
    local node
    node=$(($(nodes | tail -n 1) + 1))
    check_room 1 "$node"
    configure "$node"
    start "$node" "$@"
}

create() {
    local count=${1:-1} node
    [[ $count =~ ^[1-9][0-9]*$ ]] || fail "give a number of nodes, not $count"
    [ -z "$(nodes)" ] || fail "there is a cluster in $cluster already: destroy it first"
    check_room "$count" 1
    fetch
    mkdir -p "$cluster"
    echo 1 >"$cluster/seed"
    for node in $(seq "$count"); do
        configure "$node"
        # The first one has nobody to wait for.
        if [ "$node" = 1 ]; then start 1 -Dcassandra.ring_delay_ms=100; else start "$node"; fi
    done
}

cql() {
    local node
    node=$(first_running)
    "$java" -cp "$jars/*" -Dlogback.configurationFile="$resources/logback.xml" -Daiodb.node="$cluster" \
        "$resources/Cql.java" "$network.$node" "$@"
}

# Refuses to go on where the users' keyspaces would have fewer nodes than replicas.
check_replicas() {
    local left wanting
    left=$(($(running | wc -l) - 1))
    wanting=$(cql "SELECT keyspace_name, replication FROM system_schema.keyspaces" | awk -v left="$left" '
        !/^Row\[system/ && match($0, /replication_factor=[0-9]+/) {
            if (substr($0, RSTART + 19, RLENGTH - 19) + 0 > left) print
        }')
    [ -z "$wanting" ] || fail "$left nodes would be left, and these keyspaces want more: $wanting"
}

# New nodes ask a node that is there.
lead_by() {
    running | grep --invert-match --line-regexp "$1" | sed --quiet 1p >"$cluster/seed.new"
    [ -s "$cluster/seed.new" ] || fail "no other node runs"
    mv "$cluster/seed.new" "$cluster/seed"
    local node
    for node in $(nodes); do configure "$node"; done
}

command=${1:-}
if [ $# -gt 0 ]; then shift; fi
case $command in
    create) create "$@" ;;
    add)
        lead_by none
        join
        ;;
    start)
        known "${1:-}"
        start "$1"
        ;;
    stop)
        known "${1:-}"
        end "$1" TERM
        ;;
    kill)
        known "${1:-}"
        end "$1" KILL
        ;;
    start-server)
        known "${1:-}"
        start_servers "$1"
        ;;
    stop-server)
        known "${1:-}"
        end_servers "$1" TERM
        ;;
    kill-server)
        known "${1:-}"
        end_servers "$1" KILL
        ;;
    replace)
        known "${1:-}"
        if process "$1" >/dev/null; then fail "node $1 runs: kill it first, or remove it"; fi
        lead_by "$1"
        join "-Dcassandra.replace_address_first_boot=$network.$1"
        end_servers "$1" KILL
        rm -rf "$cluster/node$1"
        ;;
    remove)
        known "${1:-}"
        process "$1" >/dev/null || fail "node $1 does not run, so it cannot hand over its data: start or replace it"
        check_replicas
        lead_by "$1"
        # Cassandra's own keyspaces want more replicas than a small cluster has, and would refuse.
        nodetool "$1" decommission --force
        end "$1" TERM
        rm -rf "$cluster/node$1"
        ;;
    map)
        known "${1:-}"
        map "$@"
        ;;
    status)
        for node in $(nodes); do
            echo "node $node at $network.$node: $(process "$node" | sed 's/^/process /' | grep . || echo "does not run")"
        done
        node=$(first_running)
        nodetool "$node" status
        ;;
    cql)
        [ $# -gt 0 ] || fail "give a statement"
        cql "$@"
        ;;
    nodetool)
        known "${1:-}"
        nodetool "$@"
        ;;
    replicas)
        [ $# -eq 1 ] || fail "name a keyspace"
        replicas "$1"
        ;;
    destroy)
        for node in $(nodes); do end "$node" KILL; done
        rm -rf "$cluster"
        ;;
    *)
        sed --quiet '2,/^set/{/^set/d; s/^# \{0,1\}//; p}' "$0" >&2
        exit 2
        ;;
esac
