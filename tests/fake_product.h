/* A product and what is fused into it by plain loops, from a launch's arguments and what its kernel's name promises. A part of
 * fake_cuda.c. */
#ifndef JG_TESTS_FAKE_PRODUCT_H
#define JG_TESTS_FAKE_PRODUCT_H

#include "fake_cuda.h"
#include "fake_numbers.h"

/* What a kernel's name says. -1 where it leaves the matter to the launch. */
typedef struct promise {
    int family; /* 's', 'm' or 't' */
    int type_a, type_b, type_c, trans_a, trans_b, vec_a, vec_b, vec_c, batched, is_specialised;
    int tile_m, tile_n, tile_k, part_m, part_n, stages, slices;
    unsigned math;
    long long fusion;                 /* without the type of C; also -1 */
    long long m, n, k, lda, ldb, ldc; /* also -1 there */
} promise;

enum { TRANS_A = 1, TRANS_B = 2, VEC_A = 4, VEC_B = 8, VEC_C = 16 };

/* A fusion word's parts. */
static int type_c_of(uint32_t fusion)
{
    return (int)(fusion >> 12 & 15);
}

static int type_bias_of(uint32_t fusion)
{
    return (int)(fusion >> 16 & 15);
}

static int group_of(uint32_t fusion)
{
    return fusion >> 20 & 3 ? 16 << (fusion >> 20 & 3) : 0;
}

static int multiplies_integers(const promise *p)
{
    return is_integer(p->type_a) && is_integer(p->type_b);
}

/* The type that weights and 8-bit floats are widened to. */
static int wide_type(const promise *p)
{
    return p->type_a == JG_BF16 || p->type_b == JG_BF16 ? JG_BF16 : JG_F16;
}

/* An integer that is a weight of a float's: (q - zero) * scale, rounded to the float's type. */
static float weight(const promise *p, const launch_args *a, int32_t q, int64_t item, int64_t count, int64_t mn, int64_t k)
{
    const int type = wide_type(p), group = group_of(a->fusion);
    float x = (float)q;
    uint16_t rounded;
    if (group) {
        const int64_t at = item * a->stride_group + k / group * count + mn;
        const int zero = a->fusion & 1u << 22 ? a->group_zeros[at] : 0;
        x = (float)(q - zero) * get(a->group_scales, type, at, 0);
    }
    rounded = type == JG_F16 ? to_f16(x) : to_bf16(x);
    return cleaned(type == JG_F16 ? from_f16(rounded) : float_of((uint32_t)rounded << 16), type, p->math);
}

static float element_a(const promise *p, const launch_args *a, int64_t item, int64_t i, int64_t l)
{
    const int64_t at = item * a->stride_a + (a->flags & TRANS_A ? l * a->lda + i : i * a->lda + l);
    if (is_integer(p->type_a)) return weight(p, a, get_integer(a->a, p->type_a, at), item, a->m, i, l);
    return get(a->a, p->type_a, at, p->math);
}

static float element_b(const promise *p, const launch_args *a, int64_t item, int64_t l, int64_t j)
{
    const int64_t at = item * a->stride_b + (a->flags & TRANS_B ? j * a->ldb + l : l * a->ldb + j);
    if (is_integer(p->type_b)) return weight(p, a, get_integer(a->b, p->type_b, at), item, a->n, j, l);
    return get(a->b, p->type_b, at, p->math);
}

/* Sums of floats: tensor cores' own order and tf32's few bits are not told apart from a plain chain. */
static float sum_of_floats(const promise *p, const launch_args *a, int64_t k, int64_t item, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t l = 0; l < k; l++) {
        const float x = element_a(p, a, item, i, l), y = element_b(p, a, item, l, j);
        volatile float product = x * y;
        sum = (p->math & 15) == JG_MATH_STRICT ? sum + product : fused(x, y, sum);
    }
    return sum;
}

/* Modulo 2^32. */
static int32_t sum_of_integers(const promise *p, const launch_args *a, int64_t k, int64_t item, int64_t i, int64_t j)
{
    uint32_t sum = 0;
    for (int64_t l = 0; l < k; l++) {
        const int64_t at_a = item * a->stride_a + (a->flags & TRANS_A ? l * a->lda + i : i * a->lda + l);
        const int64_t at_b = item * a->stride_b + (a->flags & TRANS_B ? j * a->ldb + l : l * a->ldb + j);
        sum += (uint32_t)(get_integer(a->a, p->type_a, at_a) * get_integer(a->b, p->type_b, at_b));
    }
    return (int32_t)sum;
}

/* Every step of jg_problem.epilogue, in the order that the public header gives. volatile: each is rounded by itself. */
static float finished(const promise *p, const launch_args *a, int64_t item, int64_t i, int64_t j, float sum)
{
    const uint32_t f = a->fusion;
    const int type = type_c_of(f);
    volatile float factor = a->alpha, x;
    if (f & JG_EPILOGUE_SCALE) factor = factor * a->scale[0];
    if (f & JG_EPILOGUE_SCALE_M) factor = factor * a->scale_m[i];
    if (f & JG_EPILOGUE_SCALE_N) factor = factor * a->scale_n[j];
    x = factor * sum;
    if (a->beta != 0) {
        volatile float before = a->beta * get(a->c, type, item * a->stride_c + i * a->ldc + j, p->math);
        x = (p->math & 15) == JG_MATH_STRICT ? x + before : fused(factor, sum, before);
    }
    if (f & JG_EPILOGUE_BIAS_M) x = x + get(a->bias_m, type_bias_of(f), i, 0);
    if (f & JG_EPILOGUE_BIAS_N) x = x + get(a->bias_n, type_bias_of(f), j, 0);
    float residual = 0;
    if (f & (JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER))
        residual = get(a->residual, type, item * a->stride_residual + i * a->ld_residual + j, p->math);
    if (f & JG_EPILOGUE_RESIDUAL) x = x + residual;
    x = activated(f >> 8 & 7, x, a->clamp_low, a->clamp_high);
    if (f & JG_EPILOGUE_RESIDUAL_AFTER) x = x + residual;
    if (f & JG_EPILOGUE_REQUANTIZE) {
        x = x * a->out_scale;
        x = x + a->out_zero;
    }
    return x;
}

static void finish_integer(const promise *p, const launch_args *a, int64_t item, int64_t i, int64_t j, int32_t sum)
{
    const int64_t at = item * a->stride_c + i * a->ldc + j;
    if ((a->fusion & 0x7ff) == 0 && type_c_of(a->fusion) == JG_S32 && a->alpha == 1 && (a->beta == 0 || a->beta == 1)) {
        int32_t *c = a->c;
        c[at] = (int32_t)((uint32_t)sum + (a->beta == 1 ? (uint32_t)c[at] : 0));
    } else {
        set(a->c, type_c_of(a->fusion), at, finished(p, a, item, i, j, (float)sum), p->math);
    }
}

/* The product, as the public header defines it. */
static void compute(const promise *p, const launch_args *a)
{
    const int64_t k = a->alpha == 0 ? 0 : a->k;
    for (int64_t item = 0; item < a->batch; item++)
        for (int64_t i = 0; i < a->m; i++)
            for (int64_t j = 0; j < a->n; j++) {
                if (multiplies_integers(p)) finish_integer(p, a, item, i, j, sum_of_integers(p, a, k, item, i, j));
                else
                    set(a->c, type_c_of(a->fusion), item * a->stride_c + i * a->ldc + j,
                        finished(p, a, item, i, j, sum_of_floats(p, a, k, item, i, j)), p->math);
            }
}

#endif
