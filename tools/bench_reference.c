/* Whether a result is right: elements of C once more in double, and how far from them a result may be. See bench_pool.h. */
#include "bench_elements.h"
#include "bench_pool.h"

#include <math.h>

enum { CHECKED = 64, DISPUTED = 1000 };
#define ROUND 0x1p-24 /* of one operation in float32 */

/* A value, and how far a right one may be from it. */
typedef struct bounded {
    double value, error;
} bounded;

/* ---- elements of A and B ---- */

/* As the kernel reads it. */
static double flushed(const problem *p, double value, jg_type type)
{
    return p->math & JG_MATH_FLUSH && fabs(value) < bench_element_normal(type) ? 0 : value;
}

/* The scale and zero point of a weight: line is its place along m or n. */
static double dequantised(const bench_layout *l, int b, int64_t item, int64_t along_k, int64_t line, double value)
{
    const problem *p = &l->problem;
    const int64_t groups = (p->k + p->group_k - 1) / p->group_k, lines = b ? p->n : p->m;
    const int64_t of_item = (b ? p->stride_b : p->stride_a) ? item * groups * lines : 0;
    const size_t at = (size_t)(of_item + along_k / p->group_k * lines + line);
    const double zero = p->zero_points ? (double)bench_extra_value(l, BENCH_GROUP_ZEROS, at) : 0;
    const double scaled = (value - zero) * (double)bench_extra_value(l, BENCH_GROUP_SCALES, at);
    return (double)bench_element_rounded((float)scaled, (jg_type)(b ? p->type_a : p->type_b));
}

/* Element of op(A) or op(B): `at` counts from the first element of the matrix. */
static double operand(const bench_pool *pool, const bench_layout *l, int b, int64_t item, int64_t at, int64_t along_k,
                      int64_t line)
{
    const problem *p = &l->problem;
    const jg_type type = (jg_type)(b ? p->type_b : p->type_a);
    const int apart = b && p->type_a != p->type_b;
    const size_t begins = b ? l->b_offset + (apart ? 0 : l->a_bytes * l->sets) : l->a_offset;
    const size_t first = begins * 8 / type_bits(type);
    const double value = (double)pool->patterns[apart][(first + (size_t)at) % BENCH_POOL_PERIOD];
    if (p->group_k && problem_is_weights(p, b)) return dequantised(l, b, item, along_k, line, value);
    return flushed(p, value, type);
}

/* ---- sums ---- */

static int sums_are_integers(const problem *p)
{
    return type_is_integer((jg_type)p->type_a) && type_is_integer((jg_type)p->type_b);
}

static int is_narrow_float(uint8_t type)
{
    return type == JG_E4M3 || type == JG_E5M2;
}

/* How far a sum of k products of about `unit` may be off: see bench_pool.h. absolute: the sum of their absolute values. */
static double sum_error(const problem *p, double sum, double absolute, double unit)
{
    const double k = p->k > 8 ? (double)p->k : 8, large = fabs(sum) + 2 * sqrt(k) * unit;
    const unsigned mode = problem_math_mode(p);
    if (sums_are_integers(p)) return 0;
    if (mode == JG_MATH_F16) return sqrt(k / 8 + 8) * 0x1p-9 * large;
    double error = k * 0x1p-23 * absolute;
    if (mode == JG_MATH_F32_3XTF32) error *= 4;
    if (mode == JG_MATH_TF32) error += 0x1p-10 * absolute;
    if (is_narrow_float(p->type_a) || is_narrow_float(p->type_b)) error += (k / 32 + 8) * 0x1p-12 * large;
    return error;
}

static bounded sum_of(const bench_pool *pool, const bench_layout *l, int64_t item, int64_t i, int64_t j)
{
    const problem *p = &l->problem;
    double sum = 0, absolute = 0;
    for (int64_t x = 0; x < p->k; x++) {
        const int64_t at_a = item * p->stride_a + (p->op_a == JG_T ? x * p->lda + i : i * p->lda + x);
        const int64_t at_b = item * p->stride_b + (p->op_b == JG_T ? j * p->ldb + x : x * p->ldb + j);
        const double product = operand(pool, l, 0, item, at_a, x, i) * operand(pool, l, 1, item, at_b, x, j);
        sum += product;
        absolute += fabs(product);
    }
    if (sums_are_integers(p)) sum = (double)(int32_t)(uint32_t)(int64_t)sum; /* modulo 2^32 */
    return (bounded){sum, sum_error(p, sum, absolute, l->unit / (double)l->alpha)};
}

