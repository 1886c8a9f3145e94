/* The epilogue of the cpu device: each step alone and all of them in chains, by plain loops to the bit (cpu_fixture.h), and what
 * the order of the steps means by hand. */
#include "cpu_fixture.h"

#define RESIDUALS (JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER)

static const jg_type biases[] = {JG_DEFAULT_TYPE, JG_F32, JG_F16, JG_BF16};

/* Each flag by itself, with each activation, for each type of C. */
static void each_step_alone(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (uint32_t flag = 0; flag <= 0x80; flag = flag ? flag * 2 : 1) {
        for (int c = 0; c < (int)COUNT(cpu_results); c++) {
            for (int activation = JG_ACTIVATION_NONE; activation <= JG_ACTIVATION_SIGMOID; activation++) {
                const jg_type in = cpu_results[c] == JG_S32 ? JG_S8 : JG_F32;
                jg_problem q = {.m = 6, .n = 67, .k = 9, .type_a = in, .type_b = in, .type_c = cpu_results[c], .epilogue = flag,
                                .activation = activation, .order = activation & 1, .type_bias = biases[(activation + c) % 4]};
                cpu_try(&q, in == JG_S8 ? 0.001f : 1.5f, c % 2 ? 0.5f : 0, activation > 4, cpu_random(&random));
            }
        }
    }
}

/* Any flags at once, with any types, modes and layouts. */
static void chains_of_steps(void **state)
{
    (void)state;
    uint64_t random = 2;
    for (int round = 0; round < 3000; round++) {
        const jg_type *pair = cpu_pairs[cpu_pick(&random, COUNT(cpu_pairs))];
        jg_problem q = {
            .m = 1 + cpu_pick(&random, 20), .n = 1 + cpu_pick(&random, 75), .k = cpu_pick(&random, 40), .type_a = pair[0],
            .type_b = pair[1], .type_c = cpu_results[cpu_pick(&random, cpu_results_of(pair))],
            .epilogue = (uint32_t)cpu_pick(&random, 256), .activation = (jg_activation)cpu_pick(&random, 8),
            .order = (jg_order)cpu_pick(&random, 2), .op_a = (jg_op)cpu_pick(&random, 2), .op_b = (jg_op)cpu_pick(&random, 2),
            .type_bias = biases[cpu_pick(&random, 4)], .math = (uint32_t)cpu_pick(&random, 4) << 4};
        if ((q.epilogue & RESIDUALS) == RESIDUALS) q.epilogue &= ~JG_EPILOGUE_RESIDUAL;
        if (cpu_pick(&random, 3) == 0) q.math |= JG_MATH_STRICT;
        if (cpu_pick(&random, 3) == 0) q.ld_residual = 80;
        if (cpu_pick(&random, 3) == 0) q.batch = 2, q.stride_c = 80 * 80, q.stride_residual = round % 2 ? 80 * 80 : 0;
        cpu_try(&q, 0.5f, round % 2 ? 0.25f : 0, round % 4 == 3, cpu_random(&random));
    }
}

/* One element of f32, 2 * 3 + ..., through everything. */
typedef struct one {
    float c, alpha, beta, residual, scale, scale_m, scale_n, bias_m, bias_n, low, high, out_scale, out_zero;
} one;

static float run_one(uint32_t epilogue, jg_activation activation, one v)
{
    const float a = 2, b = 3;
    jg_problem q = {.m = 1, .n = 1, .k = 1, .epilogue = epilogue, .activation = activation};
    const jg_operands given = {
        .a = &a, .b = &b, .c = &v.c, .alpha = &v.alpha, .beta = &v.beta, .scale = &v.scale, .scale_m = &v.scale_m,
        .scale_n = &v.scale_n, .bias_m = &v.bias_m, .bias_n = &v.bias_n, .residual = &v.residual, .clamp_low = v.low,
        .clamp_high = v.high, .out_scale = v.out_scale, .out_zero = v.out_zero};
    problem p;
    assert_int_equal(problem_canonicalise(&q, &p), JG_OK);
    const operands o = operands_canonicalise(&p, &given);
    assert_int_equal(operands_check(&p, &o, 4, 4, 4), JG_OK);
    assert_int_equal(cpu_gemm(&p, &o), JG_OK);
    return v.c;
}

