/* From a plan and pointers to cuLaunchKernel: nothing here looks anything up, locks, or allocates. */
#ifndef JG_LAUNCH_H
#define JG_LAUNCH_H

#include "load.h"
#include "operands.h"
#include "plan.h"

/* The kernels' one argument; must match struct jg_args in templates/common.cuh (KERNEL_ABI). */
typedef struct launch_args {
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
    int64_t stride_a, stride_b, stride_c;
    uint32_t m, n, k, batch;
    float alpha, beta;
    uint32_t flags, fusion;
    const void *residual;
    int64_t ld_residual, stride_residual;
    const float *scale, *scale_m, *scale_n;
    const void *bias_m, *bias_n;
    const void *group_scales;
    const int8_t *group_zeros;
    int64_t stride_group;
    float clamp_low, clamp_high, out_scale, out_zero;
} launch_args;


/* The arguments of a problem without its pointers and scalars. */
void launch_prepare(const problem *p, const plan *chosen, launch_args *args);

/* What a launch may touch, as the software GPU is told: A, B, C and what is fused in. `out` has room for
 * LAUNCH_MAX_DESCRIBED; returns how many. */
#define LAUNCH_MAX_DESCRIBED 11
unsigned launch_describe(const problem *p, const launch_args *args, swgpu_operand *out);

/* Fills in the operands. */
void launch_fill(const problem *p, const operands *o, launch_args *args);

/* Launches; the device must be entered. Errors: LAUNCH, NO_MEMORY, DEVICE_LOST. */
jg_status launch_kernel(const device *dev, const loaded_kernel *kernel, const problem *p, const plan *chosen, launch_args *args,
                        CUstream stream);

#endif
