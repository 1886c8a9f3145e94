#!/bin/sh
# What `make bench` runs on this machine's GPU: the suites against cuBLAS with a page of plots, the same on 16 multiprocessors as on
# an Orin, and the promises of "never wait". BUILD=build; OUT: a folder for the reports. QUICK=1: fewer repetitions.
# PLANS=1: also every kernel that the planner chooses among, for some suites, to fit its model with.
set -u
BUILD=${BUILD:-build}
OUT=${OUT:-$BUILD/bench}
bench=$BUILD/bin/jitgemm-bench
mkdir -p "$OUT"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
runs=20; batches=400; sizes=20000; launches=20000; suites="common16 poison misalign skinny layers large tiny"
[ "${QUICK:-0}" = 1 ] && { runs=5; batches=100; sizes=3000; launches=3000; suites="common16 poison"; }

report() { # name, arguments
    name=$1; shift
    echo "== $name: jitgemm-bench $*"
    "$bench" "$@" >"$OUT/$name.txt" 2>"$OUT/$name.err"; status=$?
    cat "$OUT/$name.txt"
    [ $status -eq 0 ] || { echo "exit $status"; tail -5 "$OUT/$name.err"; }
}

# shellcheck disable=SC2086
report suites first-call $suites compile --sizes $sizes --html "$OUT/report.html"
report suites-16-sms common16 poison --type f16,f32 --sms 16 --html "$OUT/report-16-sms.html"
report first-call first-call --fill --cache "$work/a.db" --sizes $sizes
report first-call-compiling first-call --fill --cache "$work/b.db" --sizes $sizes --cpus 0,1 --compiling --no-peer
report neighbour first-call --neighbour --fill --cache "$work/c.db" --launches $launches
report dispatch dispatch --batches $batches --cache "$work/d.db"
report dispatch-4-threads dispatch --batches $batches --threads 4 --cache "$work/d.db"
report dispatch-100000 dispatch --batches $batches --problems 100000 --cache "$work/d.db"
report cold-start cold-start --runs $runs --cache "$work/e.db"
"$BUILD/tests/fill_cache" "$work/e.db" 20000
report cold-start-20000 cold-start --runs $runs --cache "$work/e.db" --no-peer
[ "${PLANS:-0}" = 1 ] || exit 0
report plans plans common16 poison skinny --type f16,f32,tf32,s8 --cache "$work/f.db" --write-csv "$OUT/plans.csv"
report plans-16-sms plans common16 poison --type f16,f32 --sms 16 --cache "$work/g.db" --write-csv "$OUT/plans-16-sms.csv"