/* ---- what is fused in ---- */

/* An operation in float32 rounds what it gives. */
static bounded rounded(double value, double error)
{
    return (bounded){value, error + fabs(value) * ROUND};
}

static bounded times(bounded x, double factor)
{
    return rounded(x.value * factor, x.error * fabs(factor));
}

static bounded plus(bounded x, double term)
{
    return rounded(x.value + term, x.error);
}

static double extra(const bench_layout *l, bench_extra_kind kind, int64_t index)
{
    return (double)bench_extra_value(l, kind, (size_t)index);
}

/* The derivative of the smooth ones is at most 1.13, and their own error is that of hardware that approximates. */
static bounded activate(const bench_layout *l, const jg_operands *data, bounded in)
{
    const double x = in.value;
    const bounded smooth = {0, 1.2 * in.error + (1 + fabs(x)) * 0x1p-18};
    switch (l->problem.activation) {
    case JG_ACTIVATION_RELU: return (bounded){x > 0 ? x : 0, in.error};
    case JG_ACTIVATION_RELU6: return (bounded){x > 6 ? 6 : x > 0 ? x : 0, in.error};
    case JG_ACTIVATION_CLAMP:
        return (bounded){fmin(fmax(x, (double)data->clamp_low), (double)data->clamp_high), in.error};
    case JG_ACTIVATION_GELU_TANH:
        return (bounded){x / 2 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))), smooth.error};
    case JG_ACTIVATION_GELU_ERF: return (bounded){x / 2 * (1 + erf(x * 0.7071067811865476)), smooth.error};
    case JG_ACTIVATION_SILU: return (bounded){x / (1 + exp(-x)), smooth.error};
    case JG_ACTIVATION_SIGMOID: return (bounded){1 / (1 + exp(-x)), smooth.error};
    default: return in;
    }
}

static bounded fuse(const bench_pool *pool, const bench_layout *l, bounded x, int64_t item, int64_t i, int64_t j)
{
    const problem *p = &l->problem;
    const jg_operands data = bench_pool_operands(pool, l, 0, NULL);
    if (sums_are_integers(p)) x = rounded(x.value, 0); /* to float32 */
    if (p->epilogue & JG_EPILOGUE_SCALE) x = times(x, extra(l, BENCH_SCALE, 0));
    if (p->epilogue & JG_EPILOGUE_SCALE_M) x = times(x, extra(l, BENCH_SCALE_M, i));
    if (p->epilogue & JG_EPILOGUE_SCALE_N) x = times(x, extra(l, BENCH_SCALE_N, j));
    x = (bounded){x.value * (double)l->alpha, x.error * (double)l->alpha};
    if (p->epilogue & JG_EPILOGUE_BIAS_M) x = plus(x, extra(l, BENCH_BIAS_M, i));
    if (p->epilogue & JG_EPILOGUE_BIAS_N) x = plus(x, extra(l, BENCH_BIAS_N, j));
    const int64_t at = item * p->stride_residual + i * p->ld_residual + j;
    const double residual = l->extras[BENCH_RESIDUAL].count
                                ? flushed(p, extra(l, BENCH_RESIDUAL, at), (jg_type)p->type_c) : 0;
    if (p->epilogue & JG_EPILOGUE_RESIDUAL) x = plus(x, residual);
    x = activate(l, &data, x);
    if (p->epilogue & JG_EPILOGUE_RESIDUAL_AFTER) x = plus(x, residual);
    if (p->epilogue & JG_EPILOGUE_REQUANTIZE) x = plus(times(x, (double)data.out_scale), (double)data.out_zero);
    return x;
}

/* Whether C is the integer sums as they are. */
static int is_plain(const bench_layout *l)
{
    return sums_are_integers(&l->problem) && l->problem.type_c == JG_S32 && !problem_is_fused(&l->problem);
}

