/* The cpu device: every pair of types with every type of C, every math mode and flag, weights with groups, each compared with
 * plain loops to the bit (cpu_fixture.h). */
#include "cpu_fixture.h"

/* Some layout: ops, order, paddings, strides. Even where s4 needs it. */
static void vary_layout(jg_problem *q, uint64_t *random)
{
    const int64_t longest = q->m > q->n ? q->m > q->k ? q->m : q->k : q->n > q->k ? q->n : q->k;
    const uint64_t bits = cpu_random(random);
    q->op_a = bits & 1;
    q->op_b = bits >> 1 & 1;
    q->order = bits >> 2 & 1;
    const int64_t even = longest + longest % 2;
    if (bits & 8) q->lda = even + 2;
    if (bits & 16) q->ldb = even + 4;
    if (bits & 32) q->ldc = longest + 3;
    if (bits & 64) q->ld_residual = longest + 1;
    if (bits & 128) {
        const int64_t item = (even + 4) * (even + 4);
        q->batch = 2 + (bits >> 8 & 1);
        q->stride_c = item + 1;
        if (bits & 512) q->stride_a = item;
        if (bits & 1024) q->stride_b = item + 2;
        if (bits & 2048) q->stride_residual = item + 3;
    }
}

static void every_pair_and_result(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (size_t p = 0; p < COUNT(cpu_pairs); p++) {
        for (int c = 0; c < cpu_results_of(cpu_pairs[p]); c++) {
            for (int variant = 0; variant < 6; variant++) {
                jg_problem q = {.m = 1 + cpu_pick(&random, 80), .n = 1 + cpu_pick(&random, 80), .k = 1 + cpu_pick(&random, 80),
                                .type_a = cpu_pairs[p][0], .type_b = cpu_pairs[p][1], .type_c = cpu_results[c]};
                vary_layout(&q, &random);
                const float alpha = variant % 3 ? 0.75f : 1, beta = variant % 2 ? variant == 1 ? 1 : -0.5f : 0;
                cpu_try(&q, alpha, beta, variant > 3, cpu_random(&random));
            }
        }
    }
}

/* Sizes around the blocks of the implementation, and none. */
static void edges_of_tiles(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 15, 16, 63, 64, 65, 129};
    uint64_t random = 2;
    for (size_t s = 0; s < COUNT(sizes) * COUNT(sizes) * COUNT(sizes); s++) {
        const size_t p = s % COUNT(cpu_pairs);
        jg_problem q = {.m = sizes[s % 8], .n = sizes[s / 8 % 8], .k = sizes[s / 64], .type_a = cpu_pairs[p][0],
                        .type_b = cpu_pairs[p][1]};
        if (q.m * q.n * q.k > 300000) continue;
        vary_layout(&q, &random);
        cpu_try(&q, s % 5 ? 1 : 0, s % 3 ? 1 : 0, 0, s);
    }
}

static void every_mode_and_flag(void **state)
{
    (void)state;
    uint64_t random = 3;
    for (size_t p = 0; p < COUNT(cpu_pairs); p++) {
        for (uint32_t mode = JG_MATH_DEFAULT; mode <= JG_MATH_F16; mode++) {
            const int for_f32 = mode == JG_MATH_TF32 || mode == JG_MATH_F32_3XTF32;
            if ((for_f32 && cpu_pairs[p][0] != JG_F32) || (mode == JG_MATH_F16 && p != 1)) continue;
            for (uint32_t flags = 0; flags < 4; flags++) {
                for (int variant = 0; variant < 12; variant++) {
                    jg_problem q = {.m = 1 + cpu_pick(&random, 40), .n = 1 + cpu_pick(&random, 40), .k = cpu_pick(&random, 70),
                                    .type_a = cpu_pairs[p][0], .type_b = cpu_pairs[p][1], .math = mode | flags << 4};
                    q.type_c = cpu_results[(size_t)variant % (size_t)cpu_results_of(cpu_pairs[p])];
                    vary_layout(&q, &random);
                    cpu_try(&q, 1.5f, variant % 2 ? 0.25f : 0, variant > 3, cpu_random(&random));
                }
            }
        }
    }
}

static void weights_in_groups(void **state)
{
    (void)state;
    uint64_t random = 4;
    for (size_t p = 8; p < 16; p++) {
        for (int variant = 0; variant < 36; variant++) {
            jg_problem q = {.m = 1 + cpu_pick(&random, 30), .n = 1 + cpu_pick(&random, 30), .k = 1 + cpu_pick(&random, 300),
                            .type_a = cpu_pairs[p][0], .type_b = cpu_pairs[p][1], .group_k = 32u << variant % 3,
                            .zero_points = (uint32_t)variant / 3 % 2};
            if (variant % 4 == 1) q.math = JG_MATH_STRICT;
            if (variant % 9 == 2) q.math = JG_MATH_FLUSH;
            vary_layout(&q, &random);
            cpu_try(&q, 1, variant % 2 ? 1 : 0, variant > 27, cpu_random(&random));
        }
    }
}

/* A weight by hand, and that its product is rounded to the other operand's type: 3 * (1 + 2^-10) is a tie of f16, between
 * 3 + 2^-9 and the even 3 + 2^-8. */
static void a_weight_by_hand(void **state)
{
    (void)state;
    const uint16_t one = 0x3c00, scale = 0x3c01;
    const int8_t q8 = 5, zero = 2;
    float c = 0;
    jg_problem q = {.m = 1, .n = 1, .k = 1, .type_a = JG_F16, .type_b = JG_S8, .type_c = JG_F32, .group_k = 32, .zero_points = 1};
    problem p;
    assert_int_equal(problem_canonicalise(&q, &p), JG_OK);
    const jg_operands given = {.a = &one, .b = &q8, .c = &c, .group_scales = &scale, .group_zeros = &zero};
    const operands o = operands_canonicalise(&p, &given);
    assert_int_equal(cpu_gemm(&p, &o), JG_OK);
    assert_true(c == 3 + 0x1p-8f);
}

