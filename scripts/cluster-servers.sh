# shellcheck shell=bash
# The database servers of a local cluster's nodes, for scripts/cluster.sh, which sources this: MySQL and Redis, whose stores
# want one. They lie in the directories of the nodes that scripts/cluster.sh knows, and listen on their addresses.

: "${cluster:?}" "${network:?}" "${START_SECONDS:?}" "${STOP_SECONDS:?}"
SERVER_MEMORY_MB=${SERVER_MEMORY_MB:-64}
# Of the longest row of a store in MySQL.
PACKET_MB=128

# A node's database servers lie in its directory: each has its data, its port, a password and its process's number.
servers() {
    local kind
    for kind in mysql redis; do
        if [ -d "$cluster/node$1/$kind" ]; then echo "$kind"; fi
    done
}

server_process() {
    local directory=$cluster/node$1/$2 pid
    pid=$(cat "$directory/pid" 2>/dev/null) || return 1
    # Another process may have the number by now.
    [ "/proc/$pid/cwd" -ef "$directory/data" ] || return 1
    echo "$pid"
}

# A port of a node's address, from one on, where nobody listens.
free_port() {
    local port=$2
    while listens "$1" "$port"; do port=$((port + 1)); done
    echo "$port"
}

# Makes a server of a kind for a node, unless it has one. How single rows of MySQL are read is said anew each time.
make_server() {
    local node=$1 kind=$2 directory=$cluster/node$1/$2
    [ -e "$directory/port" ] || make_data "$node" "$kind"
    if [ "$kind" = mysql ]; then
        echo "${ACCESS:-jdbc}" >"$directory/access"
        [ -e "$directory/direct_port" ] || free_port "$node" 9998 >"$directory/direct_port"
    fi
}

make_data() {
    local node=$1 kind=$2 directory=$cluster/node$1/$2 port
    rm -rf "$directory"
    mkdir -p "$directory/data"
    (
        umask 077
        od --read-bytes=16 --format=x1 --address-radix=n /dev/urandom | tr --delete ' \n' >"$directory/password"
    )
    case $kind in
        mysql)
            port=3306
            mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$directory/data" --skip-test-db >"$directory/output.log" 2>&1 ||
                fail "cannot make the data of MySQL: see $directory/output.log"
            ;;
        redis) port=6379 ;;
    esac
    free_port "$node" "$port" >"$directory/port"
}

# How single rows of a node's MySQL are read.
access() {
    cat "$cluster/node$1/mysql/access" 2>/dev/null || echo jdbc
}

# What a MySQL is told in a file, so that nobody sees the secret in the list of processes.
mysql_options() {
    local address=$network.$1 directory=$cluster/node$1/mysql
    echo "[mysqld]"
    if [ "$(access "$1")" = direct ]; then
        cat <<CNF
plugin_maturity = beta
plugin_load_add = handlersocket
handlersocket_address = $address
handlersocket_port = $(cat "$directory/direct_port")
handlersocket_port_wr = $(free_port "$1" $(($(cat "$directory/direct_port") + 1)))
handlersocket_threads = 2
handlersocket_threads_wr = 1
handlersocket_plain_secret = $(cat "$directory/password")
handlersocket_plain_secret_wr = $(cat "$directory/password")
CNF
    fi
}

# What a server is started with. It is as durable as the memtable asks for.
server_command() {
    local address=$network.$1 kind=$2 directory=$cluster/node$1/$2 port
    port=$(cat "$directory/port")
    case $kind in
        mysql)
            (
                umask 077
                cat >"$directory/users.sql" <<SQL
CREATE USER IF NOT EXISTS aiodb@'%' IDENTIFIED BY '$(cat "$directory/password")';
GRANT ALL ON \`aiodb\\_%\`.* TO aiodb@'%';
SQL
                mysql_options "$1" >"$directory/options.cnf"
            )
            command=(mariadbd --defaults-file="$directory/options.cnf" --user="$(id -un)" --datadir="$directory/data"
                --bind-address="$address" --port="$port" --socket=socket
                --pid-file="$directory/mariadbd.pid" --init-file="$directory/users.sql" --skip-name-resolve
                --innodb-buffer-pool-size="${SERVER_MEMORY_MB}M" --max-allowed-packet="${PACKET_MB}M")
            case ${DURABILITY:-interval} in
                sync) command+=(--innodb-flush-log-at-trx-commit=1) ;;
                none) command+=(--innodb-flush-log-at-trx-commit=0) ;;
                *) command+=(--innodb-flush-log-at-trx-commit=2) ;;
            esac
            ;;
        redis)
            (
                umask 077
                cat >"$directory/redis.conf" <<CONF
bind $address
port $port
dir $directory/data
save ""
appendonly yes
appendfsync $(case ${DURABILITY:-interval} in sync) echo always ;; *) echo everysec ;; esac)
requirepass $(cat "$directory/password")
CONF
            )
            command=(redis-server "$directory/redis.conf")
            ;;
    esac
}

server_answers() {
    local address=$network.$1 kind=$2 directory=$cluster/node$1/$2 port
    port=$(cat "$directory/port")
    case $kind in
        mysql)
            listens "$1" "$port" || return 1
            [ "$(access "$1")" != direct ] || listens "$1" "$(cat "$directory/direct_port")"
            ;;
        redis) REDISCLI_AUTH=$(cat "$directory/password") redis-cli -h "$address" -p "$port" ping 2>/dev/null | grep --quiet PONG ;;
    esac
}

# Starts a node's database servers that do not run, and waits until they answer.
start_servers() {
    local node=$1 kind directory pid waited command
    for kind in $(servers "$node"); do
        if server_process "$node" "$kind" >/dev/null; then continue; fi
        directory=$cluster/node$node/$kind
        server_command "$node" "$kind"
        (cd "$directory/data" && exec setsid "${command[@]}" </dev/null >>"$directory/output.log" 2>&1 3>&- 4>&- 5>&- 9>&-) &
        pid=$!
        echo "$pid" >"$directory/pid"
        for ((waited = 0; waited < START_SECONDS * 10; waited++)); do
            if server_answers "$node" "$kind"; then continue 2; fi
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        tail -n 5 "$directory/output.log" >&2
        fail "the $kind of node $node did not start: see $directory/output.log"
    done
}

# Ends a node's database servers with a signal, and waits for their end.
end_servers() {
    local node=$1 signal=$2 kind pid waited
    for kind in $(servers "$node"); do
        pid=$(server_process "$node" "$kind") || continue
        kill -s "$signal" "$pid"
        for ((waited = 0; waited < STOP_SECONDS * 10; waited++)); do
            server_process "$node" "$kind" >/dev/null || continue 2
            sleep 0.1
        done
        fail "the $kind of node $node (process $pid) did not end within $STOP_SECONDS s of SIG$signal"
    done
}

# What a memtable of a node with a server has to be told of it.
server_parameters() {
    local directory=$cluster/node$1/$2
    if [ ! -e "$directory/port" ]; then return; fi
    cat <<YAML
        host: $network.$1
        port: $(cat "$directory/port")
        password_file: $directory/password
YAML
    if [ "$2" = mysql ]; then access_parameters "$1"; fi
}

access_parameters() {
    local directory=$cluster/node$1/mysql
    case $(access "$1") in
        jdbc) ;;
        direct)
            cat <<YAML
        access: direct
        direct_port: $(cat "$directory/direct_port")
        direct_secret_file: $directory/password
YAML
            ;;
        *) echo "        access: $(access "$1")" ;;
    esac
}
