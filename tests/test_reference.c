/* tests/reference.c itself: tiny products computed by hand, and planted errors that it must catch. */
#include "reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Sets the whole matrix from a row-major list. */
static void set_all(reference_matrix *x, int64_t item, const double *values)
{
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) reference_set(x, item, i, j, values[i * x->cols + j]);
}

static const double a_2x3[] = {1, 2, 3, 4, 5, 6}, b_3x2[] = {7, 8, 9, 10, 11, 12}, c_2x2[] = {1, -2, 3, -4};
static const double ab_2x2[] = {58, 64, 139, 154}; /* by hand */

static void product_by_hand_in_every_layout(void **state)
{
    (void)state;
    for (int layout = 0; layout < 16; layout++) {
        jg_problem p = {.m = 2, .n = 2, .k = 3, .op_a = layout & 1, .op_b = layout >> 1 & 1, .order = layout >> 2 & 1};
        if (layout & 8) p.lda = p.ldb = p.ldc = 5;
        reference ref;
        double r[4], error[4];
        reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
        set_all(&ref.a, 0, a_2x3);
        set_all(&ref.b, 0, b_3x2);
        set_all(&ref.c, 0, c_2x2);
        reference_snapshot(&ref);
        reference_product(&ref, 0, -2, 10, r, error);
        for (int x = 0; x < 4; x++) {
            assert_true(r[x] == -2 * ab_2x2[x] + 10 * c_2x2[x]);
            assert_true(fabs(error[x] - 8 * 0x1p-23 * (2 * ab_2x2[x] + 10 * fabs(c_2x2[x]))) < 0x1p-140);
        }
        reference_free(&ref);
    }
}

/* After reference_sample, only what was computed is judged: an untouched element is passed over, a wrong one is not. */
static void samples_are_judged_alone(void **state)
{
    (void)state;
    const jg_problem p = {.m = 2, .n = 2, .k = 3, .type_a = JG_F16};
    reference ref;
    reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
    set_all(&ref.a, 0, a_2x3);
    set_all(&ref.b, 0, b_3x2);
    reference_sample(&ref);
    assert_int_equal(reference_check(&ref, 1, 0).checked, 0);
    reference_set(&ref.c, 0, 1, 0, 139);
    reference_result result = reference_check(&ref, 1, 0);
    assert_int_equal(result.checked, 1);
    assert_int_equal(result.failures, 0);
    assert_int_equal(result.stray, 0);
    reference_set(&ref.c, 0, 0, 1, 65);
    result = reference_check(&ref, 1, 0);
    assert_int_equal(result.checked, 2);
    assert_int_equal(result.failures, 1);
    assert_int_equal(result.j, 1);
    ref.c.block[0] = 0;
    assert_int_equal(reference_check(&ref, 1, 0).stray, 1);
    reference_free(&ref);
}

/* Where the elements are in memory, for A = 2 x 3 with a leading dimension of 5. */
static void layouts_by_hand(void **state)
{
    (void)state;
    const struct {
        jg_order order;
        jg_op op;
        int index; /* of element (1, 2) */
    } rows[] = {{JG_ROW_MAJOR, JG_N, 7}, {JG_ROW_MAJOR, JG_T, 11}, {JG_COL_MAJOR, JG_N, 11}, {JG_COL_MAJOR, JG_T, 7}};
    for (size_t i = 0; i < 4; i++) {
        jg_problem p = {.m = 2, .n = 1, .k = 3, .op_a = rows[i].op, .order = rows[i].order, .lda = 5};
        reference ref;
        reference_make(&ref, &p, REFERENCE_UNIFORM, 4, 1);
        assert_int_equal((uintptr_t)reference_at(&ref.a) % 256, 4);
        reference_set(&ref.a, 0, 1, 2, 0.5);
        assert_true(((float *)reference_at(&ref.a))[rows[i].index] == 0.5f);
        assert_true(isnan(((float *)reference_at(&ref.a))[4 - (rows[i].index == 7 ? 0 : 1)])); /* padding */
        reference_free(&ref);
    }
}

