#!/bin/bash
# Makes a MariaDB with fresh data, for a store of YCSB, and becomes it: as scripts/cluster.sh makes that of a node, so what it is
# told and how it is kept as durable as is asked for stand in scripts/cluster-servers.sh.
#
#   DURABILITY=sync|interval|none ACCESS=jdbc|direct|handler|procedure harness/keep-mysql.sh DIRECTORY PORT DIRECT_PORT
#
# It listens on 127.0.0.1: at PORT, and with ACCESS=direct HandlerSocket at DIRECT_PORT. Its user `aiodb` has the password in
# DIRECTORY/node1/mysql/password. SERVER_MEMORY_MB is what it keeps of the rows in memory.
set -euo pipefail

if [ $# -ne 3 ]; then
    echo "usage: $0 DIRECTORY PORT DIRECT_PORT" >&2
    exit 2
fi
cluster=$1 port=$2 direct_port=$3
# Of the first node's address; what starts and ends nodes' servers is not called.
export network=127.0.0 START_SECONDS=60 STOP_SECONDS=60
# Reads, writes and views have pools of their own.
CONNECTIONS_MAXIMUM=1000

fail() {
    # Whoever called this removes the directory.
    tail -n 20 "$cluster/node1/mysql/output.log" >&2 2> /dev/null || true
    echo "mysql: $1" >&2
    exit 1
}

listens() {
    (exec 3<>"/dev/tcp/$network.$1/$2") 2> /dev/null
}

# shellcheck source=scripts/cluster-servers.sh
source "$(dirname "$0")/../scripts/cluster-servers.sh"

directory=$cluster/node1/mysql
make_data 1 mysql
echo "$port" > "$directory/port"
echo "$direct_port" > "$directory/direct_port"
make_server 1 mysql
server_command 1 mysql
cd "$directory/data"
exec "${command[@]}" --max-connections="$CONNECTIONS_MAXIMUM" >&2
