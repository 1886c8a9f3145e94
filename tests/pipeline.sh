#!/bin/sh
# What `make pipeline` runs on this machine's GPU: the video pipeline at 60 frames a second with 20 changes of resolution, with each
# policy and cuBLAS, each size unseen. BUILD=build; OUT: a folder for pipeline.txt, .json, .csv and .svg; CLIP: a Y4M file, else a
# pattern of 1920x1080; QUICK=1: half a second a size; SMS=16: on so many multiprocessors, as on an Orin.
# Exit status 1 if with policy background a frame was over its budget or was dropped, or a result was wrong.
set -u
BUILD=${BUILD:-build}
OUT=${OUT:-$BUILD/pipeline}
[ -d "$BUILD/bundle/lib" ] && export LD_LIBRARY_PATH="$BUILD/bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
every=4
[ "${QUICK:-0}" = 1 ] && every=0.5
mkdir -p "$OUT" || exit 1
set -- --fresh --policy all --check --fps 60 --every "$every" --json="$OUT/pipeline.json" --csv "$OUT/pipeline.csv" \
    --plot "$OUT/pipeline.svg"
[ -n "${SMS:-}" ] && set -- "$@" --sms "$SMS"
[ -n "${CLIP:-}" ] && set -- "$@" "$CLIP"
echo "== 20_video_pipeline $*"
"$BUILD/examples/20_video_pipeline" "$@" >"$OUT/pipeline.txt" 2>"$OUT/pipeline.err"
status=$?
cat "$OUT/pipeline.txt"
grep SKIP "$OUT/pipeline.err"
[ "$status" -eq 0 ] || { echo "exit $status"; tail -n 5 "$OUT/pipeline.err"; exit 1; }
late=$(sed -n 's/.*"policy": "background".*"dropped": \([0-9]*\), "over_budget": \([0-9]*\),.*"budget_ms".*/\1 \2/p' "$OUT/pipeline.json")
[ "$late" = "0 0" ] && { echo "background: no frame dropped, none over its budget"; exit 0; }
echo "background: frames dropped and over their budget: ${late:-unknown}"
exit 1
