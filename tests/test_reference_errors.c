/* The oracle's bounds: by hand, and against an independent float loop that it must accept. */
#include "reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define ALL_SCALES (JG_EPILOGUE_SCALE | JG_EPILOGUE_SCALE_M | JG_EPILOGUE_SCALE_N)
#define ALL_BIASES (JG_EPILOGUE_BIAS_M | JG_EPILOGUE_BIAS_N)

/* The error that each mode allows a sum of one product, 1.5, and the step that each later step adds to it. */
static void errors_by_hand(void **state)
{
    (void)state;
    const double sum = 8 * 0x1p-23 * 1.5, u = 0x1p-24;
    const struct {
        jg_type type;
        uint32_t math, epilogue;
        jg_activation activation;
        double e;
    } rows[] = {
        {JG_F32, JG_MATH_DEFAULT, 0, 0, sum},
        {JG_F32, JG_MATH_STRICT, 0, 0, sum},
        {JG_F32, JG_MATH_TF32, 0, 0, sum + 1.5 * 0x1p-10},
        {JG_F32, JG_MATH_F32_3XTF32, 0, 0, sum + 1.5 * 0x1p-20},
        {JG_F16, JG_MATH_F16, 0, 0, sum + 1.5 * (8 * 0x1p-11 + 0x1p-25)},
        {JG_F32, 0, JG_EPILOGUE_BIAS_M, 0, sum + u * (2.5 + sum)},
        {JG_F32, 0, 0, JG_ACTIVATION_RELU, sum},
        {JG_F32, 0, 0, JG_ACTIVATION_SIGMOID, 1 / (1 + exp(-1.5)) - 1 / (1 + exp(sum - 1.5)) + 0x1p-21},
        {JG_F32, 0, 0, JG_ACTIVATION_SILU, sum * 1.1 + 0x1p-22 * 2.5},
        {JG_F32, 0, 0, JG_ACTIVATION_GELU_ERF, sum * 1.13 + 0x1p-22 * 2.5},
        {JG_F32, 0, JG_EPILOGUE_REQUANTIZE, 0, sum * 4 + u * (6 + 4 * sum) + u * (7 + sum * 4 + u * (6 + 4 * sum))},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const jg_problem p = {.m = 1, .n = 1, .k = 1, .type_a = rows[i].type, .math = rows[i].math,
                              .epilogue = rows[i].epilogue, .activation = rows[i].activation};
        double r, e;
        reference ref;
        reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
        if (ref.bias_m.block) reference_set(&ref.bias_m, 0, 0, 0, 1);
        ref.out_scale = 4, ref.out_zero = 1;
        reference_product(&ref, 0, 1.5f, 0, &r, &e);
        assert_true(fabs(e - rows[i].e) < 1e-18);
        reference_free(&ref);
    }
}

static void half_sums_may_overflow(void **state)
{
    (void)state;
    const jg_problem p = {.m = 1, .n = 1, .k = 3, .type_a = JG_F16, .math = JG_MATH_F16};
    reference ref;
    reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
    reference_set(&ref.a, 0, 0, 0, 60000);
    reference_set(&ref.a, 0, 0, 2, -60000);
    reference_set(&ref.c, 0, 0, 0, INFINITY);
    assert_int_equal(reference_check(&ref, 1, 0).failures, 0);
    ref.problem.math = JG_MATH_DEFAULT;
    assert_int_equal(reference_check(&ref, 1, 0).failures, 1);
    reference_free(&ref);
}

/* Of C's rounding and E, which make up the bound, half of E is used. */
static void lost_is_a_part_of_e(void **state)
{
    (void)state;
    const jg_problem p = {.m = 1, .n = 1, .k = 1024, .type_c = JG_F32};
    double r, e;
    reference ref;
    reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
    reference_product(&ref, 0, 1, 0, &r, &e);
    assert_true(r == 1024 && fabs(e / (1024 * 0x1p-23 * 1024) - 1) < 1e-9);
    reference_set(&ref.c, 0, 0, 0, r + e / 2);
    assert_true(fabs(reference_check(&ref, 1, 0).lost - 0.5) < 0.001);
    reference_set(&ref.c, 0, 0, 0, r);
    assert_true(reference_check(&ref, 1, 0).lost == 0);
    reference_free(&ref);
}

