/* Packs the arguments that every kernel takes and launches it. */
#include "launch.h"

#include "status.h"

#include <string.h>

/* As in templates/common.cuh. */
enum {
    FLAG_TRANS_A = 1,
    FLAG_TRANS_B = 2,
    FLAG_VEC_A = 4,
    FLAG_VEC_B = 8,
    FLAG_TYPE_C_SHIFT = 4,
    FLAG_VEC_C = 64,
};

_Static_assert(sizeof(launch_args) == 104, "launch_args must match struct jg_args of the templates");

void launch_prepare(const problem *p, const plan *chosen, launch_args *args)
{
    memset(args, 0, sizeof *args);
    args->lda = p->lda;
    args->ldb = p->ldb;
    args->ldc = p->ldc;
    args->stride_a = p->stride_a;
    args->stride_b = p->stride_b;
    args->stride_c = p->stride_c;
    args->m = (uint32_t)p->m;
    args->n = (uint32_t)p->n;
    args->k = (uint32_t)p->k;
    args->batch = (uint32_t)p->batch;
    args->flags = (p->op_a == JG_T ? FLAG_TRANS_A : 0) | (p->op_b == JG_T ? FLAG_TRANS_B : 0) |
                  (chosen->access.a == 16 ? FLAG_VEC_A : 0) | (chosen->access.b == 16 ? FLAG_VEC_B : 0) |
                  (chosen->access.c ? FLAG_VEC_C : 0) | (uint32_t)p->type_c << FLAG_TYPE_C_SHIFT;
}

jg_status launch_kernel(const device *dev, const loaded_kernel *kernel, const plan *chosen, launch_args *args, CUstream stream)
{
    void *parameters[] = {args};
    CUresult result = dev->driver->launch(kernel->function, (unsigned)chosen->grid_x, (unsigned)chosen->grid_y, 1,
                                          (unsigned)chosen->threads, 1, 1, (unsigned)chosen->shared_bytes, stream, parameters, NULL);
    if (result == CUDA_SUCCESS) return JG_OK;
    char name[KERNEL_NAME_BYTES];
    kernel_format_name(&chosen->spec, name);
    return driver_error(dev->driver, result, JG_ERR_LAUNCH, name);
}
