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
    FLAG_VEC_C = 16,
    FLAG_SWAPPED = 32,
};

#define COUNT(name) +1
enum { COUNTERS = 0 SWGPU_COUNTERS(COUNT) };
#undef COUNT

_Static_assert(sizeof(launch_args) == 208, "launch_args must match struct jg_args of the templates");

/* Scales of an item's weights. */
static uint64_t groups_of_item(const problem *p)
{
    const int64_t groups = (p->k + p->group_k - 1) / p->group_k;
    return (uint64_t)(groups * (problem_is_weights(p, 1) ? p->n : p->m));
}

static int64_t stride_of_groups(const problem *p)
{
    if (!p->group_k) return 0;
    const int64_t stride = problem_is_weights(p, 1) ? p->stride_b : p->stride_a;
    return stride ? (int64_t)groups_of_item(p) : 0;
}

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
    args->ld_residual = p->ld_residual;
    args->stride_residual = p->stride_residual;
    args->stride_group = stride_of_groups(p);
    args->fusion = kernel_fusion(p);
    args->flags = (p->op_a == JG_T ? FLAG_TRANS_A : 0) | (p->op_b == JG_T ? FLAG_TRANS_B : 0) |
                  (chosen->access.a == 16 ? FLAG_VEC_A : 0) | (chosen->access.b == 16 ? FLAG_VEC_B : 0) |
                  (chosen->access.c ? FLAG_VEC_C : 0);
}

HOT void launch_fill(const problem *p, const operands *o, launch_args *args)
{
    args->a = o->a;
    args->b = o->b;
    args->c = o->c;
    args->alpha = o->alpha;
    args->beta = o->beta;
    if (!problem_is_fused(p)) return;
    if (o->swapped) args->flags |= FLAG_SWAPPED;
    const fused_operands f = operands_fused(o);
    args->residual = f.residual;
    args->scale = f.scale;
    args->scale_m = f.scale_m;
    args->scale_n = f.scale_n;
    args->bias_m = f.bias_m;
    args->bias_n = f.bias_n;
    args->group_scales = f.group_scales;
    args->group_zeros = f.group_zeros;
    args->clamp_low = f.clamp_low;
    args->clamp_high = f.clamp_high;
    args->out_scale = f.out_scale;
    args->out_zero = f.out_zero;
}

/* A vector of `count` elements of so many bytes. */
static swgpu_operand vector(const char *name, const void *base, uint64_t count, uint64_t bytes)
{
    return (swgpu_operand){name, (uintptr_t)base, 1, count * bytes, count * bytes, 1, 0, 0};
}

static swgpu_operand matrix(const char *name, const void *base, jg_type type, uint64_t rows, uint64_t columns, int64_t ld, uint64_t items,
                            int64_t stride)
{
    return (swgpu_operand){name, (uintptr_t)base, rows, (uint64_t)type_row_bytes(type, (int64_t)columns),
                           (uint64_t)type_row_bytes(type, ld), items, (uint64_t)type_row_bytes(type, stride), 0};
}

/* What is fused in, to out[]; returns how many. */
static unsigned describe_fused(const problem *p, const launch_args *args, swgpu_operand *out)
{
    const uint64_t m = args->m, n = args->n, bias = type_bytes((jg_type)p->type_bias);
    const unsigned flags = p->epilogue;
    unsigned count = 0;
    if (flags & (JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER))
        out[count++] = matrix("residual", args->residual, (jg_type)p->type_c, m, n, p->ld_residual, args->batch, p->stride_residual);
    if (flags & JG_EPILOGUE_SCALE) out[count++] = vector("scale", args->scale, 1, 4);
    if (flags & JG_EPILOGUE_SCALE_M) out[count++] = vector("scale_m", args->scale_m, m, 4);
    if (flags & JG_EPILOGUE_SCALE_N) out[count++] = vector("scale_n", args->scale_n, n, 4);
    if (flags & JG_EPILOGUE_BIAS_M) out[count++] = vector("bias_m", args->bias_m, m, bias);
    if (flags & JG_EPILOGUE_BIAS_N) out[count++] = vector("bias_n", args->bias_n, n, bias);
    if (!p->group_k || args->alpha == 0.0f) return count;
    const uint64_t elements = groups_of_item(p) * (uint64_t)(args->stride_group ? args->batch : 1);
    out[count++] = vector("group_scales", args->group_scales, elements, 2);
    if (p->zero_points) out[count++] = vector("group_zeros", args->group_zeros, elements, 1);
    return count;
}

unsigned launch_describe(const problem *p, const launch_args *args, swgpu_operand *out)
{
    const int trans_a = p->op_a == JG_T, trans_b = p->op_b == JG_T;
    const uint64_t m = args->m, n = args->n, k = args->k, items = args->batch;
    unsigned count = 0;
    /* alpha = 0 reads neither A nor B. */
    if (args->alpha != 0.0f) {
        out[count++] = matrix("A", args->a, (jg_type)p->type_a, trans_a ? k : m, trans_a ? m : k, p->lda, items, p->stride_a);
        out[count++] = matrix("B", args->b, (jg_type)p->type_b, trans_b ? n : k, trans_b ? k : n, p->ldb, items, p->stride_b);
    }
    out[count] = matrix("C", args->c, (jg_type)p->type_c, m, n, p->ldc, items, p->stride_c);
    out[count++].writable = SWGPU_WRITABLE_APART;
    return count + describe_fused(p, args, &out[count]);
}

/* So that it can tell an element from what lies between rows. */
static void describe(const driver *d, const problem *p, const launch_args *args)
{
    swgpu_operand all[LAUNCH_MAX_DESCRIBED];
    const unsigned count = launch_describe(p, args, all);
    d->describe(all, count, (uint64_t)args->m * args->n * args->k * args->batch);
}

HOT jg_status launch_kernel(const device *dev, const loaded_kernel *kernel, const problem *p, const plan *chosen, launch_args *args,
                            CUstream stream)
{
    void *parameters[] = {args};
    if (dev->driver->describe) describe(dev->driver, p, args);
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
