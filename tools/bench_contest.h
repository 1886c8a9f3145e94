/* One product measured: our kernel, and each peer, in turns; and whether the results agree. */
#ifndef JG_TOOLS_BENCH_CONTEST_H
#define JG_TOOLS_BENCH_CONTEST_H

#include "bench_ceiling.h"
#include "bench_lt.h"
#include "bench_peer.h"
#include "bench_pool.h"
#include "bench_replay.h"

#include <cjson/cJSON.h>

/* What all products are measured with. A peer that is not there has a null library or handle. */
typedef struct bench_arena {
    const bench_gpu *gpu;
    jg_context *context;
    bench_clock clock;
    bench_pool pool;
    bench_peer peer;
    bench_lt lt;
    int has_peer, has_lt;
    bench_ceilings ceilings;
    size_t rounds;
    double sample_us;
    int generic;             /* measure the generic kernel too */
} bench_arena;

/* What is measured. */
typedef struct bench_product {
    jg_problem problem;
    bench_layout layout;
    const char *suite, *list; /* names */
    const char *text;         /* the problem's */
    int rotated;
} bench_product;

/* Measures one and describes it: *row is an object for "rows" of bench_result.h, the caller's. gain: what the own kernel gains
 * over the generic one, 0 if that was not measured, or ours is wrong. *wrong: our result is not right. Errors that concern this
 * product alone are told in the row; others are returned: DEVICE, DEVICE_LOST, NO_MEMORY, NO_NVRTC. */
jg_status bench_contest(bench_arena *arena, const bench_product *product, cJSON **row, double *gain, int *wrong);

/* Adds what a row says of the product and of its plan, whose kernel may be "". Returns 0 if memory ran out. */
int bench_product_describe(cJSON *row, const bench_product *product, const jg_plan_details *plan);

/* Measures what the peers reach with a product that should keep a GPU busy, as a further ceiling of its type. */
jg_status bench_contest_ceiling(bench_arena *arena, const bench_product *product);

#endif