static void dense_strides_by_hand(void **state)
{
    (void)state;
    jg_problem p = {.m = 2, .n = 3, .k = 5, .batch = 4};
    reference_pack(&p);
    assert_true(p.stride_a == 10 && p.stride_b == 15 && p.stride_c == 6);
    p.ldc = 7;
    p.lda = 9;
    p.op_a = JG_T; /* A is stored 5 x 2 */
    reference_pack(&p);
    assert_true(p.stride_a == 45 && p.stride_c == 14);
    p.order = JG_COL_MAJOR; /* two columns of A, three of C */
    reference_pack(&p);
    assert_true(p.stride_a == 18 && p.stride_b == 15 && p.stride_c == 21);
}

static void shared_matrix_serves_every_item(void **state)
{
    (void)state;
    jg_problem p = {.m = 2, .n = 2, .k = 3, .batch = 3, .stride_b = 6, .stride_c = 4};
    reference ref;
    double r[4], error[4];
    reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
    set_all(&ref.a, 0, a_2x3);
    set_all(&ref.b, 2, b_3x2);
    reference_product(&ref, 2, 1, 0, r, error);
    for (int e = 0; e < 4; e++) assert_true(r[e] == ab_2x2[e]);
    reference_product(&ref, 1, 1, 0, r, error);
    assert_true(r[0] == 6 && r[2] == 15);
    reference_free(&ref);
}

static void unread_operands_do_not_matter(void **state)
{
    (void)state;
    jg_problem p = {.m = 2, .n = 2, .k = 3};
    reference ref;
    double r[4], error[4];
    reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
    reference_poison(&ref.c);
    reference_snapshot(&ref);
    reference_product(&ref, 0, 1, 0, r, error);
    assert_true(r[3] == 3);
    reference_product(&ref, 0, 1, 1, r, error);
    assert_true(isnan(r[3]));
    reference_poison(&ref.a);
    reference_product(&ref, 0, 0, 0, r, error);
    assert_true(r[3] == 0);
    reference_free(&ref);
}

/* A right answer in a padded, batched C of the given type, into which each test plants its error. */
static void make_right(reference *ref, jg_type type_c)
{
    jg_problem p = {.m = 3, .n = 5, .k = 7, .batch = 2, .type_a = type_c, .ldc = 8};
    double r[15], error[15];
    reference_pack(&p);
    p.stride_c += 3;
    reference_make(ref, &p, REFERENCE_UNIFORM, 4, 7);
    for (int64_t item = 0; item < 2; item++) {
        reference_product(ref, item, 1.5f, 0.5f, r, error);
        set_all(&ref->c, item, r);
    }
}

static void right_answers_pass(void **state)
{
    (void)state;
    for (jg_type type = JG_F32; type <= JG_BF16; type++) {
        reference ref;
        make_right(&ref, type);
        reference_result result = reference_check(&ref, 1.5f, 0.5f);
        assert_true(result.worst <= 1 && result.failures == 0 && result.inexact == 0 && result.stray == 0);
        reference_free(&ref);
    }
}

static void planted_values_are_caught(void **state)
{
    (void)state;
    for (jg_type type = JG_F32; type <= JG_BF16; type++) {
        const double wrong[] = {NAN, INFINITY, -INFINITY, 0, 100};
        for (size_t w = 0; w < 5; w++) {
            reference ref;
            make_right(&ref, type);
            reference_set(&ref.c, 1, 2, 3, wrong[w]);
            reference_set(&ref.c, 1, 2, 4, wrong[w]);
            reference_result result = reference_check(&ref, 1.5f, 0.5f);
            assert_int_equal(result.failures, 2);
            assert_int_equal(result.inexact, 2);
            assert_true(result.item == 1 && result.i == 2 && result.j == 3 && result.worst > 1);
            assert_true(result.got == wrong[w] || isnan(wrong[w]));
            reference_free(&ref);
        }
    }
}

/* Two units in the last place off (R itself lies up to half of one off) is inexact for every type; it is beyond the
 * bound only for a 16-bit type, whose unit is far above what float32 sums lose. */
static void one_unit_off_is_noticed(void **state)
{
    (void)state;
    for (jg_type type = JG_F32; type <= JG_BF16; type++) {
        reference ref;
        make_right(&ref, type);
        double value = reference_get(&ref.c, 0, 1, 1);
        reference_set(&ref.c, 0, 1, 1, reference_decode(type, reference_encode(type, value) + 2));
        reference_result result = reference_check(&ref, 1.5f, 0.5f);
        assert_int_equal(result.inexact, 1);
        assert_int_equal(result.failures, type != JG_F32);
        reference_free(&ref);
    }
}

