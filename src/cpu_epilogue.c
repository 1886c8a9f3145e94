/* The epilogue of the cpu device: the steps of JG_EPILOGUE_ in jitgemm.h, in that order, each over a row of floats. With
 * JG_MATH_FLUSH each operation flushes its operands and its result, as those of the kernels do. */
#include "cpu_epilogue.h"
#include "cpu_elements.h"
#include "cpu_numbers.h"

cpu_epilogue cpu_epilogue_of(const problem *p, const operands *o)
{
    /* With an alpha of 0 the sum is 0. */
    const int is_plain = !p->epilogue && !p->activation && (o->alpha == 0.0f || o->alpha == 1.0f) && (o->beta == 0.0f || o->beta == 1.0f);
    const int is_exact = p->type_c == JG_S32 && is_plain;
    return (cpu_epilogue){p, o->c, o->alpha, o->beta, is_exact, operands_fused(o)};
}

static int is_flushing(const cpu_epilogue *e)
{
    return (e->p->math & JG_MATH_FLUSH) != 0;
}

static float multiply(int flushes, float a, float b)
{
    return flushes ? cpu_flush_mul(a, b) : a * b;
}

static float add(int flushes, float a, float b)
{
    return flushes ? cpu_flush_add(a, b) : a + b;
}

static void multiply_all(int flushes, float factor, int count, float *x)
{
    for (int s = 0; s < count; s++) x[s] = multiply(flushes, x[s], factor);
}

static void add_to_all(int flushes, float term, int count, float *x)
{
    for (int s = 0; s < count; s++) x[s] = add(flushes, x[s], term);
}

/* What each sum is multiplied by: alpha, scale, scale_m and scale_n, from left to right. Where the problem is swapped, the
 * caller's M is our N, and comes first nevertheless. */
static void make_factors(const cpu_epilogue *e, int64_t i, int64_t j, int count, float *f)
{
    const int flushes = is_flushing(e), by_row = (e->p->epilogue & JG_EPILOGUE_SCALE_M) != 0;
    const float factor = e->p->epilogue & JG_EPILOGUE_SCALE ? multiply(flushes, e->alpha, e->fused.scale[0]) : e->alpha;
    for (int s = 0; s < count; s++) f[s] = factor;
    if (by_row && !e->p->swapped) multiply_all(flushes, e->fused.scale_m[i], count, f);
    if (e->p->epilogue & JG_EPILOGUE_SCALE_N)
        for (int s = 0; s < count; s++) f[s] = multiply(flushes, f[s], e->fused.scale_n[j + s]);
    if (by_row && e->p->swapped) multiply_all(flushes, e->fused.scale_m[i], count, f);
}

FOR_EACH_PROCESSOR
static void add_scaled_fused(float beta, int count, const float *f, const float *c, float *x)
{
    for (int s = 0; s < count; s++) {
        const float scaled = beta * c[s];
        x[s] = __builtin_fmaf(f[s], x[s], scaled);
    }
}

/* f * x + beta * c; c holds elements of C. */
static void add_scaled(const cpu_epilogue *e, int count, const float *f, const float *c, float *x)
{
    const float beta = e->beta;
    const int flushes = is_flushing(e);
    if (problem_math_mode(e->p) == JG_MATH_STRICT) {
        for (int s = 0; s < count; s++) x[s] = add(flushes, multiply(flushes, f[s], x[s]), multiply(flushes, beta, c[s]));
    } else if (flushes) {
        for (int s = 0; s < count; s++) x[s] = cpu_flush_fma(f[s], x[s], cpu_flush_mul(beta, c[s]));
    } else {
        add_scaled_fused(beta, count, f, c, x);
    }
}

