/* What happened to each frame, and what it comes to: percentiles, counts, the table (report.h: files). Times are in ms on the monotonic
 * clock. */
#ifndef PIPELINE_TIMING_H
#define PIPELINE_TIMING_H

#include <stdint.h>
#include <stdio.h>

#include "layers.h"

enum { SIZES_MAX = 64 };

typedef struct frame_record {
    int64_t number;
    int size;           /* index into the run's sizes */
    int is_dropped;     /* overwritten by the camera before its turn came; has no time */
    int is_first;       /* of its size, ever in this run */
    int is_graph;       /* launched as a graph */
    int own;            /* of its products, how many ran on the size's own kernel */
    int swapped, loaded; /* jg_poll after it: problems that went over to their own kernel, kernels loaded */
    double arrival_ms;  /* since the run's first frame, by the camera's clock, which stands still while results are checked */
    double wall_ms;     /* the same by a clock that goes on; not of dropped frames */
    double time_ms;     /* from its arrival until its result was on the host */
    double calls_us;    /* of its five products' calls on the host; 0 for a graph */
    double poll_ms;
} frame_record;

/* One policy's run. */
typedef struct run_record {
    const char *policy;
    char skip[512];     /* why it was not run; "" if it was */
    grid sizes[SIZES_MAX];
    int size_count;
    char note[128];     /* what is to be known of it; "" if nothing */
    int products;       /* of jitgemm in a frame: PRODUCTS, or 1 where cuBLAS computes the layers */
    double budget_ms;   /* 1 / frames a second; 0: not paced */
    frame_record *frames; /* `room` of them, allocated before the first frame */
    int64_t count, room;
    uint64_t waits, swaps, compiles; /* of jg_stats */
    int graphs;         /* captured */
    int checked;        /* elements that were compared with a reference in double precision */
    double worst;       /* of them: error as a part of what is allowed; above 1 is wrong */
    int compared, differing; /* frames that were run once more after the swap, and those that then had other bits */
} run_record;

/* Of one size, or of all frames (size = -1). Times are NaN where there is none. */
typedef struct run_summary {
    int64_t frames, dropped, over_budget;
    int64_t generic;    /* frames before the size had all kernels of its own that it got; all of them if it got none */
    int own;            /* products of the last frame on the size's own kernels: fewer than all where jitgemm expects a gain below
                         * 2 %, and makes none */
    double first_ms, first_calls_us; /* of the first frame that was not dropped */
    double p50_ms, p99_ms, max_ms;
    double own_after_ms; /* from the first frame's arrival to that of the first one with as many own kernels as the last, by the clock
                         * that goes on; 0: at once */
    double poll_max_ms;
} run_summary;

run_summary run_summarise(const run_record *r, int size);

/* The least value of which `percent` of all are no greater: by the nearest rank. Sorts them. NaN of none. */
double percentile(double *values, int64_t count, double percent);

/* A line a size, then totals. */
void run_print(FILE *out, const run_record *r);

#endif
