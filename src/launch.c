/* Packs the arguments that every kernel takes and launches it. */
#include "launch.h"
#include "hot.h"

#include "context.h"
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

#define COUNT(name) +1
enum { COUNTERS = 0 SWGPU_COUNTERS(COUNT) };
#undef COUNT

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

/* Tells the software GPU what the launch may touch, so that it can tell an element from what lies between rows. */
static void describe(const driver *d, const plan *chosen, const launch_args *args)
{
    const uint64_t in = chosen->spec.type_in == JG_F32 ? 4 : 2;
    const uint64_t out = (args->flags >> FLAG_TYPE_C_SHIFT & 3) == JG_F32 ? 4 : 2;
    const int trans_a = (args->flags & FLAG_TRANS_A) != 0, trans_b = (args->flags & FLAG_TRANS_B) != 0;
    const uint64_t m = args->m, n = args->n, k = args->k;
    const swgpu_operand matrices[] = {
        {"A", (uintptr_t)args->a, trans_a ? k : m, (trans_a ? m : k) * in, (uint64_t)args->lda * in, args->batch, (uint64_t)args->stride_a * in, 0},
        {"B", (uintptr_t)args->b, trans_b ? n : k, (trans_b ? k : n) * in, (uint64_t)args->ldb * in, args->batch, (uint64_t)args->stride_b * in, 0},
        {"C", (uintptr_t)args->c, m, n * out, (uint64_t)args->ldc * out, args->batch, (uint64_t)args->stride_c * out,
         SWGPU_WRITABLE_APART},
    };
    /* alpha = 0 reads neither A nor B. */
    const int inputs = args->alpha != 0.0f;
    d->describe(inputs ? matrices : &matrices[2], inputs ? 3 : 1, m * n * k * args->batch);
}

HOT jg_status launch_kernel(const device *dev, const loaded_kernel *kernel, const plan *chosen, launch_args *args, CUstream stream)
{
    void *parameters[] = {args};
    if (dev->driver->describe) describe(dev->driver, chosen, args);
    CUresult result = dev->driver->launch(kernel->function, (unsigned)chosen->grid_x, (unsigned)chosen->grid_y, 1,
                                          (unsigned)chosen->threads, 1, 1, (unsigned)chosen->shared_bytes, stream, parameters, NULL);
    if (result == CUDA_SUCCESS) return JG_OK;
    char name[KERNEL_NAME_BYTES];
    kernel_format_name(&chosen->spec, name);
    return driver_error(dev->driver, result, JG_ERR_LAUNCH, name);
}

jg_status jg_launch_counters(const jg_context *c, jg_counters *out)
{
    if (!c || !out) return status_set(JG_ERR_NULL, "jg_launch_counters: %s is null", !c ? "context" : "counters");
    memset(out, 0, sizeof *out);
    if (!context_is_software(c) || !c->device.driver->counters)
        return status_set(JG_ERR_UNSUPPORTED, "only the software GPU counts; open with driver_path = \"swgpu\"");
    uint64_t values[COUNTERS] = {0};
    c->device.driver->counters(values, COUNTERS);
    unsigned next = 0;
#define TAKE(name) out->name = values[next++];
    SWGPU_COUNTERS(TAKE)
#undef TAKE
    return JG_OK;
}
