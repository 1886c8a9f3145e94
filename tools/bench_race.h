/* One product measured with every kernel that the planner chooses among: what its choice costs over the best of them. */
#ifndef JG_TOOLS_BENCH_RACE_H
#define JG_TOOLS_BENCH_RACE_H

#include "bench_contest.h"

/* What was found wrong, added up. */
typedef struct bench_race_faults {
    size_t wrong;            /* results */
    size_t refused;          /* legal kernels that cannot be made or launched */
} bench_race_faults;

/* Measures all candidates of a product, with all_classes also those of other numeric classes, and describes them: *row is an
 * object for "plans" of bench_result.h, the caller's.
 *
 * Each runs once and is checked: the first of a class against the reference in double, and all of it against the first class, with
 * room for rounding; the others must have its bits. Then each is timed shortly, and those that come close to the best, and the
 * planner's choice, again as long as arena->rounds and sample_us say, in turns. On the software GPU, which has no times,
 * instructions are counted instead. What concerns a kernel alone is told with it; other errors are returned: those of a bad
 * problem, UNSUPPORTED, DEVICE, DEVICE_LOST, NO_MEMORY, NO_NVRTC. */
jg_status bench_race(bench_arena *arena, const bench_product *product, int all_classes, cJSON **row, bench_race_faults *faults);

#endif
