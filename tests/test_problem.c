/* src/problem.c: defaults, the column-major swap, and an error for every rule of sizes and layout, which must name the member.
 * Types are in test_problem_types.c; epilogues, math modes and groups in test_problem_fused.c. */
#include "problem.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static problem canonical(jg_problem in)
{
    problem out;
    memset(&out, 0xee, sizeof out);
    assert_int_equal(problem_canonicalise(&in, &out), JG_OK);
    return out;
}

static void defaults_are_filled_in(void **state)
{
    (void)state;
    problem p = canonical((jg_problem){.m = 2, .n = 3, .k = 5});
    const problem expected = {.m = 2, .n = 3, .k = 5, .batch = 1, .lda = 5, .ldb = 3, .ldc = 3, .type_a = JG_F32,
                              .type_b = JG_F32, .type_c = JG_F32, .align_bytes = 16};
    assert_memory_equal(&p, &expected, sizeof p);
    p = canonical((jg_problem){.m = 2, .n = 3, .k = 5, .op_a = JG_T, .op_b = JG_T});
    assert_true(p.lda == 2 && p.ldb == 5 && p.ldc == 3);
}

static void column_major_is_the_transposed_product(void **state)
{
    (void)state;
    problem p = canonical((jg_problem){.m = 2, .n = 3, .k = 5, .batch = 4, .order = JG_COL_MAJOR, .op_a = JG_T,
                                       .lda = 7, .ldb = 8, .ldc = 9, .stride_a = 100, .stride_b = 200,
                                       .stride_c = 300, .form = JG_FORM_GENERIC});
    /* Our A is the caller's B, 5 x 3 with columns of 5: read as rows it is 3 x 5, just what op(A) must be. */
    const problem expected = {.m = 3, .n = 2, .k = 5, .batch = 4, .lda = 8, .ldb = 7, .ldc = 9, .stride_a = 200,
                              .stride_b = 100, .stride_c = 300, .type_a = JG_F32, .type_b = JG_F32,
                              .type_c = JG_F32, .op_a = JG_N, .op_b = JG_T, .form = JG_FORM_GENERIC, .swapped = 1,
                              .align_bytes = 16};
    assert_memory_equal(&p, &expected, sizeof p);
}

/* A leading dimension is the length of a stored column, whatever op does with it. */
static void column_major_default_leading_dimensions(void **state)
{
    (void)state;
    const struct {
        jg_op op_a, op_b;
        int64_t lda, ldb;
    } rows[] = {{JG_N, JG_N, 2, 5}, {JG_N, JG_T, 2, 3}, {JG_T, JG_N, 5, 5}, {JG_T, JG_T, 5, 3}};
    for (size_t i = 0; i < 4; i++) {
        problem p = canonical((jg_problem){.m = 2, .n = 3, .k = 5, .order = JG_COL_MAJOR, .op_a = rows[i].op_a,
                                           .op_b = rows[i].op_b});
        assert_true(p.ldb == rows[i].lda && p.lda == rows[i].ldb && p.ldc == 2); /* swapped */
        assert_true(p.op_b == rows[i].op_a && p.op_a == rows[i].op_b);
    }
}

