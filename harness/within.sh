# shellcheck shell=bash
# Sourced by the scripts beside it: starts a node within its control groups.
#
#   within NODE COMMAND...    calls scripts/cluster.sh
#
# ENTER lists files of control groups, with NODE for a node's number: the shell enters them first, so that all that the
# node ever does is limited.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cluster_sh=$repository/scripts/cluster.sh

within() {
    local node=$1 group
    shift
    (
        for group in ${ENTER:-}; do echo "$BASHPID" > "${group//NODE/$node}"; done
        exec "$cluster_sh" "$@" >&2
    )
}
