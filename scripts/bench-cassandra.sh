#!/bin/bash
# Measures aiodb beside Cassandra's own memtables, and beside one that does nothing, on one node that it makes and destroys.
#
#   scripts/bench-cassandra.sh [--rows=N] [--seconds=N] [--rounds=N] [--in-flight=N] [--memtables=A,B] [--out=FILE] ...
#
# Bench.java says what the arguments are. Everything else on the machine should be idle. NODE_OPTIONS are those of the
# node's virtual machine, by default a heap of 4 GiB and G1; SETTINGS are further lines of its cassandra.yaml, as in cluster.sh.
# To give the node less memory than it has data, run all of it in a cgroup with a limit, as with `systemd-run -p MemoryMax=`.
# Needs the jars of `make java`.
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
bench=$repository/java/cassandra-bench
libraries=$repository/build/cassandra-bench
export CLUSTER=$repository/build/bench-cluster
# Addresses of its own, beside clusters of tests.
export NETWORK=89

for jar in "$bench"/target/cassandra-bench-0.1.0.jar "$repository"/java/cassandra/target/aiodb-cassandra-0.1.0.jar; do
    [ -e "$jar" ] || {
        echo "bench-cassandra: $jar is missing: run \`make java\` first" >&2
        exit 1
    }
done
if [ ! -e "$libraries/complete" ]; then
    mvn --batch-mode --quiet -Dstyle.color=never --file "$bench/pom.xml" dependency:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory="$libraries"
    touch "$libraries/complete"
fi

export CLASSES=$bench/target/cassandra-bench-0.1.0.jar
export MEMTABLES="    \"null\":
      class_name: io.aiodb.cassandra.bench.NullMemtable"
export JVM_OPTIONS=${NODE_OPTIONS:--Xms4g -Xmx4g -XX:-UseSerialGC -XX:+UseG1GC}

"$repository/scripts/cluster.sh" destroy
trap '"$repository/scripts/cluster.sh" destroy' EXIT
"$repository/scripts/cluster.sh" create 1
java -cp "$bench/target/cassandra-bench-0.1.0.jar:$libraries/*" io.aiodb.cassandra.bench.Bench \
    --host=127.0.$NETWORK.1 --jmx=$((7300 + 250 * NETWORK + 1)) "$@"
