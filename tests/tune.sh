#!/bin/sh
# What `make tune` runs on this machine's GPU, in about two minutes: sizes tuned within a minute into a fresh cache file, what that
# gained and how far the planner's model was off, the gain measured once more by jitgemm-bench, what a compile helper keeps out of
# a process, and helpers that are killed while a pipeline works. Ends with a short table; the reports are files.
# BUILD=build: it may have come from another machine (make bundle); OUT: a folder for the reports.
#   QUICK=1      few sizes, on the software GPU unless JITGEMM_DRIVER says otherwise: shows that all of it runs
#   TUNE_BUDGET  time for tuning, 60s
set -u
BUILD=${BUILD:-build}
OUT=${OUT:-$BUILD/tune}
[ -d "$BUILD/bundle/lib" ] && export LD_LIBRARY_PATH="$BUILD/bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
mkdir -p "$OUT" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
what="--suite common16,poison,layers" measured="common16 poison layers" looked_at="common16 poison" compiles=8 budget=${TUNE_BUDGET:-60s}
rounds="--rounds 11"
if [ "${QUICK:-0}" = 1 ]; then
    export JITGEMM_DRIVER="${JITGEMM_DRIVER:-swgpu}"
    printf '64\n48x80x64\n' >"$work/two.txt"
    what="--list $work/two.txt" measured=$what looked_at=$what compiles=2 rounds=
    export JG_TEST_KILLS="${JG_TEST_KILLS:-3}"
fi
cache=$work/tuned.db
bad=0

now() { date +%s%3N; } # milliseconds

# step NAME COMMAND...: its output is shown and kept in $OUT/NAME.txt, how long it took in $NAME.s, in seconds.
step() {
    name=$1; shift
    echo "== $name: $*"
    began=$(now)
    "$@" >"$OUT/$name.txt" 2>"$OUT/$name.err"; status=$?
    awk -v ms=$(($(now) - began)) 'BEGIN {printf "%.1f\n", ms / 1000}' >"$work/$name.s"
    case $name in bench-*) ;; again) tail -n 16 "$OUT/$name.txt" ;; *) tail -n 60 "$OUT/$name.txt" ;; esac
    [ $status -eq 0 ] && return
    echo "exit status $status"
    tail -n 5 "$OUT/$name.err"
    bad=1
}

# compare MODEL.csv TUNED.csv: how many times as fast the products of the second are, each suite and type by itself.
compare() {
    awk -F, '
        $1 == "suite" {us = 0; for (i = 1; i <= NF; i++) if ($i == "jitgemm_us" || (!us && $i == "instructions")) us = i; rows = 1; next}
        NF < us || !us {rows = 0}
        !rows || $us + 0 <= 0 {next}
        {key = $1 "," $3 "," $8}
        FNR == NR {model[key] = $us; kernel[key] = $10; next}
        key in model {
            group = sprintf("%-10s %-6s", $1, $8)
            ratio = log(model[key] / $us)
            if (!(group in count)) order[++groups] = group
            count[group]++; sum[group] += ratio
            if (kernel[key] == $10) {same[group]++; drift[group] += ratio}
            if (ratio > best[group]) {best[group] = ratio; which[group] = $3}
        }
        END {
            printf "%-17s %8s %7s %8s %12s\n", "", "products", "changed", "faster", "same kernels"
            for (g = 1; g <= groups; g++) {
                o = order[g]
                printf "%-17s %8d %7d %7.3fx", o, count[o], count[o] - same[o], exp(sum[o] / count[o])
                if (same[o]) printf " %11.3fx", exp(drift[o] / same[o]); else printf " %12s", "-"
                if (which[o] != "") printf "   best %.2fx: %s", exp(best[o]), which[o]
                printf "\n"
            }
            exit groups == 0
        }' "$1" "$2"
}

line() { printf '%-9s %6s s  %s\n' "$1" "$(cat "$work/$1.s")" "$2"; }
last() { grep -v '^ *$' "$OUT/$1.txt" | tail -n 1; }

# shellcheck disable=SC2086
{
    step tune "$BUILD/bin/jitgemm-prewarm" --tune $what --type f16,f32 --budget $budget --cache "$cache"
    step planner "$BUILD/bin/jitgemm-bench" planner $measured --type f16,f32 --cache "$cache"
    step again "$BUILD/bin/jitgemm-prewarm" --tune $what --type f16,f32 --budget 5s --cache "$cache"
    step bench-model "$BUILD/bin/jitgemm-bench" $looked_at --type f16,f32 $rounds --no-peer --csv --cache "$cache" --plans model
    step bench-tuned "$BUILD/bin/jitgemm-bench" $looked_at --type f16,f32 $rounds --no-peer --csv --cache "$cache" --plans auto
    step memory "$BUILD/bin/jitgemm-bench" memory --compiles $compiles
    step killed "$BUILD/tests/gpu_helper"
}
compare "$OUT/bench-model.txt" "$OUT/bench-tuned.txt" >"$OUT/gain.txt" || bad=1
{
    echo "=== tuning and isolation"
    line tune "$(last tune)"
    line again "$(last again)"
    line memory "$(grep '^The helper' "$OUT/memory.txt" || grep SKIP "$OUT/memory.txt")"
    line killed "$(sed -n 's/^# //p; s/^SKIP/SKIP/p' "$OUT/killed.txt" | tail -n 1)"
    echo "gain over the model's choice, as tuned:"
    sed -n '/^list  *type /,/^[a-z]* [0-9]*, /p' "$OUT/tune.txt" | sed '$d'
    echo "measured again, the planner's model against recorded plans (same kernels: what is chance):"
    cat "$OUT/gain.txt"
} | tee "$OUT/summary.txt"
[ $bad -eq 0 ] || echo "something failed, see above"
exit $bad
