/* One product measured with every kernel that the planner chooses among, or with some of them: what its choice costs over the best. */
#ifndef JG_TOOLS_BENCH_RACE_H
#define JG_TOOLS_BENCH_RACE_H

#include "bench_contest.h"

/* Differences whose probability by chance alone is lower are taken for real (bench_mann_whitney). */
#define BENCH_RACE_CHANCE 0.01

/* A candidate. */
typedef struct bench_runner {
    size_t index;            /* as jg_plan_create_candidate numbers them */
    jg_plan *plan;           /* null: it could not be made */
    jg_plan_details details;
    int of_class;            /* the planner may choose it */
    char refused[256];       /* "": it is not */
    int is_wrong;
    int is_beaten;           /* slower by more than chance: not timed to the end */
    double check;            /* error over what is allowed; -1: equal bits were asked for instead */
    double us;               /* 0: not measured */
    size_t samples;          /* that us is the median of; of the short pass it is the least of two */
    double *rounds;          /* these samples, in us; null after the short pass alone */
    bench_replay replay;
    jg_counters counters;    /* on the software GPU */
} bench_runner;

int bench_runner_is_ready(const bench_runner *one); /* it was made, and ran */
int bench_runner_is_right(const bench_runner *one); /* with the right result */

/* indices: which candidates, `count` of them; null: all of the problem's numeric class, with all_classes also the others.
 * ends_early: for races between which the GPU may idle: its clocks are waited for; then whoever is slower than the best by more than
 * chance is timed no longer, and the race is over when one is left. Else all are timed for arena->rounds. */
typedef struct bench_race_options {
    const size_t *indices;
    size_t count;
    int all_classes, ends_early;
} bench_race_options;

/* Free with bench_race_free. */
typedef struct bench_race_result {
    bench_runner *all;
    size_t count;
    size_t planned;          /* the planner's choice, by its place in `all` */
    size_t best;             /* the fastest with a right result; count: there is none, or there are no times */
} bench_race_result;

/* Measures candidates of a product.
 *
 * Each runs once and is checked: the first of a class against the reference in double, and all of it against the first class, with
 * room for rounding; the others must have its bits. Then each is timed shortly, and those that come close to the best, and the
 * planner's choice, again as long as arena->rounds and sample_us say, in turns. On the software GPU, which has no times,
 * instructions are counted instead. What concerns a kernel alone is told with it; other errors are returned: those of a bad
 * problem, UNSUPPORTED, DEVICE, DEVICE_LOST, NO_MEMORY, NO_NVRTC; *result is empty then. */
jg_status bench_race_run(bench_arena *arena, const bench_product *product, const bench_race_options *how,
                         bench_race_result *result);
void bench_race_free(bench_race_result *result);

/* What was found wrong, added up. */
typedef struct bench_race_faults {
    size_t wrong;            /* results */
    size_t refused;          /* legal kernels that cannot be made or launched */
} bench_race_faults;

/* Measures all candidates, with all_classes also those of other numeric classes, and describes them: *row is an object for "plans"
 * of bench_result.h, the caller's. Errors: as bench_race_run. */
jg_status bench_race(bench_arena *arena, const bench_product *product, int all_classes, cJSON **row, bench_race_faults *faults);

#endif
