#!/bin/sh
# Runs test programs (cmocka; an argument may be "VARIABLE=value ... PROGRAM"), JG_TEST_JOBS of them at once (one a core), each in a home
# folder and with a cache file of its own, and ends with their totals. Exit status 1 if any test failed, a program died, or nothing ran.
set -u

count() { # count PATTERN: the number in the (last) line that holds it
    sed -n "s/.*$1 *\] *\([0-9][0-9]*\) test(s).*/\1/p" "$home/log" | tail -n 1
}

# run_one PROGRAM: what it has to say goes to $home/said, its totals to $home/totals; the lock keeps two programs' lines apart.
run_one() {
    name=$(basename "${1##* }")
    device=${1##*JITGEMM_SWGPU_DEVICE=}
    [ "$device" = "$1" ] || name="$name on ${device%% *}"
    home=$JG_TEST_SCRATCH/$name
    mkdir -p "$home"
    began=$(date +%s)
    # shellcheck disable=SC2086
    HOME="$home" XDG_CACHE_HOME= JITGEMM_CACHE="${JG_TEST_CACHE:-$home/kernels.db}" JITGEMM_HELPER="${JITGEMM_HELPER-}" env $1 >"$home/log" 2>&1
    status=$?
    p=$(count PASSED) f=$(count FAILED) s=$(count SKIPPED)
    {
        echo "== $name"
        [ "$status" -eq 0 ] && [ "${V:-0}" = 0 ] && grep -E '^(SKIP|#)' "$home/log"
        { [ "$status" -ne 0 ] || [ "${V:-0}" != 0 ]; } && cat "$home/log"
        # A program that died, or ran nothing, is a failure of its own.
        if [ "$status" -ne 0 ] && [ "${f:-0}" -eq 0 ]; then
            echo "$name: exit status $status"
            f=1
        elif [ $((${p:-0} + ${f:-0} + ${s:-0})) -eq 0 ]; then
            echo "$name: no test ran"
            f=1
        fi
        echo "   ${p:-0} passed, ${f:-0} failed, ${s:-0} skipped, in $(($(date +%s) - began)) s"
    } >"$home/said"
    flock "$JG_TEST_SCRATCH" cat "$home/said"
    echo "${p:-0} ${f:-0} ${s:-0}" >"$home/totals"
}

if [ "${1-}" = --one ]; then
    run_one "$2"
    exit 0
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
[ $# -gt 0 ] && printf '%s\0' "$@" | JG_TEST_SCRATCH=$scratch xargs -0 -n 1 -P "${JG_TEST_JOBS:-$(nproc)}" sh "$0" --one
cat "$scratch"/*/totals 2>/dev/null | awk -v programs=$# '
    {p += $1; f += $2; s += $3}
    END {
        f += programs - NR # one that left no totals
        printf "%d passed, %d failed, %d skipped\n", p, f, s
        exit f > 0 || p + s == 0
    }'
