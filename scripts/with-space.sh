#!/bin/bash
# Runs a command with a directory on a file system of a certain size: what a store does when space is short. The file system is ext4 in
# a file on the disk below DIR; what the kernel counts for its device is what this command writes and nothing else. Needs root and loop
# devices.
#
#   scripts/with-space.sh DIR SIZE COMMAND [ARGUMENT...]
#
# SIZE is a number of bytes, or one with the suffix K, M or G. The command gets `--dir` with the directory. The file is removed at the
# end.
set -euo pipefail

if [ $# -lt 3 ]; then
    echo "usage: $0 DIR SIZE COMMAND [ARGUMENT...]" >&2
    exit 2
fi
parent=$1 size=$2
shift 2

fail() {
    echo "with-space: $1" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || fail "only root may attach and mount loop devices"

work=$(mktemp --directory --tmpdir="$parent" with-space-XXXXXX)
mount=$work/mount
device=

# shellcheck disable=SC2317 # The trap calls it.
clean_up() {
    if mountpoint --quiet "$mount"; then umount "$mount" || true; fi
    if [ -n "$device" ]; then losetup --detach "$device" || true; fi
    rm -rf --one-file-system "$work"
}
trap clean_up EXIT

fallocate --length "$size" "$work/disk.img" || fail "$parent has no room for a file of $size"
# Past the page cache of the disk below.
device=$(losetup --find --show --direct-io=on "$work/disk.img")
# No space is kept for root, who runs the command.
mkfs.ext4 -q -m 0 "$device"
mkdir "$mount"
mount "$device" "$mount"

code=0
"$@" --dir "$mount" || code=$?
exit "$code"