static void stray_writes_are_caught(void **state)
{
    (void)state;
    const int64_t places[] = {-1, 5, 7, 24, 26, 27 + 24, 27 + 24 + 10}; /* bytes 4 past: rows of 8, items 27 apart */
    for (size_t w = 0; w < sizeof places / sizeof places[0]; w++) {
        reference ref;
        make_right(&ref, JG_F32);
        ((unsigned char *)reference_at(&ref.c))[places[w] * 4] ^= 1;
        reference_result result = reference_check(&ref, 1.5f, 0.5f);
        assert_int_equal(result.stray, 1);
        assert_int_equal(result.failures, 0);
        reference_free(&ref);
    }
}

static void overflow_to_infinity_is_right_only_at_the_edge(void **state)
{
    (void)state;
    const struct {
        double r, got;
        int failures;
    } rows[] = {
        {65504, 65504, 0},     {65536, INFINITY, 0},     {-65536, -INFINITY, 0},   {65536, -INFINITY, 1},
        {65000, INFINITY, 1},  {131072, 65504, 1},       {65536, NAN, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jg_problem p = {.m = 1, .n = 1, .k = 0, .type_a = JG_F16};
        reference ref;
        reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
        /* k = 0, so R = beta * 1. */
        reference_set(&ref.c, 0, 0, 0, rows[i].got);
        reference_result result = reference_check(&ref, 1, (float)rows[i].r);
        assert_int_equal(result.failures, rows[i].failures);
        reference_free(&ref);
    }
}

static void types_by_hand(void **state)
{
    (void)state;
    assert_int_equal(reference_encode(JG_F16, 1), 0x3c00);
    assert_int_equal(reference_encode(JG_F16, 65519), 0x7bff);
    assert_int_equal(reference_encode(JG_F16, 65520), 0x7c00);
    assert_int_equal(reference_encode(JG_F16, 0x1p-24), 0x0001);
    assert_int_equal(reference_encode(JG_BF16, -1), 0xbf80);
    assert_int_equal(reference_encode(JG_BF16, 257), 0x4380);
    assert_true(reference_decode(JG_F16, 0x8001) == -0x1p-24);
    assert_true(reference_decode(JG_BF16, 0x7f80) == INFINITY);
    const float values[] = {0, -0.0f, 1, -3.14159f, 0x1p-149f, 3.4028235e38f, 0x1.fffffep-127f, INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        assert_int_equal(reference_encode(JG_F32, values[i]), bits);
        assert_true(reference_decode(JG_F32, bits) == values[i]);
    }
}

static void threads_change_nothing(void **state)
{
    (void)state;
    static double r1[67 * 41], s1[67 * 41], r3[67 * 41], s3[67 * 41];
    jg_problem p = {.m = 67, .n = 41, .k = 129};
    reference ref;
    reference_make(&ref, &p, REFERENCE_UNIFORM, 0, 1);
    reference_product(&ref, 0, 1, 0, r1, s1);
    reference_threads(3);
    reference_product(&ref, 0, 1, 0, r3, s3);
    reference_threads(1);
    assert_memory_equal(r1, r3, sizeof r1);
    assert_memory_equal(s1, s3, sizeof s1);
    reference_free(&ref);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(product_by_hand_in_every_layout),
        cmocka_unit_test(samples_are_judged_alone), cmocka_unit_test(layouts_by_hand),
        cmocka_unit_test(dense_strides_by_hand),
        cmocka_unit_test(shared_matrix_serves_every_item),
        cmocka_unit_test(unread_operands_do_not_matter),
        cmocka_unit_test(right_answers_pass),
        cmocka_unit_test(planted_values_are_caught),
        cmocka_unit_test(one_unit_off_is_noticed),
        cmocka_unit_test(stray_writes_are_caught),
        cmocka_unit_test(overflow_to_infinity_is_right_only_at_the_edge),
        cmocka_unit_test(types_by_hand),
        cmocka_unit_test(threads_change_nothing),
    };
    return cmocka_run_group_tests_name("reference", tests, NULL, NULL);
}
