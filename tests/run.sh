#!/bin/sh
# Runs test programs (cmocka; an argument may be "VARIABLE=value ... PROGRAM") one after another, each in a home folder and with a cache file of its own, and ends with
# their totals. Exit status 1 if any test failed, a program died, or nothing ran at all.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0 skipped=0
count() { # count PATTERN: the number in the (last) line that holds it
    sed -n "s/.*$1 *\] *\([0-9][0-9]*\) test(s).*/\1/p" "$scratch/log" | tail -n 1
}
for program in "$@"; do
    name=$(basename "${program##* }")
    device=${program##*JITGEMM_SWGPU_DEVICE=}
    [ "$device" = "$program" ] || name="$name on ${device%% *}"
    mkdir -p "$scratch/$name"
    echo "== $name"
    # shellcheck disable=SC2086
    HOME="$scratch/$name" XDG_CACHE_HOME= JITGEMM_CACHE="${JG_TEST_CACHE:-$scratch/$name/kernels.db}" env $program >"$scratch/log" 2>&1
    status=$?
    p=$(count PASSED) f=$(count FAILED) s=$(count SKIPPED)
    [ "$status" -eq 0 ] && [ "${V:-0}" = 0 ] && grep -E '^(SKIP|#)' "$scratch/log"
    { [ "$status" -ne 0 ] || [ "${V:-0}" != 0 ]; } && cat "$scratch/log"
    # A program that died, or ran nothing, is a failure of its own.
    if [ "$status" -ne 0 ] && [ "${f:-0}" -eq 0 ]; then
        echo "$name: exit status $status"
        f=1
    elif [ $((${p:-0} + ${f:-0} + ${s:-0})) -eq 0 ]; then
        echo "$name: no test ran"
        f=1
    fi
    echo "   ${p:-0} passed, ${f:-0} failed, ${s:-0} skipped"
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0})) skipped=$((skipped + ${s:-0}))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
