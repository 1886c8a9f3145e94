#!/bin/sh
# Runs what jitgemm-prewarm.service says, as at boot: in ROOT (made by make install DESTDIR=ROOT, and what that needs) as its root
# folder, with the environment and the command line that stand in the installed unit, and without any capability. Exit status and
# output are the command's. To be called in a mount namespace of its own (unshare -m), which takes all mounts away again.
#
#     boot_chroot.sh ROOT NVRTC DATA HOW
#
# NVRTC is the folder with that library. DATA is what the data partition holds. HOW:
#     writable    DATA is at /data, the root read-only       read-only   both read-only
#     full        a copy of DATA on a partition without room; it is at DATA.full afterwards
#     missing     no partition                               open        DATA at /data, and the root can be written
set -eu
root=$1 nvrtc=$2 data=$3 how=$4
unit=$(find "$root" -name jitgemm-prewarm.service)
chroot=$(command -v chroot)

mount --bind "$root" "$root"
mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
for device in null urandom; do mount --bind "/dev/$device" "$root/dev/$device"; done
mount --bind "$nvrtc" "$root/usr/local/cuda/lib64"
mount -o remount,bind,ro "$root/usr/local/cuda/lib64"
case $how in
writable | open) mount --bind "$data" "$root/data" ;;
read-only)
    mount --bind "$data" "$root/data"
    mount -o remount,bind,ro "$root/data"
    ;;
full)
    mount -t tmpfs -o size=8m,mode=755 tmpfs "$root/data"
    cp -a "$data/." "$root/data/"
    cat /dev/zero >"$root/data/filler" 2>/dev/null || :
    ;;
esac
[ "$how" = open ] || mount -o remount,bind,ro "$root"

# The unit's environment; its file is read as systemd reads it: NAME=value, spaces and all.
set -- "PATH=/usr/local/bin:/usr/bin:/bin"
while IFS= read -r line; do
    case $line in Environment=*) set -- "$@" "${line#Environment=}" ;; esac
done <"$unit"
file=$(sed -n 's/^EnvironmentFile=-*//p' "$unit")
while IFS= read -r line; do
    case $line in [A-Z]*=*) set -- "$@" "$line" ;; esac
done <"$root$file"

# Its one command, which may go on behind a \ at the end of a line, as each word of it would be taken: ${NAME} is a part of a word,
# $NAME as many words as it has.
command=$(sed -n -e ':more' -e '/\\$/{N;s/\\\n *//;b more' -e '}' -e 's/^ExecStart=-*//p' "$unit")
umask "$(sed -n 's/^UMask=//p' "$unit")"
cd /
status=0
env -i "$@" sh -c "exec $chroot $root /usr/bin/setpriv --bounding-set=-all --inh-caps=-all --no-new-privs $command" || status=$?
if [ "$how" = full ]; then
    rm "$root/data/filler"
    cp -a "$root/data" "$data.full"
fi
exit $status
