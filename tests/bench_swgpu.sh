#!/bin/sh
# How fast the software GPU is: one thread, 256 x 256 x 256, with and without checks and counters, against what it is meant
# to take. Prints a table; exit status 1 if a target is missed. Times are only worth something on a machine at rest.
#   BUILD: the output folder, build
set -u
tool=${BUILD:-build}/bin/jitgemm-swgpu
target_on=1000 target_off=333 # ms
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# milliseconds DEVICE SIZE CHECKS COUNTERS: the median, which is the last field of the last line
milliseconds() {
    JITGEMM_SWGPU_COUNTERS=$4 "$tool" --cache "$scratch/kernels.db" --threads 1 --time --csv --device "$1" --checks "$3" "$2" \
        >"$scratch/csv" || return 1
    sed -n '$s/.*,//p' "$scratch/csv"
}

[ -x "$tool" ] || { echo "bench_swgpu: no $tool; run make first" >&2; exit 1; }
unset JITGEMM_SWGPU_BLOCKS JITGEMM_SWGPU_FAULT JITGEMM_SWGPU_SLOW
missed=0
printf '%-9s %-9s %16s %17s %6s\n' '' '' 'checks on, ms' 'checks off, ms' ''
printf '%-9s %-9s %16s %17s %6s\n' product device "target $target_on" "target $target_off" ratio
for size in 256:f16 256:f32; do
    for device in h200 orin-agx; do
        on=$(milliseconds $device $size all 1) && off=$(milliseconds $device $size none 0) || exit 1
        awk -v size=$size -v device=$device -v on="$on" -v off="$off" -v target_on=$target_on -v target_off=$target_off 'BEGIN {
            met = on + 0 > 0 && off + 0 > 0 && on <= target_on && off <= target_off
            printf "%-9s %-9s %16.1f %17.1f %6.2f  %s\n", size, device, on, off, (off > 0 ? on / off : 0), met ? "met" : "MISSED"
            exit !met }' || missed=1
    done
done
exit $missed
