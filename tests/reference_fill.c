/* The data that the oracle's operands are filled with. */
#include "reference_parts.h"

#include <math.h>

uint64_t reference_random(uint64_t *state)
{
    /* A Weyl sequence through two multiply-and-fold rounds. */
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

/* In [-1, 1). */
static double unit_value(uint64_t *state)
{
    return (double)(reference_random(state) >> 11) * 0x1p-52 - 1;
}

/* Over the type's range; of s32, one in eight, else what sums of 8-bit products come to. */
static double any_integer(jg_type type, uint64_t *state)
{
    double unit = unit_value(state), least = reference_smallest(type), most = reference_largest(type);
    if (type == JG_S32 && reference_random(state) % 8) return rint(unit * 100000);
    return floor(least + (unit + 1) / 2 * (most - least + 1));
}

static double next_value(jg_type type, reference_fill fill, uint64_t *state)
{
    switch (fill) {
    case REFERENCE_ONES: return 1;
    case REFERENCE_INTEGERS: return (double)(reference_random(state) % 7) - (type == JG_U8 ? 0 : 3);
    case REFERENCE_UNIFORM: break;
    }
    return reference_is_integer(type) ? any_integer(type, state) : unit_value(state);
}

static void fill_matrix(reference_matrix *x, double (*next)(const reference_matrix *x, reference_fill fill, uint64_t *state),
                        reference_fill fill, uint64_t state)
{
    int64_t items = x->stride == 0 && x->batch > 1 ? 1 : x->batch;
    if (!x->block) return;
    for (int64_t item = 0; item < items; item++)
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t j = 0; j < x->cols; j++) reference_set(x, item, i, j, next(x, fill, &state));
}

static double element(const reference_matrix *x, reference_fill fill, uint64_t *state)
{
    return next_value(x->type, fill, state);
}

static double scale(const reference_matrix *x, reference_fill fill, uint64_t *state)
{
    (void)x;
    switch (fill) {
    case REFERENCE_ONES: return 1;
    case REFERENCE_INTEGERS: return ldexp(1, (int)(reference_random(state) % 3) - 1);
    case REFERENCE_UNIFORM: break;
    }
    return 1 + unit_value(state) / 2;
}

/* For s8 weights and for s4: to a magnitude of about 1. */
static double group_scale_s8(const reference_matrix *x, reference_fill fill, uint64_t *state)
{
    return scale(x, fill, state) * (fill == REFERENCE_UNIFORM ? 0x1p-6 : 1);
}

static double group_scale_s4(const reference_matrix *x, reference_fill fill, uint64_t *state)
{
    return scale(x, fill, state) * (fill == REFERENCE_UNIFORM ? 0x1p-2 : 1);
}

static double group_zero(const reference_matrix *x, reference_fill fill, uint64_t *state)
{
    if (fill == REFERENCE_ONES) return 0;
    return fill == REFERENCE_UNIFORM ? floor(8 * unit_value(state)) : next_value(x->type, fill, state);
}

static double bias(const reference_matrix *x, reference_fill fill, uint64_t *state)
{
    return fill == REFERENCE_ONES ? 0 : fill == REFERENCE_UNIFORM ? 2 * unit_value(state) : next_value(x->type, fill, state);
}

static double residual(const reference_matrix *x, reference_fill fill, uint64_t *state)
{
    return fill == REFERENCE_ONES ? 0 : next_value(x->type, fill, state);
}

/* Multiplies what a matrix holds. */
static void multiply(reference_matrix *x, double by)
{
    if (!x->block) return;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) reference_set(x, 0, i, j, reference_get(x, 0, i, j) * by);
}

/* The standard deviation of a UNIFORM factor. */
static double deviation(const reference *ref, const reference_matrix *x)
{
    if (!reference_is_integer(x->type)) return 0.58;
    if (x == reference_weights(ref) && ref->problem.group_k) return 1.2;
    return 0.58 * reference_largest(x->type);
}

/* What a C of integers should reach: slightly beyond its range. Of s8 and u8 one in twelve saturates at either end. */
static double wanted_spread(jg_type type)
{
    return type == JG_S32 ? 10000 : 75;
}

static int is_narrow_activation(jg_activation activation)
{
    return activation >= JG_ACTIVATION_GELU_TANH;
}

/* UNIFORM: the first scale brings sums to a magnitude that the activation is interesting at, or that C can hold, and out_scale
 * from there to what C can hold. */