static double saturated(const problem *p, double value)
{
    const jg_type type = (jg_type)p->type_c;
    const double most = type == JG_F16 && p->math & JG_MATH_SANITIZE ? 65504 : bench_element_most(type);
    const double least = type == JG_F16 && p->math & JG_MATH_SANITIZE ? -65504 : bench_element_least(type);
    return fmin(fmax(value, least), most);
}

/* ---- checks ---- */

/* An error over what is allowed; a NaN is infinitely wrong. */
static double part_of(double error, double allowed)
{
    const double part = error / allowed;
    return part >= 0 ? part : INFINITY;
}

/* An s32 of C in full, which a float does not hold. */
static double element(const void *c, size_t index, jg_type type)
{
    return type == JG_S32 ? (double)((const int32_t *)c)[index] : (double)bench_element_get(c, index, type);
}

/* The error of one element of C, over what is allowed. */
static double error_at(const bench_pool *pool, const bench_layout *l, const void *c, int64_t item, int64_t i, int64_t j)
{
    const problem *p = &l->problem;
    const jg_type type = (jg_type)p->type_c;
    const double got = element(c, (size_t)(item * p->stride_c + i * p->ldc + j), type);
    bounded right = sum_of(pool, l, item, i, j);
    if (is_plain(l)) return part_of(fabs(got - right.value), 0.5);
    if (problem_is_fused(p) || l->alpha != 1 || sums_are_integers(p)) right = fuse(pool, l, right, item, i, j);
    const double value = saturated(p, right.value), flush = p->math & JG_MATH_FLUSH ? bench_element_normal(type) : 0;
    return part_of(fabs(got - value), right.error + bench_element_rounding(value, type) + flush + 0x1p-126);
}

double bench_pool_check(const bench_pool *pool, const bench_layout *l, const void *c)
{
    const problem *p = &l->problem;
    uint64_t state = 2;
    double worst = 0;
    for (int s = 0; s < CHECKED; s++) {
        const uint64_t x = bench_random(&state), y = bench_random(&state), z = bench_random(&state);
        const int64_t i = s < 4 ? (s & 1) * (p->m - 1) : (int64_t)(x % (uint64_t)p->m);
        const int64_t j = s < 4 ? (s >> 1) * (p->n - 1) : (int64_t)(y % (uint64_t)p->n);
        const int64_t item = s < 4 ? p->batch - 1 : (int64_t)(z % (uint64_t)p->batch);
        const double part = error_at(pool, l, c, item, i, j);
        if (part > worst) worst = part;
    }
    return worst;
}

/* What two right results may differ by before they are rounded: each is off by what its mode may lose, but for the usual one,
 * where the order is all that differs. */
static double difference_allowed(const bench_layout *l, double value)
{
    const problem *p = &l->problem;
    const double k = (double)(p->k > 0 ? p->k : 1), usual = k * 0x1p-20 * l->unit;
    const int is_usual = problem_math_mode(p) == JG_MATH_DEFAULT && !is_narrow_float(p->type_a) && !is_narrow_float(p->type_b);
    if (is_plain(l)) return 0;
    return is_usual ? usual : usual + 2 * sum_error(p, value, k * l->unit / 4, l->unit);
}

double bench_pool_compare(const bench_pool *pool, const bench_layout *l, const void *c, const void *other, double *own)
{
    const problem *p = &l->problem;
    const jg_type type = (jg_type)p->type_c;
    double worst = 0;
    int looked_at = 0;
    for (int64_t item = 0; item < p->batch; item++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                const size_t at = (size_t)(item * p->stride_c + i * p->ldc + j);
                const double x = element(c, at, type), y = element(other, at, type);
                const double roundings = is_plain(l) ? 0.5 : 4 * bench_element_rounding(x, type);
                const double part = part_of(fabs(x - y), difference_allowed(l, x) + roundings);
                if (part > worst) worst = part;
                if (part <= 1 || looked_at++ >= DISPUTED) continue;
                const double ours = error_at(pool, l, c, item, i, j);
                if (ours > *own) *own = ours;
            }
    return worst;
}
