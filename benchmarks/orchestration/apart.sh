#!/bin/sh
# Runs a command with processes, mounts, network, /run, /tmp and /dev/shm of its own, so that clusters that other
# commands start on this machine are none of its business. Needs root.
#
#     sh benchmarks/orchestration/apart.sh COMMAND [ARGUMENT ...]
#
# SIGTERM and SIGINT end the command by SIGTERM. What it leaves ends with it.
set -eu

# Ends as a process of this shell does; a signal ends `wait`, but not yet the process.
end_as() {
    wait "$1" && status=0 || status=$?
    while kill -0 "$1" 2>/dev/null; do
        wait "$1" && status=0 || status=$?
    done
    exit "$status"
}

if [ "${1:-}" != --inside ]; then
    unshare --mount --pid --net --ipc --fork --kill-child --mount-proc sh "$0" --inside "$@" &
    unshare=$!
    trap 'kill -TERM $(cat "/proc/$unshare/task/$unshare/children")' TERM INT  # it keeps signals to itself
    end_as "$unshare"
fi
shift

for folder in /run /tmp /dev/shm; do
    mount -t tmpfs -o mode=1777 apart "$folder"
done
mkdir -p /run/lock /run/netns /run/sshd /tmp/cgroup
mount --rbind /sys/fs/cgroup /tmp/cgroup
mount -t sysfs sysfs /sys  # shows the interfaces of the network in which it was mounted
mount --rbind /tmp/cgroup /sys/fs/cgroup
umount -R /tmp/cgroup
rmdir /tmp/cgroup
ip link set lo up

"$@" &  # not in place of this shell, which is process 1 here and reaps what loses its parent
command=$!
trap 'kill -TERM "$command"' TERM INT
end_as "$command"
