/* The oracle's epilogue, weights, and integers: small cases computed by hand. */
#include "reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ALL_SCALES (JG_EPILOGUE_SCALE | JG_EPILOGUE_SCALE_M | JG_EPILOGUE_SCALE_N)
#define ALL_BIASES (JG_EPILOGUE_BIAS_M | JG_EPILOGUE_BIAS_N)

/* A product of ones, k = 4, and what is fused in set to values that tell each other apart. */
static void make_chain(reference *ref, uint32_t epilogue, jg_activation activation, jg_type type_c)
{
    const jg_problem p = {.m = 2, .n = 3, .k = 4, .type_c = type_c, .epilogue = epilogue, .activation = activation,
                          .type_bias = JG_F16};
    reference_make(ref, &p, REFERENCE_ONES, 0, 1);
    reference_matrix *const vectors[] = {&ref->scale, &ref->scale_m, &ref->scale_n, &ref->bias_m, &ref->bias_n};
    static const double values[] = {0.5, 4, 8, 0.25, 1000}; /* at element 1 (0 of scale) */
    for (int v = 0; v < 5; v++)
        if (vectors[v]->block) reference_set(vectors[v], 0, 0, v ? 1 : 0, values[v]);
    if (ref->residual.block) reference_set(&ref->residual, 0, 1, 1, -2000);
    ref->out_scale = 2, ref->out_zero = -7;
}

static double at_1_1(const reference *ref, float alpha, float beta)
{
    double r[6], e[6];
    reference_product(ref, 0, alpha, beta, r, e);
    return r[4];
}

static void steps_come_in_order(void **state)
{
    (void)state;
    const struct {
        uint32_t epilogue;
        jg_activation activation;
        float alpha, beta;
        double r;
    } rows[] = {
        {JG_EPILOGUE_SCALE, 0, 1, 0, 2},
        {JG_EPILOGUE_SCALE_M, 0, 1, 0, 16},
        {JG_EPILOGUE_SCALE_N, 0, 1, 0, 32},
        {JG_EPILOGUE_BIAS_M, 0, 1, 0, 4.25},
        {JG_EPILOGUE_BIAS_N, 0, 1, 0, 1004},
        {ALL_SCALES, 0, 3, 10, 3 * 16 * 4 + 10}, /* beta * C is not scaled */
        {ALL_SCALES | ALL_BIASES, 0, 3, 10, 202 + 1000.25},
        {ALL_BIASES | JG_EPILOGUE_RESIDUAL, JG_ACTIVATION_RELU, 1, 0, 0},
        {ALL_BIASES | JG_EPILOGUE_RESIDUAL_AFTER, JG_ACTIVATION_RELU6, 1, 0, 6 - 2000},
        {ALL_BIASES | JG_EPILOGUE_RESIDUAL_AFTER | JG_EPILOGUE_REQUANTIZE, JG_ACTIVATION_RELU, 1, 0, (1004.25 - 2000) * 2 - 7},
        {JG_EPILOGUE_REQUANTIZE, JG_ACTIVATION_CLAMP, -1, 0, -2 * 2 - 7},
        {JG_EPILOGUE_SCALE, 0, 0, 5, 5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        reference ref;
        make_chain(&ref, rows[i].epilogue, rows[i].activation, JG_F32);
        ref.clamp_low = -2;
        assert_true(at_1_1(&ref, rows[i].alpha, rows[i].beta) == rows[i].r);
        reference_free(&ref);
    }
}

static void activations_by_hand(void **state)
{
    (void)state;
    const struct {
        jg_activation activation;
        double x, y;
    } rows[] = {
        {JG_ACTIVATION_RELU, -1, 0},           {JG_ACTIVATION_RELU, 3, 3},           {JG_ACTIVATION_RELU6, 7, 6},
        {JG_ACTIVATION_RELU6, -7, 0},          {JG_ACTIVATION_CLAMP, 9, 4},          {JG_ACTIVATION_CLAMP, -9, -2},
        {JG_ACTIVATION_GELU_ERF, 1, 0.8413447460685429}, {JG_ACTIVATION_GELU_TANH, 1, 0.8411919906082768},
            {JG_ACTIVATION_SILU, 1, 0.7310585786300049},
        {JG_ACTIVATION_SIGMOID, 0, 0.5},       {JG_ACTIVATION_SIGMOID, -1, 0.2689414213699951},
            {JG_ACTIVATION_GELU_ERF, -1, -0.15865525393145707},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        reference ref;
        make_chain(&ref, 0, rows[i].activation, JG_F32);
        ref.clamp_low = -2, ref.clamp_high = 4;
        assert_true(fabs(at_1_1(&ref, (float)rows[i].x / 4, 0) - rows[i].y) < 1e-14);
        assert_true(isnan(at_1_1(&ref, NAN, 0)));
        reference_free(&ref);
    }
}

/* A column-major problem's vectors still go by the caller's rows and columns, its residual by C's order. */
static void vectors_go_by_the_callers_rows(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        const jg_problem p = {.m = 2, .n = 3, .k = 1, .order = (jg_order)order, .ldc = 4,
                              .epilogue = ALL_SCALES | ALL_BIASES | JG_EPILOGUE_RESIDUAL};
        reference ref;
        double r[6], e[6];
        reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
        for (int i = 0; i < 2; i++) reference_set(&ref.scale_m, 0, 0, i, 1 + i), reference_set(&ref.bias_m, 0, 0, i, 100 * i);
        for (int j = 0; j < 3; j++) reference_set(&ref.scale_n, 0, 0, j, 1 + 2 * j), reference_set(&ref.bias_n, 0, 0, j, 10 * j);
        ((float *)reference_at(&ref.residual))[order ? 1 + 2 * 4 : 4 + 2] = 1000;
        reference_product(&ref, 0, 1, 0, r, e);
        const double expected[] = {1, 13, 25, 102, 116, 1130};
        for (int x = 0; x < 6; x++) assert_true(r[x] == expected[x]);
        reference_free(&ref);
    }
}

