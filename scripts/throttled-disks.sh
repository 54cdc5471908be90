#!/bin/bash
# Runs a command on loop devices that are throttled to a rate of reads each, in the place of disks that this machine
# does not have. They are files on one disk, with ext4 inside: what they show is how the load is spread, never what
# several real disks give. Needs root, loop devices and the blkio controller of cgroup v1.
#
#   scripts/throttled-disks.sh DIR COUNT READS_PER_SECOND COMMAND [ARGUMENT...]
#
# The files are made in DIR, 2 GiB each, and removed at the end. The command gets `--dir` with a directory on each
# device, and a `--note` that says what they are.
set -euo pipefail

SIZE=2G
CGROUP=/sys/fs/cgroup/blkio/aiodb-throttled-disks-$$

if [ $# -lt 4 ]; then
    echo "usage: $0 DIR COUNT READS_PER_SECOND COMMAND [ARGUMENT...]" >&2
    exit 2
fi
parent=$1 count=$2 reads_per_second=$3
shift 3

fail() {
    echo "throttled-disks: $1" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || fail "only root may attach and mount loop devices"
[ -e /sys/fs/cgroup/blkio/blkio.throttle.read_iops_device ] ||
    fail "the blkio controller of cgroup v1 is not mounted at /sys/fs/cgroup/blkio"

work=$(mktemp --directory --tmpdir="$parent" throttled-disks-XXXXXX)
devices=()
mounts=()

clean_up() {
    for mount in "${mounts[@]}"; do umount "$mount" || true; done
    for device in "${devices[@]}"; do losetup --detach "$device" || true; done
    if [ -d "$CGROUP" ]; then rmdir "$CGROUP" || true; fi
    rm -rf "$work"
}
trap clean_up EXIT

mkdir "$CGROUP"
arguments=()
for number in $(seq "$count"); do
    file=$work/disk$number.img
    mount=$work/disk$number
    fallocate --length "$SIZE" "$file"
    # Past the page cache, or the reads would come from memory.
    device=$(losetup --find --show --direct-io=on "$file")
    devices+=("$device")
    mkfs.ext4 -q "$device"
    mkdir "$mount"
    mount "$device" "$mount"
    mounts+=("$mount")
    echo "$(lsblk --noheadings --nodeps --output MAJ:MIN "$device" | tr -d ' ') $reads_per_second" \
        > "$CGROUP/blkio.throttle.read_iops_device"
    arguments+=(--dir "$mount")
done

note="not disks but $count throttled loop devices on one disk, $reads_per_second reads/s each"
echo "throttled-disks: $note" >&2
(
    echo "$BASHPID" > "$CGROUP/cgroup.procs"
    exec "$@" "${arguments[@]}" --note "$note"
)