static void the_order_by_hand(void **state)
{
    (void)state;
    const uint32_t scales = JG_EPILOGUE_SCALE | JG_EPILOGUE_SCALE_M | JG_EPILOGUE_SCALE_N;
    const one v = {.c = 100, .alpha = 1, .beta = 0, .residual = -50, .scale = 10, .scale_m = 2, .scale_n = 0.5f, .bias_m = 1,
                   .bias_n = -3, .low = -1, .high = 4, .out_scale = 2, .out_zero = 7};
    assert_true(run_one(0, 0, v) == 6);
    assert_true(run_one(JG_EPILOGUE_SCALE, 0, v) == 60 && run_one(JG_EPILOGUE_SCALE_M, 0, v) == 12);
    assert_true(run_one(JG_EPILOGUE_SCALE_N, 0, v) == 3 && run_one(scales, 0, v) == 60);
    assert_true(run_one(JG_EPILOGUE_BIAS_M, 0, v) == 7 && run_one(JG_EPILOGUE_BIAS_N, 0, v) == 3);
    assert_true(run_one(JG_EPILOGUE_RESIDUAL, JG_ACTIVATION_RELU, v) == 0);
    assert_true(run_one(JG_EPILOGUE_RESIDUAL_AFTER, JG_ACTIVATION_RELU, v) == -44);
    assert_true(run_one(JG_EPILOGUE_REQUANTIZE, JG_ACTIVATION_CLAMP, v) == 15);
    assert_true(run_one(0, JG_ACTIVATION_RELU6, v) == 6 && run_one(scales, JG_ACTIVATION_RELU6, v) == 6);
    one w = v;
    w.beta = 2; /* the scales are for the sum alone */
    assert_true(run_one(scales, 0, w) == 260);
    w.scale = 0x1p100f, w.scale_m = 0x1p100f, w.scale_n = 0x1p-100f, w.beta = 0; /* from left to right: 2^200 overflows */
    assert_true(isinf(run_one(scales, 0, w)));
    w.alpha = 0.5f, w.bias_m = 0x1p24f, w.bias_n = -0x1p24f; /* 3 + 2^24 is a tie, which goes to 2^24 + 4 */
    assert_true(run_one(JG_EPILOGUE_BIAS_M | JG_EPILOGUE_BIAS_N, 0, w) == 4);
}

/* A column-major problem has its M first as well. */
static void the_order_does_not_turn_with_the_matrices(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        jg_problem q = {.m = 2, .n = 3, .k = 1, .type_a = JG_F32, .type_b = JG_F32, .order = (jg_order)order,
                        .epilogue = JG_EPILOGUE_SCALE_M | JG_EPILOGUE_SCALE_N | JG_EPILOGUE_BIAS_M | JG_EPILOGUE_BIAS_N};
        cpu_case x;
        cpu_case_make(&x, &q, 0x1p100f, 0, 0, 1);
        for (int i = 0; i < 2; i++) x.scale_m[i] = 0x1p-100f, ((float *)x.bias_m)[i] = 1, ((float *)x.a.data)[i] = 1;
        for (int j = 0; j < 3; j++) x.scale_n[j] = 0x1p100f, ((float *)x.bias_n)[j] = 0x1p24f, ((float *)x.b.data)[j] = 0x1p-100f;
        cpu_case_check(&x);
        /* (2^100 2^-100) 2^100 2^-100 + 1 + 2^24: the other way round, 2^200 would overflow, and 1 + 2^24 + 1 be 2^24. */
        for (int e = 0; e < 6; e++) assert_true(((float *)x.c.data)[e] == 0x1p24f + 2);
        cpu_case_free(&x);
    }
}

/* A step that was not asked for reads nothing, and one that was reads each element where it belongs. */
static void only_what_was_asked_for_is_read(void **state)
{
    (void)state;
    for (uint32_t flag = 1; flag <= 0x80; flag *= 2) {
        for (int order = 0; order < 2; order++) {
            jg_problem q = {.m = 3, .n = 5, .k = 2, .type_a = JG_F32, .type_b = JG_F32, .epilogue = flag,
                            .order = (jg_order)order};
            cpu_case x;
            cpu_case_make(&x, &q, 1, 0, 0, flag);
            jg_operands *o = &x.given;
            if (flag != JG_EPILOGUE_SCALE) o->scale = NULL;
            if (flag != JG_EPILOGUE_SCALE_M) o->scale_m = NULL;
            if (flag != JG_EPILOGUE_SCALE_N) o->scale_n = NULL;
            if (flag != JG_EPILOGUE_BIAS_M) o->bias_m = NULL;
            if (flag != JG_EPILOGUE_BIAS_N) o->bias_n = NULL;
            if (!(flag & RESIDUALS)) o->residual = NULL;
            if (flag != JG_EPILOGUE_REQUANTIZE) o->out_scale = o->out_zero = NAN;
            o->clamp_low = o->clamp_high = NAN;
            x.c.data[0] = x.c.data[3] = 0xff; /* beta = 0: not read */
            cpu_case_check(&x);
            for (int e = 0; e < 15; e++) assert_false(isnan(((float *)x.c.data)[e]));
            cpu_case_free(&x);
        }
    }
}