/* What a fused multiply-add would leave of (1 + 2^-12)^2 - (1 + 2^-11) is lost where each product is rounded. */
static void strict_loop_rounds_every_product(void **state)
{
    (void)state;
    const jg_problem p = {.m = 1, .n = 1, .k = 2, .math = JG_MATH_STRICT};
    float x;
    reference ref;
    reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
    reference_set(&ref.a, 0, 0, 0, -(1 + 0x1p-11));
    reference_set(&ref.a, 0, 0, 1, 1 + 0x1p-12);
    reference_set(&ref.b, 0, 1, 0, 1 + 0x1p-12);
    reference_strict_loop(&ref, 0, 1, 0, &x);
    assert_true(x == 0);
    reference_set(&ref.c, 0, 0, 0, 0x1p-24);
    assert_int_equal(reference_strict_differences(&ref, 1, 0), 1);
    reference_set(&ref.c, 0, 0, 0, 0);
    assert_int_equal(reference_strict_differences(&ref, 1, 0), 0);
    /* beta * C is rounded before it is added. */
    reference_set(&ref.c, 0, 0, 0, 1 + 0x1p-12);
    reference_snapshot(&ref);
    reference_set(&ref.b, 0, 1, 0, 0);
    reference_strict_loop(&ref, 0, 1, 1 + 0x1p-12f, &x);
    assert_true(x == 0);
    reference_free(&ref);
}

static const jg_type pairs[][2] = {
    {JG_F32, JG_F32}, {JG_F16, JG_F16}, {JG_BF16, JG_BF16}, {JG_S8, JG_U8}, {JG_U8, JG_U8}, {JG_S4, JG_S4},
    {JG_E4M3, JG_E5M2}, {JG_F16, JG_S8}, {JG_S4, JG_BF16}, {JG_S8, JG_BF16},
};
static const uint32_t chains[] = {
    0, JG_EPILOGUE_SCALE, ALL_SCALES | ALL_BIASES,
    JG_EPILOGUE_SCALE_N | JG_EPILOGUE_BIAS_N | JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_REQUANTIZE,
    JG_EPILOGUE_SCALE_M | JG_EPILOGUE_RESIDUAL_AFTER | JG_EPILOGUE_REQUANTIZE, JG_EPILOGUE_BIAS_M, JG_EPILOGUE_REQUANTIZE,
};
#define PAIRS (sizeof pairs / sizeof pairs[0])
#define CHAINS (sizeof chains / sizeof chains[0])

static jg_problem chain_problem(size_t pair, size_t chain, int activation, jg_type type_c)
{
    const int weights = pair >= 7;
    jg_problem p = {.m = 7, .n = 9, .k = 50, .batch = 2, .type_a = pairs[pair][0], .type_b = pairs[pair][1], .type_c = type_c,
                    .order = (jg_order)(chain & 1), .epilogue = chains[chain], .activation = (jg_activation)activation,
                    .type_bias = chain & 1 ? JG_BF16 : JG_F32};
    if (weights && chain % 3 == 0) p.group_k = 32, p.zero_points = chain & 1;
    reference_pack(&p);
    return p;
}

static int is_right_c(size_t pair, jg_type type_c)
{
    return type_c != JG_S4 && (type_c != JG_S32 || (pair >= 3 && pair <= 5));
}

/* The float loop is a device that keeps the promise: the oracle accepts it everywhere, and notices one element
 * that is two of e5m2's units off. */
