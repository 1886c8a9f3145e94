/* The result of a run of jitgemm-bench as one JSON document: what --json prints, --html draws, --save merges, --against judges.
 *
 *     {
 *       "format": "jitgemm-bench result", "format_version": 1,
 *       "version": "0.1.0",                     the library's
 *       "commands": ["first-call", "common16"], in the order in which they ran
 *       "started": "2026-01-31T12:00:00Z",
 *       "environment": {...},                   flat; strings, numbers and booleans; what is unknown is left out. At least
 *                                               "device", "arch" (90), "software" (the software GPU: there are no times)
 *       "ceilings": [{"name": "memory", "unit": "GB/s", "value": 4200.5, "how": "copy"}, ...],
 *           names: "memory", "l2" (GB/s), and one for each element type, "f16" (TFLOP/s); more than one of a name may be there,
 *           measured in several ways: the largest counts
 *       "rows": [{
 *           "suite": "layers", "list": "resnet50", "problem": "196x768x768:f16",
 *           "m": 196, "n": 768, "k": 768, "batch": 1, "type": "f16", "ceiling": "f16",
 *           "data": "resident" or "rotated",            ceiling: the name of the one that it is held against
 *           "kernel": "jg_sm90_mma_...", "plan": "mma 128x64x32 w64x32 s3",      ours
 *           "tuned": true,                      it is a recorded plan (jg_record_plan); absent where the planner's model chose
 *           "flops": 231211008, "bytes": 1782144,      of one product: 2 m n k; A, B and C once each
 *           "contestants": [
 *               {"name": "jitgemm", "us": {"n": 21, "min": 4.1, "p25": 4.2, "p50": 4.3, "p75": 4.4, "max": 5.0}},
 *               {"name": "cublas", "us": {...}}, {"name": "lt first", ...}, {"name": "lt best", ...},
 *               {"name": "grouped", ...}: ours too, of the suite tiny: jg_gemm_grouped of the batch's items
 *               {"name": "lt best", "refused": "why"}, ...],
 *               {"name": "cublas", "refused": "no peer in cuBLAS: why"}: it does not do such products at all
 *           "peer": "lt best", "ratio": 1.31,   the best peer and its time / ours, by medians; absent without a peer
 *           "ratio_p": 0.0001,                  probability of such a difference by chance (Mann-Whitney U)
 *           "layout": "odd ld", "cost": 1.4,    suite misalign: how it lies ("aligned", "odd ld", "offset", "padded"), and its
 *                                               time / the time of the aligned layout, by medians of ours
 *           "roofline_percent": 41.5, "bound": "compute", "memory" or "l2",
 *           "check": {"reference": 0.21, "peer": 0.3},  largest error / what is allowed, against a reference in double: wrong
 *               above 1; largest difference to a peer's result / what is allowed: where that is above 1 and ours is right, it is
 *               the peer that is off
 *           "counters": {"instructions": 12345, ...}    on the software GPU, instead of every "us"
 *       }, ...],
 *       "summaries": [{"suite": "layers", "list": "resnet50", "type": "f16", "rows": 21, "geomean": 1.04,
 *           "worst": 0.4, "best": 2.5}, ...],
 *       "plans": [{                             a product with all kernels that the planner chooses among
 *           "suite", "list", "problem", "m" ... "bytes": as in "rows"; "kernel" and "plan" are the planner's choice
 *           "chosen": 2, "best": 0,             numbers of candidates, from 0; best: the fastest with a right result, absent without
 *           "gap": 1.07,                        time of the choice / of the best, by medians; absent where one has no time
 *           "candidates": [{
 *               "kernel": "jg_...", "family": "mma", "of_class": true,       the planner may choose it: it gives the same bits
 *               "tile_m", "tile_n", "tile_k", "warp_m", "warp_n", "stages", "slices", "threads", "grid_x", "grid_y",
 *               "shared_bytes", "registers", "blocks_per_sm", "waves", "estimate_clocks": as in jg_plan_details
 *               "us": 4.3, "samples": 21,       the median of so many; 1: of a short look, for it was not among the best
 *               "instructions": 12345,          on the software GPU, instead of "us"
 *               "check": 0.2, "wrong": true,    of the first of a numeric class, as in "rows"; the others must have its bits
 *               "refused": "why"                it could not be made or launched, which is a fault; maybe "kernel" is "" then
 *           }, ...]
 *       }, ...],
 *       "gaps": [{"suite": "layers", "list": "resnet50", "type": "f16", "rows": 21, "geomean": 1.04, "worst": 1.3}, ...],
 *       "compiles": [{"problem": "64:f16", "kernel": "jg_...", "ms": 121.5}, ...],
 *       "memory": [{"command": "memory", "mode": "thread" or "helper",      where a process' kernels were compiled
 *           "moments": [{"when": "before jg_open", "pss_kib": 894, "rss_kib": 2772, "peak_kib": 2772}, ...], also "after
 *               jg_open", "after the first compile", "after all compiles", "after jg_close"
 *           "peak_kib": 82952,                  of the process itself (resident)
 *           "helper_peak_kib": 104000,          of the largest process that it started; 0: none
 *           "compile_ms": [255.7, 239.3, ...],  each, in turn, as the process sees it
 *           "refused": "why"                    nothing could be compiled so; instead of all the others
 *       }, ...],
 *       "series": [{"command": "first-call", "name": "jitgemm", "unit": "us", "n": 20000, "min": 1.1, "p25": .., "p50": ..,
 *                   "p75": .., "p99": .., "p99.9": .., "max": 215.0, "histogram": [[1.0, 17], [1.19, 230], ...]}, ...],
 *           histogram: pairs of lower edge and number; an edge is the upper one of the pair before; empty ones are left out
 *           (so the width is not the distance: BENCH_HISTOGRAM_STEP is)
 *       "counts": [{"command": "first-call", "name": "compiles", "value": 3}, ...],
 *       "targets": [{"command": .., "name": .., "unit": "us", "value": 29.0, "limit": 50, "met": true}, ...],
 *       "notes": ["..."], "missed": 0, "interrupted": false,
 *       "drift": {"base": "BASE.json", "base_started": .., "base_runs": 10, "runs": 10, "percent": 3, "p": 0.01,
 *           "changed": [{"what": "driver", "base": "13000", "now": "13010"}, ...],
 *           "rows": [{"name": "common16 64:f16 resident", "unit": "us", "base": 2.1, "now": 2.4,
 *                     "change_percent": 14.3, "p": .., "p_adjusted": ..,
 *                     "verdict": "slower", "faster" or "same"}, ...],
 *           "missing": ["name", ...], "new": ["name", ...], "slower": 1, "faster": 0,
 *           "interrupted": false}               only the runs that were finished are compared
 *     }
 *
 * A "type" has all that products of a group have in common, as words of a problem text: "f16", "f16.s8-f16", "f32:tf32:relu".
 * Arrays that would be empty may be left out.
 *
 * What jitgemm-bench planner --json prints is another document:
 *
 *     {
 *       "format": "jitgemm-bench planner", "format_version": 1, "version": "0.1.0", "cache": the file's path,
 *       "places": [{
 *           "place": "sm_90 132sm 6144bit", "device": "NVIDIA H200", "records": 96,
 *           "software": false,                      true: numbers of instructions take the place of times
 *           SUM,                                    of all that was asked for
 *           "suites": [{"suite": "layers", SUM, "slowest": [{"problem", "kernel", "planned", "runner_up", "reason", "us",
 *               "planned_us", "runner_up_us", "measured", "all": as in jg_measured, "loss": 1.21}, ...]}, ...],    the worst ten
 *           "groups": [{"suite": "layers", "list": "resnet50", "type": "f16", SUM}, ...]
 *       }, ...]
 *     }
 *
 * SUM is: "problems": 21, "recorded": 20, "known": 20 (of these, those with a planned_us), "right": 14 (the model's choice is the
 * fastest), "geomean": 1.02, "worst": 1.21, "worst_problem": "196x768x768:f16", of losses: planned_us / us. Suite "others" has the
 * records of no suite. What is unknown is left out. */
#ifndef JG_TOOLS_BENCH_RESULT_H
#define JG_TOOLS_BENCH_RESULT_H

#define BENCH_RESULT_FORMAT "jitgemm-bench result"
#define BENCH_BASELINE_FORMAT "jitgemm-bench baseline"
#define BENCH_PLANNER_FORMAT "jitgemm-bench planner"
#define BENCH_RESULT_FORMAT_VERSION 1

/* How the reason of a peer begins that does not do such products at all. */
#define BENCH_NO_PEER "no peer"

/* Each bin of a histogram is this many times as wide as the one before: 2 to the power of 1/4. */
#define BENCH_HISTOGRAM_STEP 1.189207115002721

#endif
