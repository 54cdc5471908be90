# shellcheck shell=bash
# What the benches of Cassandra share: their cluster, its nodes, and the client that loads and asks. They source it.
#
# NODE_OPTIONS are those of the nodes' virtual machines, by default a heap of 2 GiB and G1. SETTINGS are further lines of their
# cassandra.yaml, as in cluster.sh, by default SSTables of the newer format; PARAMETERS further ones of their memtable `aiodb`.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bench=$repository/java/cassandra-bench
bench_jar=$bench/target/cassandra-bench-0.1.0.jar
libraries=$repository/build/cassandra-bench

fail() {
    echo "$(basename "$0" .sh): $1" >&2
    exit 1
}

for jar in "$bench_jar" "$repository"/java/cassandra/target/aiodb-cassandra-0.1.0.jar; do
    [ -e "$jar" ] || fail "$jar is missing: run \`make java\` first"
done
if [ ! -e "$libraries/complete" ]; then
    mvn --batch-mode --quiet -Dstyle.color=never --file "$bench/pom.xml" dependency:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory="$libraries"
    touch "$libraries/complete"
fi

export CLUSTER=$repository/build/bench-cluster
# Addresses of its own, beside clusters of tests.
export NETWORK=89
export CLASSES=$bench_jar
export MEMTABLES="    \"null\":
      class_name: io.aiodb.cassandra.bench.NullMemtable"
export JVM_OPTIONS="${NODE_OPTIONS:--Xms2g -Xmx2g -XX:-UseSerialGC -XX:+UseG1GC}"
export SETTINGS=${SETTINGS:-"sstable: {selected_format: bti}"}

cluster() {
    "$repository/scripts/cluster.sh" "$@"
}

# Loads and asks the first node; Settings.java says what the arguments are.
client() {
    java -cp "$bench_jar:$libraries/*" io.aiodb.cassandra.bench.Bench \
        --host=127.0.$NETWORK.1 --jmx=$((7300 + 250 * NETWORK + 1)) "$@"
}