/* alpha = 0 and k = 0 leave an epilogue to do: a row of biases, say. */
static void an_empty_sum_still_has_an_epilogue(void **state)
{
    (void)state;
    for (int variant = 0; variant < 8; variant++) {
        const int64_t k = variant & 1 ? 0 : 5;
        const jg_type type = variant & 4 ? JG_S8 : JG_F16;
        jg_problem q = {.m = 3, .n = 70, .k = k, .type_a = type, .type_b = type, .type_c = JG_F32,
                        .activation = JG_ACTIVATION_RELU,
                        .epilogue = JG_EPILOGUE_BIAS_N | JG_EPILOGUE_SCALE_M | JG_EPILOGUE_RESIDUAL};
        cpu_case x;
        cpu_case_make(&x, &q, k ? 0 : INFINITY, variant & 2 ? 0.5f : 0, 0, 9);
        x.given.a = x.given.b = NULL;
        cpu_case_check(&x);
        cpu_case_free(&x);
    }
}

/* C of s32 stays an integer where nothing but its sum is asked for; every step makes it a float on the way. */
static void s32_is_exact_where_it_says_so(void **state)
{
    (void)state;
    const int8_t a = 1, b = 1;
    const struct {
        float alpha, beta;
        jg_activation activation;
        uint32_t epilogue;
        int64_t k;
        int32_t before, after;
    } rows[] = {
        {1, 1, 0, 0, 1, 0x1000001, 0x1000002},          {1, 1, 0, 0, 0, 0x1000001, 0x1000001},
        {1, 1, 0, 0, 1, 0x7fffffff, -0x7fffffff - 1},   {1, 1, JG_ACTIVATION_RELU, 0, 1, 0x1000001, 0x1000000},
        {1, 1, 0, JG_EPILOGUE_SCALE, 1, 0x1000001, 0x1000000}, {2, 1, 0, 0, 1, 0x1000001, 0x1000002},
        {0, 1, 0, 0, 1, 0x1000001, 0x1000001},          {1, 2, 0, 0, 1, 0x7000000, 0xe000000},
        {1, 2, 0, 0, 1, 0x7fffffff, 0x7fffffff},        {1, 0, 0, 0, 1, 0x7fffffff, 1},
    };
    const float scale = 1;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int32_t c = rows[i].before;
        jg_problem q = {.m = 1, .n = 1, .k = rows[i].k, .type_a = JG_S8, .activation = rows[i].activation,
                        .epilogue = rows[i].epilogue};
        problem p;
        assert_int_equal(problem_canonicalise(&q, &p), JG_OK);
        const jg_operands given = {.a = &a, .b = &b, .c = &c, .alpha = &rows[i].alpha, .beta = &rows[i].beta, .scale = &scale};
        const operands o = operands_canonicalise(&p, &given);
        assert_int_equal(cpu_gemm(&p, &o), JG_OK);
        if (c != rows[i].after) fail_msg("row %d: 0x%x, not 0x%x", (int)i, (unsigned)c, (unsigned)rows[i].after);
    }
}

/* The bits are the shared functions', so what remains is that the right one is used, far from the others. */
static void activations_are_the_named_ones(void **state)
{
    (void)state;
    const one v = {.alpha = 0.25f}; /* of 1.5 */
    const double x = 1.5, u = sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
    assert_true(fabs(run_one(0, JG_ACTIVATION_GELU_TANH, v) - x / 2 * (1 + tanh(u))) < 1e-6);
    assert_true(fabs(run_one(0, JG_ACTIVATION_GELU_ERF, v) - x / 2 * (1 + erf(x / sqrt(2)))) < 1e-6);
    assert_true(fabs(run_one(0, JG_ACTIVATION_SILU, v) - x / (1 + exp(-x))) < 1e-6);
    assert_true(fabs(run_one(0, JG_ACTIVATION_SIGMOID, v) - 1 / (1 + exp(-x))) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_alone),
        cmocka_unit_test(chains_of_steps),
        cmocka_unit_test(the_order_by_hand),
        cmocka_unit_test(the_order_does_not_turn_with_the_matrices),
        cmocka_unit_test(only_what_was_asked_for_is_read),
        cmocka_unit_test(an_empty_sum_still_has_an_epilogue),
        cmocka_unit_test(s32_is_exact_where_it_says_so),
        cmocka_unit_test(activations_are_the_named_ones),
    };
    return cmocka_run_group_tests_name("cpu epilogue", tests, NULL, NULL);
}