static void ones_give_exactly_k(void **state)
{
    (void)state;
    static const int64_t depths[] = {0, 1, 7, 64, 127, 255, 1000, 2048};
    for (size_t t = 0; t < COUNT(cpu_pairs); t++) {
        for (size_t d = 0; d < COUNT(depths); d++) {
            for (uint32_t mode = 0; mode <= JG_MATH_STRICT; mode += JG_MATH_STRICT) {
                jg_problem q = {.m = 3, .n = 17, .k = depths[d], .type_a = cpu_pairs[t][0], .type_b = cpu_pairs[t][1],
                                .math = mode};
                cpu_case x;
                cpu_case_make(&x, &q, 1, 0, 0, 1);
                for (int is_b = 0; is_b < 2; is_b++) {
                    cpu_matrix *m = is_b ? &x.b : &x.a;
                    for (int64_t at = 0; at < m->elements; at++) oracle_put(m->type, m->data, at, oracle_round(m->type, 1));
                }
                cpu_case_run(&x);
                const uint32_t expected = oracle_round(x.q.type_c, (double)q.k);
                for (int64_t e = 0; e < 3 * 17; e++) assert_int_equal(oracle_get(x.q.type_c, x.c.data, e), expected);
                cpu_case_free(&x);
            }
        }
    }
}

/* Sums of integers wrap, in int32 and beyond; a C of s32 with alpha or beta that is no 1 goes by float32. */
static void integers_wrap(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        jg_problem q = {.m = 2, .n = 2, .k = 140000, .type_a = JG_U8, .type_b = variant & 1 ? JG_S8 : JG_U8};
        cpu_case x;
        cpu_case_make(&x, &q, 1, variant & 2 ? 1 : 0, 1, 7);
        memset(x.a.data, 0xff, x.a.bytes);
        memset(x.b.data, variant & 1 ? 0x80 : 0xff, x.b.bytes);
        cpu_case_check(&x);
        const uint32_t sum = 140000u * 255u * (variant & 1 ? -128u : 255u);
        if (!(variant & 2)) assert_int_equal(oracle_get(JG_S32, x.c.data, 0), sum);
        cpu_case_free(&x);
    }
}

/* STRICT is the plain loop, and so keeps order: where alpha and B are not negative, raising an element of A lowers nothing. */
static void strict_is_monotone(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (int round = 0; round < 200; round++) {
        const int64_t m = 4, n = 20, k = 1 + cpu_pick(&random, 90);
        jg_problem q = {.m = m, .n = n, .k = k, .type_a = JG_F32, .type_b = JG_F32, .math = JG_MATH_STRICT};
        cpu_case x;
        cpu_case_make(&x, &q, 0.7f, round % 2 ? 0.3f : 0, 0, cpu_random(&random));
        float *a = (float *)x.a.data, *b = (float *)x.b.data, *c = (float *)x.c.data, before[4 * 20];
        for (int64_t e = 0; e < k * n; e++) b[e] = fabsf(b[e]);
        cpu_case_run(&x);
        memcpy(before, c, sizeof before);
        memcpy(c, x.before, sizeof before);
        for (int64_t e = 0; e < m * k; e++)
            if (cpu_random(&random) % 3 == 0) a[e] += fabsf(a[e]) * (float)ldexp(1, -(int)cpu_pick(&random, 24));
        cpu_case_run(&x);
        for (int e = 0; e < 4 * 20; e++) assert_true(c[e] >= before[e]);
        cpu_case_free(&x);
    }
}

/* What must not be read is 0xff, a NaN or 255, or not there at all. */
static void nothing_is_read_in_vain(void **state)
{
    (void)state;
    for (size_t p = 0; p < COUNT(cpu_pairs); p++) {
        for (int variant = 0; variant < 6; variant++) {
            const int no_ab = variant % 3 > 0, no_c = variant >= 3;
            jg_problem q = {.m = 5, .n = 33, .k = variant % 3 == 2 ? 0 : 40, .type_a = cpu_pairs[p][0],
                            .type_b = cpu_pairs[p][1]};
            if (p >= 8 && p < 16) q.group_k = 32, q.zero_points = 1;
            cpu_case x;
            cpu_case_make(&x, &q, no_ab ? variant % 3 == 2 ? 2 : 0 : 1, no_c ? 0 : 0.5f, 0, p);
            if (no_ab) x.given.a = x.given.b = x.given.group_scales = NULL, x.given.group_zeros = NULL;
            if (no_c) memset(x.c.data, 0xff, x.c.bytes), memset(x.before, 0xff, x.c.bytes);
            x.given.scale = x.given.scale_m = x.given.scale_n = NULL;
            x.given.bias_m = x.given.bias_n = x.given.residual = NULL;
            cpu_case_check(&x);
            for (int64_t e = 0; e < 5 * 33; e++)
                assert_false(isnan(oracle_value(x.q.type_c, oracle_get(x.q.type_c, x.c.data, e))));
            cpu_case_free(&x);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_and_result),
        cmocka_unit_test(edges_of_tiles),
        cmocka_unit_test(every_mode_and_flag),
        cmocka_unit_test(weights_in_groups),
        cmocka_unit_test(a_weight_by_hand),
        cmocka_unit_test(ones_give_exactly_k),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(strict_is_monotone),
        cmocka_unit_test(nothing_is_read_in_vain),
    };
    return cmocka_run_group_tests_name("cpu types", tests, NULL, NULL);
}