static void scale_to_range(reference *ref)
{
    const jg_problem *p = &ref->problem;
    const int integers = reference_is_integer(ref->a.type) && reference_is_integer(ref->b.type), integer_c =
        reference_is_integer(ref->c.type);
    const double k = ref->k > 0 ? (double)ref->k : 1;
    /* Of u8 alone nothing cancels. */
    const int grows = ref->a.type == JG_U8 && ref->b.type == JG_U8;
    const double sums = grows ? k * 127.5 * 127.5 : deviation(ref, &ref->a) * deviation(ref, &ref->b) * sqrt(k);
    reference_matrix *const scales[] = {&ref->scale, &ref->scale_m, &ref->scale_n};
    double spread = sums;
    if (integers || integer_c) {
        const double target = integer_c &&
            !(is_narrow_activation(p->activation) && p->epilogue & JG_EPILOGUE_REQUANTIZE && !ref->residual.block)
                                  ? wanted_spread(ref->c.type) : 2;
        for (int i = 0; i < 3; i++) {
            if (!scales[i]->block) continue;
            multiply(scales[i], target / sums);
            spread = target;
            break;
        }
    }
    ref->clamp_low = (float)(-0.75 * spread);
    ref->clamp_high = (float)spread;
    if (p->activation == JG_ACTIVATION_SIGMOID) spread = 0.5;
    if (p->activation == JG_ACTIVATION_RELU6) spread = 3;
    ref->out_scale = (float)(integer_c ? wanted_spread(ref->c.type) / spread : 1.25);
    ref->out_zero = ref->c.type == JG_U8 ? 120 : integer_c ? -5 : -0.5f;
}

/* One element in sixteen. */
static void plant(const reference *ref, reference_matrix *x, uint64_t state)
{
    const int flush = (ref->problem.math & JG_MATH_FLUSH) != 0, sanitize = (ref->problem.math & JG_MATH_SANITIZE) != 0;
    if (!x->block || reference_is_integer(x->type) || !(flush || sanitize)) return;
    for (int64_t item = 0; item < (x->stride ? x->batch : 1) && item < x->batch; item++)
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t j = 0; j < x->cols; j++) {
                const uint64_t random = reference_random(&state);
                const double sign = random & 1 ? 1 : -1;
                if (random >> 8 & 15) continue;
                if (flush && !(sanitize && random & 2))
                    reference_set(x, item, i, j, sign * reference_smallest_normal(x->type) * 0.75);
                else if (random & 4)
                    reference_set(x, item, i, j, (double)NAN);
                else if (x->type == JG_E5M2) /* which saturates when it is set */
                    reference_set_bits(x, item, i, j, random & 1 ? 0x7c : 0xfc);
                else
                    reference_set(x, item, i, j, sign * (double)INFINITY);
            }
}

void reference_fill_all(reference *ref, reference_fill fill, uint64_t seed)
{
    const int s4 = reference_weights(ref) && reference_weights(ref)->type == JG_S4;
    fill_matrix(&ref->a, element, fill, seed * 3);
    fill_matrix(&ref->b, element, fill, seed * 3 + 1);
    fill_matrix(&ref->c, element, fill, seed * 3 + 2);
    seed = ~seed * 16;
    fill_matrix(&ref->residual, residual, fill, seed);
    fill_matrix(&ref->scale, scale, fill, seed + 1);
    fill_matrix(&ref->scale_m, scale, fill, seed + 2);
    fill_matrix(&ref->scale_n, scale, fill, seed + 3);
    fill_matrix(&ref->bias_m, bias, fill, seed + 4);
    fill_matrix(&ref->bias_n, bias, fill, seed + 5);
    fill_matrix(&ref->group_scales, s4 ? group_scale_s4 : group_scale_s8, fill, seed + 6);
    fill_matrix(&ref->group_zeros, group_zero, fill, seed + 7);
    switch (fill) {
    case REFERENCE_ONES: ref->clamp_low = -1e30f, ref->clamp_high = 1e30f, ref->out_scale = 1; break;
    case REFERENCE_INTEGERS: ref->clamp_low = -8, ref->clamp_high = 24, ref->out_scale = 0.5f, ref->out_zero = 1; break;
    case REFERENCE_UNIFORM: scale_to_range(ref); break;
    }
    if (fill != REFERENCE_UNIFORM) return;
    plant(ref, &ref->a, seed + 8);
    plant(ref, &ref->b, seed + 9);
    plant(ref, &ref->c, seed + 10);
    plant(ref, &ref->residual, seed + 11);
}
