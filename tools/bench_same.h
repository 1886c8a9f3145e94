/* The library's own kernel, to be launched without the library: the same function, shape and arguments, straight to the driver.
 *
 * What a call adds to cuLaunchKernel can only be told beside a launch of the same kernel: another one costs the driver another
 * time. The public header gives no function away, but a captured call does: a second context, so that nothing of the measured one
 * is marked as captured, records one launch, and its graph node says how it was made. */
#ifndef JG_TOOLS_BENCH_SAME_H
#define JG_TOOLS_BENCH_SAME_H

#include "bench_run.h"

typedef struct bench_same {
    jg_context *context;  /* the second one, which holds the function */
    CUfunction function;  /* null: not known; the tiny kernel has to stand in */
    bench_shape shape;
    char argument[BENCH_ARGUMENT_BYTES];
} bench_same;

/* Records one launch of the problem on these operands. Where the driver cannot say how (the software GPU, an old one), function
 * stays null and that is no error. */
int bench_same_open(bench_run *run, const jg_problem *problem, const jg_operands *data, bench_same *out);
void bench_same_close(bench_same *same);

/* Straight to the driver: it is what is timed. */
static inline CUresult bench_same_launch(const bench_gpu *gpu, const bench_same *same, CUstream stream)
{
    void *parameters[] = {(void *)same->argument};
    return gpu->driver->launch(same->function, same->shape.grid_x, same->shape.grid_y, 1, same->shape.threads, 1, 1,
                               same->shape.shared_bytes, stream, parameters, NULL);
}

#endif
