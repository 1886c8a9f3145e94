#!/bin/sh
# What `make test-gpu` runs: the numeric tests, twice on one cache file, so that the second process shows that it compiles
# nothing. BUILD is the build folder; it may have come from another machine (make bundle).
# In the first, each product also runs on the software GPU as the same chip: f32 and integers must have the same bits, and the
# largest difference of the others is reported.
#   DEMO=1       also the demo, twice
#   SANITIZE=1   also a part of the tests under compute-sanitizer (memcheck, racecheck, synccheck)
set -u
build=${BUILD:-build}
[ -d "$build/bundle/lib" ] && export LD_LIBRARY_PATH="$build/bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export JG_SHAPES_DIR=tests/shapes JG_TEST_BIN_DIR="$build/bin" JG_TEST_JOBS=1 # one GPU, one cache file
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
export JG_TEST_CACHE="$scratch/kernels.db"
bad=0
for round in first second; do
    echo "=== numeric tests, $round process"
    twin=
    [ $round = first ] && twin=JG_TEST_TWIN=1
    sh tests/run.sh "$twin $build/tests/gpu_numeric" "$twin $build/tests/gpu_breadth" "$build/tests/gpu_rules" \
        "$build/tests/gpu_special" "$build/tests/gpu_math" "$build/tests/gpu_tiles" "$build/tests/gpu_grouped" \
        "$build/tests/gpu_limits" || bad=1
done
echo "=== compile helpers that are killed"
sh tests/run.sh "$build/tests/gpu_helper" || bad=1
echo "=== single mma instructions against the results recorded of an H200"
sh tests/run.sh "JITGEMM_DRIVER=libcuda.so.1 $build/tests/test_swgpu_hardware" || bad=1
echo "=== stream capture on the GPU's own driver"
sh tests/run.sh "JG_TEST_DRIVER=libcuda.so.1 JITGEMM_FACTORY= $build/tests/test_capture" \
    "JG_TEST_DRIVER=libcuda.so.1 JITGEMM_FACTORY= $build/tests/test_capture_kernels" || bad=1
if [ -x "$build/tests/test_gst_color" ] && [ -f "$build/gst/libgstjitgemm.so" ]; then
    echo "=== the GStreamer element"
    export JG_TEST_BUILD_DIR="$build" JG_TEST_GST_DEVICE=cuda
    sh tests/run.sh "$build/tests/test_gst_color" "$build/tests/test_gst_embed" "$build/tests/test_gst_stream" || bad=1
else
    echo "SKIP the GStreamer element: it was not built"
fi
if [ -n "${DEMO:-}" ]; then
    for round in first second; do
        echo "=== demo, $round process"
        "$build/examples/10_demo" --cache "$scratch/demo.db" || bad=1
    done
fi
if [ -n "${SANITIZE:-}" ]; then
    for tool in memcheck racecheck synccheck; do
        echo "=== compute-sanitizer $tool"
        for part in test_batches test_blas_rules test_every_tile_gives_the_same_bits; do
            JITGEMM_CACHE="$JG_TEST_CACHE" JG_TEST_FILTER=$part timeout 200 compute-sanitizer --tool $tool --error-exitcode 9 \
                "$build/tests/gpu_numeric" >"$scratch/log" 2>&1 || { bad=1; tail -n 30 "$scratch/log"; }
            grep -E '^========= (ERROR|RACECHECK) SUMMARY|PASSED|FAILED' "$scratch/log"
        done
        for test in "gpu_breadth 12" "gpu_grouped 1"; do
            JITGEMM_CACHE="$JG_TEST_CACHE" JG_TEST_STRIDE=${test#* } timeout 200 compute-sanitizer --tool $tool --error-exitcode 9 \
                "$build/tests/${test% *}" >"$scratch/log" 2>&1 || { bad=1; tail -n 30 "$scratch/log"; }
            grep -E '^========= (ERROR|RACECHECK) SUMMARY|PASSED|FAILED' "$scratch/log"
        done
    done
fi
exit $bad
