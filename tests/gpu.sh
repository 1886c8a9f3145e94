#!/bin/sh
# What `make test-gpu` runs: the numeric tests and the demo, each twice on one cache file, so that the second process
# shows that it compiles nothing. BUILD is the build folder; it may have come from another machine (make bundle).
set -u
build=${BUILD:-build}
[ -d "$build/bundle/lib" ] && export LD_LIBRARY_PATH="$build/bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export JG_SHAPES_DIR=tests/shapes JG_TEST_BIN_DIR="$build/bin"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
export JG_TEST_CACHE="$scratch/kernels.db"
bad=0
for round in first second; do
    echo "=== numeric tests, $round process"
    sh tests/run.sh "$build/tests/gpu_numeric" || bad=1
done
if [ -n "${DEMO:-}" ]; then
    for round in first second; do
        echo "=== demo, $round process"
        "$build/examples/10_demo" --cache "$scratch/demo.db" || bad=1
    done
fi
exit $bad