/* The caller's bias_m, then bias_n, as make_factors. */
static void add_biases(const cpu_epilogue *e, int64_t i, int64_t j, int count, float *x)
{
    const int flushes = is_flushing(e), by_row = (e->p->epilogue & JG_EPILOGUE_BIAS_M) != 0;
    const jg_type type = (jg_type)e->p->type_bias;
    float of_row = 0, bias[CPU_ROW];
    if (by_row) cpu_read(type, 0, e->fused.bias_m, i, 1, 1, &of_row);
    if (by_row && !e->p->swapped) add_to_all(flushes, of_row, count, x);
    if (e->p->epilogue & JG_EPILOGUE_BIAS_N) {
        cpu_read(type, 0, e->fused.bias_n, j, 1, count, bias);
        for (int s = 0; s < count; s++) x[s] = add(flushes, x[s], bias[s]);
    }
    if (by_row && e->p->swapped) add_to_all(flushes, of_row, count, x);
}

static void add_residual(const cpu_epilogue *e, int64_t item, int64_t i, int64_t j, int count, float *x)
{
    const problem *p = e->p;
    const int flushes = is_flushing(e);
    float residual[CPU_ROW];
    cpu_read((jg_type)p->type_c, p->math & MATH_FLAGS, e->fused.residual, item * p->stride_residual + i * p->ld_residual + j, 1,
             count, residual);
    for (int s = 0; s < count; s++) x[s] = add(flushes, x[s], residual[s]);
}

FOR_EACH_PROCESSOR
static void activate_row(u32 kind, float low, float high, int count, float *x)
{
    for (int s = 0; s < count; s++) x[s] = jg_activate(kind, x[s], low, high);
}

static void activate(const cpu_epilogue *e, int count, float *x)
{
    const u32 kind = e->p->activation;
    const float low = e->fused.clamp_low, high = e->fused.clamp_high;
    if (is_flushing(e)) {
        for (int s = 0; s < count; s++) x[s] = cpu_activate_flushed(kind, x[s], low, high);
    } else {
        activate_row(kind, low, high, count, x);
    }
}

/* What is fused in, between alpha and beta and the rounding to C's type. */
static void fuse(const cpu_epilogue *e, int64_t item, int64_t i, int64_t j, int count, float *x)
{
    const unsigned flags = e->p->epilogue;
    const int flushes = is_flushing(e);
    add_biases(e, i, j, count, x);
    if (flags & JG_EPILOGUE_RESIDUAL) add_residual(e, item, i, j, count, x);
    if (e->p->activation) activate(e, count, x);
    if (flags & JG_EPILOGUE_RESIDUAL_AFTER) add_residual(e, item, i, j, count, x);
    if (flags & JG_EPILOGUE_REQUANTIZE)
        for (int s = 0; s < count; s++) x[s] = add(flushes, multiply(flushes, x[s], e->fused.out_scale), e->fused.out_zero);
}

void cpu_epilogue_row(const cpu_epilogue *e, int64_t item, int64_t i, int64_t j, int count, float *x)
{
    const problem *p = e->p;
    const jg_type type = (jg_type)p->type_c;
    const unsigned flags = p->math & MATH_FLAGS;
    const int flushes = is_flushing(e);
    const int64_t first = item * p->stride_c + i * p->ldc + j;
    float f[CPU_ROW], c[CPU_ROW];
    make_factors(e, i, j, count, f);
    if (e->beta == 0.0f) {
        for (int s = 0; s < count; s++) x[s] = multiply(flushes, f[s], x[s]);
    } else {
        cpu_read(type, flags, e->c, first, 1, count, c);
        add_scaled(e, count, f, c, x);
    }
    if (p->epilogue | p->activation) fuse(e, item, i, j, count, x);
    cpu_write(type, flags, e->c, first, count, x);
}

void cpu_epilogue_integers(const cpu_epilogue *e, int64_t item, int64_t i, int64_t j, int count, const int32_t *sums)
{
    uint32_t *c = (uint32_t *)e->c + item * e->p->stride_c + i * e->p->ldc + j;
    if (e->beta == 0.0f) {
        memcpy(c, sums, (size_t)count * sizeof *c);
    } else {
        for (int s = 0; s < count; s++) c[s] += (uint32_t)sums[s];
    }
}