/* What is read beyond a vector or between the rows of a residual is a NaN, and every block is listed with its member. */
static void operands_and_blocks(void **state)
{
    (void)state;
    const jg_problem p = {.m = 2, .n = 3, .k = 33, .batch = 2, .stride_a = 70, .stride_b = 50, .stride_c = 8, .type_a = JG_F16,
                          .type_b = JG_S4, .op_b = JG_T, .ldb = 34, .ldc = 4,
                          .epilogue = ALL_SCALES | ALL_BIASES | JG_EPILOGUE_RESIDUAL, .group_k = 32, .zero_points = 1,
                          .ld_residual = 5};
    const float alpha = 2, beta = 3;
    reference ref;
    reference_make(&ref, &p, REFERENCE_UNIFORM, 4, 1);
    jg_operands host = reference_operands(&ref, &alpha, &beta), copy = {0};
    assert_true(host.alpha == &alpha && host.beta == &beta && host.c == reference_at(&ref.c));
    assert_ptr_equal(host.group_zeros, reference_at(&ref.group_zeros));
    assert_true(isnan(host.scale[1]) && isnan(host.scale[-1]) && isnan(host.scale_m[2]) && isnan(host.scale_n[3]));
    assert_true(isnan(((const float *)host.bias_m)[2]) && isnan(((const float *)host.bias_n)[-1]));
    assert_true(reference_get_bits(&ref.residual, 0, 0, 3) == 0xffff && reference_get_bits(&ref.residual, 0, 0, 4) == 0xffff);
    assert_true(ref.group_scales.type == JG_F16 && ref.group_scales.rows == 2 && ref.group_scales.cols == 3 &&
                ref.group_scales.stride == 6);
    reference_block blocks[REFERENCE_MAX_BLOCKS];
    const size_t count = reference_blocks(&ref, blocks);
    assert_int_equal(count, REFERENCE_MAX_BLOCKS);
    assert_ptr_equal(blocks[0].host, ref.before);
    for (size_t i = 0; i < count; i++) reference_point(&copy, &blocks[i], i ? (void *)blocks[i].host : ref.c.block);
    host.alpha = host.beta = NULL;
    host.clamp_low = host.clamp_high = host.out_scale = host.out_zero = 0;
    assert_memory_equal(&host, &copy, sizeof host);
    reference_free(&ref);
}

/* The oracle's own ones: with every flag, C is k. */
static void ones_give_k(void **state)
{
    (void)state;
    static const jg_type types[][2] =
        {{JG_F32, JG_F32}, {JG_U8, JG_S8}, {JG_S4, JG_S4}, {JG_E4M3, JG_E5M2}, {JG_F16, JG_S4}, {JG_S8, JG_BF16}};
    for (size_t t = 0; t < 6; t++) {
        const int weights = t >= 4;
        const jg_problem p = {.m = 3, .n = 5, .k = 67, .type_a = types[t][0], .type_b = types[t][1],
                              .group_k = weights ? 32 : 0, .zero_points = weights,
                              .epilogue = ALL_SCALES | ALL_BIASES | JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_REQUANTIZE,
                              .activation = JG_ACTIVATION_CLAMP};
        double r[15], e[15];
        reference ref;
        reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
        reference_product(&ref, 0, 1, 0, r, e);
        for (int x = 0; x < 15; x++) assert_true(r[x] == 67);
        reference_free(&ref);
    }
}