static void float_loop_is_accepted(void **state)
{
    (void)state;
    static float x[63];
    double r[63], e[63];
    long tried = 0, noticed = 0, all = 0;
    for (size_t pair = 0; pair < PAIRS; pair++)
        for (size_t chain = 0; chain < CHAINS; chain++)
            for (int activation = 0; activation <= JG_ACTIVATION_SIGMOID; activation++)
                for (jg_type type_c = JG_F32; type_c <= JG_E5M2; type_c++) {
                    if (!is_right_c(pair, type_c)) continue;
                    const jg_problem p = chain_problem(pair, chain, activation, type_c);
                    reference ref;
                    reference_make(&ref, &p, REFERENCE_UNIFORM, 0, chain);
                    for (int64_t item = 0; item < 2; item++) {
                        reference_strict_loop(&ref, item, 1.25f, 0.5f, x);
                        for (int at = 0; at < 63; at++) reference_set(&ref.c, item, at / 9, at % 9, (double)x[at]);
                    }
                    const reference_result result = reference_check(&ref, 1.25f, 0.5f);
                    assert_true(result.failures == 0 && result.checked == 126 && result.stray == 0);
                    assert_int_equal(reference_strict_differences(&ref, 1.25f, 0.5f), 0);
                    const double value = reference_get(&ref.c, 1, 3, 4);
                    reference_product(&ref, 1, 1.25f, 0.5f, r, e);
                    if (isfinite(value) && e[31] < 0.5) {
                        reference_set(&ref.c, 1, 3, 4, value > 1 ? value * 0.6 - 2 : value + 0.4 * fabs(value) + 2);
                        tried++;
                        noticed += reference_check(&ref, 1.25f, 0.5f).failures == 1;
                    }
                    all++;
                    reference_free(&ref);
                }
    assert_true(noticed == tried && 10 * tried > 9 * all);
}

/* Filled for C of 8-bit integers, results spread over the range; a few saturate, not all. */
static void integers_spread_over_their_range(void **state)
{
    (void)state;
    static const jg_type types[] = {JG_S8, JG_U8};
    for (size_t pair = 0; pair < PAIRS; pair++)
        for (size_t t = 0; t < 2; t++)
            for (size_t chain = 2; chain <= 4; chain++) {
                const jg_problem p = chain_problem(pair, chain, JG_ACTIVATION_NONE, types[t]);
                double r[63], e[63];
                reference ref;
                int saturated = 0, distinct[256] = {0}, values = 0;
                reference_make(&ref, &p, REFERENCE_UNIFORM, 0, chain);
                for (int64_t item = 0; item < 2; item++) {
                    reference_product(&ref, item, 1, 0, r, e);
                    for (int x = 0; x < 63; x++) {
                        const uint32_t bits = reference_encode(types[t], r[x]);
                        saturated += r[x] > (t ? 255 : 127) || r[x] < (t ? 0 : -128);
                        values += distinct[bits]++ == 0;
                    }
                }
                assert_in_range(saturated, pair == 4 ? 0 : 1, 100);
                assert_in_range(values, 20, 126);
                reference_free(&ref);
            }
}

/* Sums of integers, scaled by powers of two, are exact in float32 too. */
static void integers_are_exact(void **state)
{
    (void)state;
    static float x[63];
    for (size_t pair = 0; pair < PAIRS; pair++)
        for (size_t chain = 0; chain < CHAINS; chain++)
            for (jg_type type_c = JG_F32; type_c <= JG_E5M2; type_c++) {
                if (!is_right_c(pair, type_c)) continue;
                const jg_problem p = chain_problem(pair, chain, JG_ACTIVATION_CLAMP, type_c);
                reference ref;
                reference_make(&ref, &p, REFERENCE_INTEGERS, 0, chain);
                for (int64_t item = 0; item < 2; item++) {
                    reference_strict_loop(&ref, item, 1, 1, x);
                    for (int e = 0; e < 63; e++) reference_set(&ref.c, item, e / 9, e % 9, (double)x[e]);
                }
                assert_int_equal(reference_check(&ref, 1, 1).inexact, 0);
                reference_free(&ref);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_by_hand),
        cmocka_unit_test(half_sums_may_overflow),
        cmocka_unit_test(lost_is_a_part_of_e),
        cmocka_unit_test(strict_loop_rounds_every_product),
        cmocka_unit_test(float_loop_is_accepted),
        cmocka_unit_test(integers_spread_over_their_range),
        cmocka_unit_test(integers_are_exact),
    };
    return cmocka_run_group_tests_name("reference errors", tests, NULL, NULL);
}