/* The caller's m is our n where A and B change places; to a generic kernel every dimension changes. */
static void dynamic_dimensions_follow_the_swap(void **state)
{
    (void)state;
    const struct {
        uint32_t given;
        uint8_t row, col;
    } rows[] = {
        {0, 0, 0},
        {JG_DYNAMIC_M, JG_DYNAMIC_M, JG_DYNAMIC_N},
        {JG_DYNAMIC_N, JG_DYNAMIC_N, JG_DYNAMIC_M},
        {JG_DYNAMIC_K | JG_DYNAMIC_BATCH, JG_DYNAMIC_K | JG_DYNAMIC_BATCH, JG_DYNAMIC_K | JG_DYNAMIC_BATCH},
        {JG_DYNAMIC_M | JG_DYNAMIC_K, JG_DYNAMIC_M | JG_DYNAMIC_K, JG_DYNAMIC_N | JG_DYNAMIC_K},
        {DYNAMIC_ALL, DYNAMIC_ALL, DYNAMIC_ALL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (jg_form form = JG_FORM_AUTO; form <= JG_FORM_SPECIALISED; form++) {
            jg_problem in = {.m = 2, .n = 3, .k = 5, .form = form, .dynamic = rows[i].given};
            assert_int_equal(canonical(in).dynamic, rows[i].row);
            in.order = JG_COL_MAJOR;
            assert_int_equal(canonical(in).dynamic, rows[i].col);
        }
}

static void the_compile_policy_is_checked_and_left_out(void **state)
{
    (void)state;
    const problem without = canonical((jg_problem){.m = 2, .n = 3, .k = 5});
    for (jg_compile compile = JG_COMPILE_DEFAULT; compile <= JG_COMPILE_BACKGROUND; compile++) {
        const problem with = canonical((jg_problem){.m = 2, .n = 3, .k = 5, .compile = compile});
        assert_memory_equal(&with, &without, sizeof with);
    }
}

static void batch_zero_means_one_unless_a_stride_is_set(void **state)
{
    (void)state;
    problem p = canonical((jg_problem){.m = 2, .n = 2, .k = 2});
    assert_true(p.batch == 1 && !problem_is_empty(&p));
    for (int which = 0; which < 3; which++) {
        p = canonical((jg_problem){.m = 2, .n = 2, .k = 2, .stride_a = which == 0, .stride_b = which == 1,
                                   .stride_c = which == 2});
        assert_true(p.batch == 0 && problem_is_empty(&p));
        assert_true(p.stride_a == 0 && p.stride_b == 0 && p.stride_c == 0);
    }
}

static void strides_of_one_item_do_not_count(void **state)
{
    (void)state;
    problem with = canonical((jg_problem){.m = 2, .n = 2, .k = 2, .batch = 1, .stride_a = INT64_MAX, .stride_c = 1});
    problem without = canonical((jg_problem){.m = 2, .n = 2, .k = 2});
    assert_memory_equal(&with, &without, sizeof with);
}

static void empty_problems_are_known_and_still_checked(void **state)
{
    (void)state;
    problem p = canonical((jg_problem){.m = 0, .n = 3, .k = 5});
    assert_true(problem_is_empty(&p));
    p = canonical((jg_problem){.m = 3, .n = 0, .k = 5});
    assert_true(problem_is_empty(&p) && p.ldb == 1 && p.ldc == 1);
    p = canonical((jg_problem){.m = 3, .n = 4, .k = 0});
    assert_true(!problem_is_empty(&p) && p.lda == 1);
    jg_problem in = {.m = 0, .n = 3, .k = 5, .lda = 4};
    assert_int_equal(problem_canonicalise(&in, &p), JG_ERR_LEADING_DIMENSION);
}

static void alignment_promise(void **state)
{
    (void)state;
    const struct {
        jg_type a, c;
        uint32_t given;
        int resolved;
    } rows[] = {
        {JG_F32, JG_F32, 0, 16}, {JG_F32, JG_F32, 1, 4},  {JG_F32, JG_F32, 8, 8},  {JG_F32, JG_F32, 4096, 16},
        {JG_F16, JG_F16, 1, 2},  {JG_F16, JG_F32, 2, 2},  {JG_F16, JG_F32, 1, 2},  {JG_BF16, JG_BF16, 32, 16},
        {JG_F32, JG_F16, 1, 2},  {JG_S8, JG_S32, 1, 1},   {JG_S8, JG_S32, 4, 4},   {JG_S4, JG_S32, 1, 1},
        {JG_F32, JG_E4M3, 1, 1}, {JG_E5M2, JG_F32, 0, 16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        problem p = canonical((jg_problem){.m = 1, .n = 1, .k = 1, .type_a = rows[i].a, .type_c = rows[i].c,
                                           .align_bytes = rows[i].given});
        assert_int_equal(p.align_bytes, rows[i].resolved);
    }
}

#define P(...) {.m = 4, .n = 4, .k = 4, __VA_ARGS__}
#define Q(...) {__VA_ARGS__}

/* One row a rule: the problem, the status, and what the text must name. */
static const struct {
    jg_problem problem;
    jg_status status;
    const char *named;
} bad[] = {
    {P(.type_a = 10), JG_ERR_TYPE, "type_a = 10"},
    {P(.type_a = 10), JG_ERR_TYPE, "JG_E5M2"},
    {P(.type_b = 99), JG_ERR_TYPE, "type_b = 99"},
    {P(.type_c = 10), JG_ERR_TYPE, "type_c = 10"},
    {P(.type_c = -1), JG_ERR_TYPE, "type_c = 4294967295"},
    {P(.type_c = 10), JG_ERR_TYPE, "JG_S32"},
    {P(.op_a = 2), JG_ERR_VALUE, "op_a = 2"},
    {P(.op_b = 7), JG_ERR_VALUE, "op_b = 7"},
    {P(.order = 2), JG_ERR_VALUE, "order = 2"},
    {P(.form = 3), JG_ERR_VALUE, "form = 3"},
    {P(.dynamic = 16), JG_ERR_VALUE, "dynamic = 16"},
    {P(.dynamic = 0x80000001u), JG_ERR_VALUE, "dynamic = 2147483649"},
    {P(.dynamic = 16, .form = JG_FORM_GENERIC), JG_ERR_VALUE, "JG_DYNAMIC_M"},
    {P(.compile = 4), JG_ERR_VALUE, "compile = 4"},
    {P(.compile = 4), JG_ERR_VALUE, "JG_COMPILE_WAIT"},
    {P(.reserved = 1), JG_ERR_VALUE, "reserved = 1"},
    {P(.align_bytes = 3), JG_ERR_VALUE, "align_bytes = 3"},
    {P(.align_bytes = 8192), JG_ERR_VALUE, "align_bytes = 8192"},
    {P(.align_bytes = 0x80000000u), JG_ERR_VALUE, "align_bytes = 2147483648"},
    {P(.type_a = JG_F32, .type_c = JG_S32), JG_ERR_TYPE, "f32 x f32 -> s32"},
    {Q(.m = -1, .n = 1, .k = 1), JG_ERR_SIZE, "m = -1"},
    {Q(.m = 1, .n = INT64_MIN, .k = 1), JG_ERR_SIZE, "n = -9223372036854775808"},
    {Q(.m = 1, .n = 1, .k = -7), JG_ERR_SIZE, "k = -7"},
    {Q(.m = INT64_C(2147483648), .n = 1, .k = 1), JG_ERR_SIZE, "m = 2147483648"},
    {Q(.m = 1, .n = 1, .k = INT64_MAX), JG_ERR_SIZE, "k = 9223372036854775807"},
    {P(.batch = -2), JG_ERR_SIZE, "batch = -2"},
    {P(.batch = INT64_C(2147483648)), JG_ERR_SIZE, "batch = 2147483648"},
    {P(.stride_a = -1), JG_ERR_SIZE, "stride_a = -1"},
    {P(.stride_b = -1), JG_ERR_SIZE, "stride_b = -1"},
    {P(.stride_c = -1), JG_ERR_SIZE, "stride_c = -1"},
    {P(.lda = 3), JG_ERR_LEADING_DIMENSION, "lda = 3"},
    {P(.ldb = -4), JG_ERR_LEADING_DIMENSION, "ldb = -4"},
    {P(.ldc = 1), JG_ERR_LEADING_DIMENSION, "ldc = 1"},
    {P(.ldc = 3, .order = JG_COL_MAJOR), JG_ERR_LEADING_DIMENSION, "a column of C"},
    {Q(.m = 9, .n = 2, .k = 5, .lda = 8, .order = JG_COL_MAJOR), JG_ERR_LEADING_DIMENSION, "lda = 8"},
    {Q(.m = 9, .n = 2, .k = 5, .ldb = 4, .order = JG_COL_MAJOR), JG_ERR_LEADING_DIMENSION, "ldb = 4"},
    {Q(.m = 2, .n = 9, .k = 5, .lda = 4), JG_ERR_LEADING_DIMENSION, "a row of A as stored has 5"},
    {Q(.m = 7, .n = 9, .k = 5, .lda = 6, .op_a = JG_T), JG_ERR_LEADING_DIMENSION, "has 7"},
    {P(.batch = 2), JG_ERR_SIZE, "stride_c = 0"},
    {P(.batch = 2, .stride_c = 15), JG_ERR_SIZE, "m * ldc = 16"},
    {P(.batch = 2, .stride_c = 19, .ldc = 5), JG_ERR_SIZE, "m * ldc = 20"},
    {Q(.m = 3, .n = 5, .k = 1, .batch = 2, .stride_c = 14, .order = JG_COL_MAJOR), JG_ERR_SIZE, "n * ldc = 15"},
    {P(.lda = INT64_MAX / 4), JG_ERR_OVERFLOW, "A ends"},
    {P(.ldb = INT64_C(1) << 61), JG_ERR_OVERFLOW, "ldb = 2305843009213693952"},
    {P(.ldc = INT64_C(1) << 61), JG_ERR_OVERFLOW, "C ends"},
    {P(.lda = INT64_C(1) << 61, .order = JG_COL_MAJOR), JG_ERR_OVERFLOW, "A ends"},
    {P(.batch = 3, .stride_a = INT64_C(1) << 61, .stride_c = 16), JG_ERR_OVERFLOW, "stride_a = 2305843009213693952"},
    {P(.batch = 5, .stride_a = INT64_C(1) << 62, .stride_c = 16), JG_ERR_OVERFLOW, "A ends"}, /* 2^64 elements */
    {P(.batch = 2, .stride_b = INT64_MAX, .stride_c = 16), JG_ERR_OVERFLOW, "B ends"},
    {P(.batch = 2, .stride_c = INT64_MAX / 4), JG_ERR_OVERFLOW, "C ends"},
    /* Several at once: the order of the checks. */
    {P(.type_a = 44, .op_a = 2), JG_ERR_TYPE, "type_a"},
    {Q(.m = -1, .n = 1, .k = 1, .type_b = JG_F16), JG_ERR_TYPE, "f32 x f16"},
    {Q(.m = -1, .n = 1, .k = 1, .ldc = -1), JG_ERR_SIZE, "m = -1"},
    {P(.lda = 1, .batch = 2), JG_ERR_LEADING_DIMENSION, "lda = 1"},
};

static void every_rule_has_its_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        problem out, untouched;
        memset(&untouched, 0xee, sizeof untouched);
        out = untouched;
        jg_status status = problem_canonicalise(&bad[i].problem, &out);
        if (status != bad[i].status || !strstr(jg_last_error(), bad[i].named))
            fail_msg("row %zu (%s): %s, %s", i, bad[i].named, jg_status_name(status), jg_last_error());
        assert_memory_equal(&out, &untouched, sizeof out);
    }
    problem out;
    assert_int_equal(problem_canonicalise(NULL, &out), JG_ERR_NULL);
}

/* The largest layouts that fit, one element below those that do not. */
static void limits_are_exact(void **state)
{
    (void)state;
    problem out;
    const int64_t most = INT64_MAX / 4; /* elements of 4 bytes */
    jg_problem in = {.m = 2, .n = 3, .k = 4, .lda = most - 4};
    assert_int_equal(problem_canonicalise(&in, &out), JG_OK);
    in.lda++;
    assert_int_equal(problem_canonicalise(&in, &out), JG_ERR_OVERFLOW);
    in = (jg_problem){.m = 2, .n = 3, .k = 4, .batch = 2, .stride_c = most - 3 - 3};
    assert_int_equal(problem_canonicalise(&in, &out), JG_OK);
    in.stride_c++;
    assert_int_equal(problem_canonicalise(&in, &out), JG_ERR_OVERFLOW);
    in = (jg_problem){.m = 2147483647, .n = 2147483647, .k = 2147483647, .type_a = JG_F16};
    assert_int_equal(problem_canonicalise(&in, &out), JG_OK);
    in = (jg_problem){.m = 4, .n = 4, .k = 4, .batch = 2, .stride_c = 16};
    assert_int_equal(problem_canonicalise(&in, &out), JG_OK);
    assert_true(out.stride_a == 0 && out.stride_c == 16);
    in.align_bytes = 4096;
    assert_int_equal(problem_canonicalise(&in, &out), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(column_major_is_the_transposed_product),
        cmocka_unit_test(column_major_default_leading_dimensions),
        cmocka_unit_test(dynamic_dimensions_follow_the_swap),
        cmocka_unit_test(the_compile_policy_is_checked_and_left_out),
        cmocka_unit_test(batch_zero_means_one_unless_a_stride_is_set),
        cmocka_unit_test(strides_of_one_item_do_not_count),
        cmocka_unit_test(empty_problems_are_known_and_still_checked),
        cmocka_unit_test(alignment_promise),
        cmocka_unit_test(every_rule_has_its_error),
        cmocka_unit_test(limits_are_exact),
    };
    return cmocka_run_group_tests_name("problem", tests, NULL, NULL);
}