static void weights_with_groups_by_hand(void **state)
{
    (void)state;
    for (int turned = 0; turned < 2; turned++) {
        /* The weights are 33 x 2 (turned: 2 x 33), f16's others ones; of the second column only row 32, in group 1, is not 0. */
        const jg_problem p = {.m = turned ? 2 : 1, .n = turned ? 1 : 2, .k = 33, .type_a = turned ? JG_S8 : JG_F16,
                              .type_b = turned ? JG_F16 : JG_S8, .group_k = 32, .zero_points = 1};
        double r[2], e[2];
        reference ref;
        reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
        reference_matrix *const weights = turned ? &ref.a : &ref.b;
        for (int k = 0; k < 33; k++) reference_set(weights, 0, turned ? 1 : k, turned ? k : 1, k == 32 ? 100 : 5);
        reference_set(&ref.group_zeros, 0, 0, 1, 5);
        reference_set(&ref.group_zeros, 0, 1, 1, -3);
        reference_set(&ref.group_scales, 0, 1, 1, 1.0009765625); /* 1 + 2^-10: 103 times that is not an f16 */
        reference_product(&ref, 0, 1, 0, r, e);
        assert_true(r[0] == 33);
        assert_true(r[1] == 103.125); /* 103.1006 to multiples of 1/16 */
        reference_free(&ref);
    }
}

static void groups_are_shared_with_the_weights(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        const jg_problem p = {.m = 1, .n = 1, .k = 2, .batch = 2, .stride_a = 2, .stride_b = shared ? 0 : 2, .stride_c = 1,
                              .type_a = JG_BF16, .type_b = JG_S4, .group_k = 64};
        double r, e;
        reference ref;
        reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
        ((uint16_t *)reference_at(&ref.group_scales))[0] = 0x4000; /* 2 */
        if (!shared) ((uint16_t *)reference_at(&ref.group_scales))[1] = 0x4080; /* 4 */
        reference_product(&ref, 1, 1, 0, &r, &e);
        assert_true(r == (shared ? 4 : 8));
        reference_free(&ref);
    }
}

static void int32_wraps_and_int8_saturates(void **state)
{
    (void)state;
    const struct {
        jg_type c;
        double before, got;
        int failures;
    } rows[] = {
        {JG_S32, 2147483647, -2147483648.0, 0}, {JG_S32, 2147483647, 2147483647, 1}, {JG_S32, -5, -4, 0}, {JG_S32, -5, -3, 1},
        {JG_S8, 127, 127, 0}, {JG_S8, 126, 127, 0}, {JG_S8, 126, 126, 1}, {JG_S8, 127, -128, 1}, {JG_U8, 255, 255, 0},
            {JG_U8, 255, 0, 1},
        {JG_E4M3, 448, 448, 0}, {JG_E4M3, 448, NAN, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const jg_problem p = {.m = 1, .n = 1, .k = 1, .type_a = JG_S8, .type_c = rows[i].c};
        reference ref;
        reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
        reference_set(&ref.c, 0, 0, 0, rows[i].before);
        reference_snapshot(&ref);
        reference_set(&ref.c, 0, 0, 0, rows[i].got);
        const reference_result result = reference_check(&ref, 1, 1);
        assert_int_equal(result.failures, rows[i].failures);
        assert_int_equal(result.inexact, rows[i].failures);
        reference_free(&ref);
    }
}

/* NaN becomes 0 in integers and stays NaN in floats. */
static void nan_of_integers_is_0(void **state)
{
    (void)state;
    static const jg_type types[] = {JG_S8, JG_S32, JG_E4M3, JG_E5M2};
    for (int t = 0; t < 4; t++) {
        const jg_problem p = {.m = 1, .n = 1, .k = 1, .type_a = t < 2 ? JG_S8 : JG_E4M3, .type_c = types[t],
                              .epilogue = JG_EPILOGUE_BIAS_M};
        reference ref;
        reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
        reference_set(&ref.bias_m, 0, 0, 0, NAN);
        reference_set(&ref.c, 0, 0, 0, 0);
        assert_int_equal(reference_check(&ref, 1, 0).failures, t >= 2);
        reference_set(&ref.c, 0, 0, 0, t < 2 ? 1 : NAN);
        assert_int_equal(reference_check(&ref, 1, 0).failures, t < 2);
        reference_free(&ref);
    }
}

static void flush_and_sanitize_by_hand(void **state)
{
    (void)state;
    const jg_problem p = {.m = 1, .n = 1, .k = 2, .type_a = JG_F16, .math = JG_MATH_FLUSH | JG_MATH_SANITIZE,
                          .epilogue = JG_EPILOGUE_RESIDUAL};
    double r, e;
    reference ref;
    reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
    reference_set(&ref.a, 0, 0, 0, INFINITY);
    reference_set(&ref.b, 0, 1, 0, -0x1p-15);
    reference_product(&ref, 0, 1, 0, &r, &e);
    assert_true(r == 0); /* 0 * 1 + 1 * 0 */
    reference_set(&ref.residual, 0, 0, 0, NAN);
    reference_set(&ref.b, 0, 1, 0, 0x1p-14);
    reference_set(&ref.c, 0, 0, 0, 0x1.8p-15);
    reference_snapshot(&ref);
    reference_product(&ref, 0, 1, 1e6f, &r, &e);
    assert_true(r == 0x1p-14);
    /* Results: denormals are wrong, 0 is right for them, 65504 for what overflows. */
    const struct {
        float alpha;
        double got;
        int failures;
    } rows[] = {
        {0.5f, 0, 0}, {0.5f, 0x1p-15, 1}, {1, 0x1p-14, 0}, {1, 0, 0}, {2, 0, 1}, {0x1p31f, 65504, 0}, {0x1p31f, INFINITY, 1},
            {-0x1p31f, -65504, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        reference_set(&ref.c, 0, 0, 0, rows[i].got);
        assert_int_equal(reference_check(&ref, rows[i].alpha, 0).failures, rows[i].failures);
    }
    reference_free(&ref);
}

/* What FLUSH and SANITIZE are about is in the data, and only if they are asked for. */
static void specials_are_planted(void **state)
{
    (void)state;
    static const jg_type types[] = {JG_F32, JG_F16, JG_BF16, JG_E4M3, JG_E5M2};
    static const double normal[] = {0x1p-126, 0x1p-14, 0x1p-126, 0x1p-6, 0x1p-14};
    for (uint32_t t = 0; t < 5; t++)
        for (uint32_t flags = 0; flags < 4; flags++) {
            const jg_problem p = {.m = 40, .n = 50, .k = 30, .type_a = types[t], .type_c = types[t],
                                  .math = flags * JG_MATH_FLUSH, .epilogue = JG_EPILOGUE_RESIDUAL};
            reference ref;
            reference_make(&ref, &p, REFERENCE_UNIFORM, 0, 1);
            reference_matrix *const matrices[] = {&ref.a, &ref.b, &ref.c, &ref.residual};
            for (int x = 0; x < 4; x++) {
                int denormals = 0, nans = 0, infinities = 0;
                for (int64_t i = 0; i < matrices[x]->rows; i++)
                    for (int64_t j = 0; j < matrices[x]->cols; j++) {
                        const double value = reference_get(matrices[x], 0, i, j);
                        denormals += value != 0 && fabs(value) < normal[t];
                        nans += isnan(value) != 0;
                        infinities += isinf(value) != 0;
                    }
                if (flags & 1) assert_in_range(denormals, 10, 300);
                assert_int_equal(nans > 0, (flags & 2) != 0);
                assert_int_equal(infinities > 0, (flags & 2) && types[t] != JG_E4M3);
            }
            reference_free(&ref);
        }
}

/* Its split leaves infinity less infinity; other modes keep infinities. */
static void infinities_of_3xtf32_may_be_nan(void **state)
{
    (void)state;
    static const uint32_t modes[] = {JG_MATH_DEFAULT, JG_MATH_STRICT, JG_MATH_TF32, JG_MATH_F32_3XTF32};
    for (int i = 0; i < 4; i++) {
        const jg_problem p = {.m = 1, .n = 1, .k = 1, .math = modes[i]};
        reference ref;
        reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
        reference_set(&ref.a, 0, 0, 0, INFINITY);
        reference_set(&ref.c, 0, 0, 0, INFINITY);
        assert_int_equal(reference_check(&ref, 1, 0).failures, 0);
        reference_set(&ref.c, 0, 0, 0, NAN);
        assert_int_equal(reference_check(&ref, 1, 0).failures, i != 3);
        reference_free(&ref);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_come_in_order),
        cmocka_unit_test(activations_by_hand),
        cmocka_unit_test(vectors_go_by_the_callers_rows),
        cmocka_unit_test(operands_and_blocks),
        cmocka_unit_test(ones_give_k),
        cmocka_unit_test(weights_with_groups_by_hand),
        cmocka_unit_test(groups_are_shared_with_the_weights),
        cmocka_unit_test(int32_wraps_and_int8_saturates),
        cmocka_unit_test(nan_of_integers_is_0),
        cmocka_unit_test(flush_and_sanitize_by_hand),
        cmocka_unit_test(specials_are_planted),
        cmocka_unit_test(infinities_of_3xtf32_may_be_nan),
    };
    return cmocka_run_group_tests_name("reference fused", tests, NULL, NULL);
}
