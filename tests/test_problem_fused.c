/* src/problem.c: math modes, epilogues, residuals and the weights' groups: what is copied, what is turned round, and what is
 * refused. */
#include "problem.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define P(...) {.m = 4, .n = 6, .k = 8, __VA_ARGS__}

static problem canonical(jg_problem in)
{
    problem out;
    memset(&out, 0xee, sizeof out);
    if (problem_canonicalise(&in, &out) != JG_OK) fail_msg("%s", jg_last_error());
    return out;
}

typedef struct refusal {
    jg_problem problem;
    jg_status status;
    const char *named;
} refusal;

static void assert_refused(const refusal *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        problem out, untouched;
        memset(&untouched, 0xee, sizeof untouched);
        out = untouched;
        const jg_status status = problem_canonicalise(&rows[i].problem, &out);
        if (status != rows[i].status || !strstr(jg_last_error(), rows[i].named))
            fail_msg("row %zu (%s): %s, %s", i, rows[i].named, jg_status_name(status), status ? jg_last_error() : "");
        assert_memory_equal(&out, &untouched, sizeof out);
    }
}

static void values_that_are_not_known(void **state)
{
    (void)state;
    static const refusal rows[] = {
        {P(.math = 5), JG_ERR_VALUE, "math = 5 is not a known value; use JG_MATH_DEFAULT"},
        {P(.math = 0x3f), JG_ERR_VALUE, "math = 63"},
        {P(.math = 0x40), JG_ERR_VALUE, "math = 64"},
        {P(.math = 0x80000000u), JG_ERR_VALUE, "math = 2147483648"},
        {P(.epilogue = 256), JG_ERR_VALUE, "epilogue = 256"},
        {P(.epilogue = 0xffffffffu), JG_ERR_VALUE, "epilogue = 4294967295"},
        {P(.activation = 8), JG_ERR_VALUE, "activation = 8 is not a known value; use JG_ACTIVATION_NONE"},
        {P(.activation = -1), JG_ERR_VALUE, "activation = 4294967295"},
        {P(.type_bias = JG_S8), JG_ERR_TYPE, "type_bias = 4 is not a known value; use JG_F32, JG_F16, JG_BF16"},
        {P(.type_bias = 99, .epilogue = JG_EPILOGUE_BIAS_N), JG_ERR_TYPE, "type_bias = 99"},
        {P(.group_k = 1), JG_ERR_VALUE, "group_k = 1 is not a known value; use 32, 64 or 128, or 0"},
        {P(.group_k = 16), JG_ERR_VALUE, "group_k = 16"},
        {P(.group_k = 96), JG_ERR_VALUE, "group_k = 96"},
        {P(.group_k = 256), JG_ERR_VALUE, "group_k = 256"},
        {P(.group_k = 0x80000020u), JG_ERR_VALUE, "group_k = 2147483680"},
        {P(.zero_points = 2), JG_ERR_VALUE, "zero_points = 2"},
        {P(.stride_residual = -1), JG_ERR_SIZE, "stride_residual = -1"},
    };
    assert_refused(rows, COUNT(rows));
}

/* --- math --- */

static void modes_and_the_types_that_they_are_for(void **state)
{
    (void)state;
    static const jg_type pairs[][2] = {{JG_F32, JG_F32}, {JG_F16, JG_F16}, {JG_BF16, JG_BF16}, {JG_S8, JG_U8}, {JG_S4, JG_S4},
                                       {JG_F16, JG_S8}, {JG_S4, JG_F16}, {JG_S8, JG_BF16}, {JG_E4M3, JG_E5M2}};
    for (size_t i = 0; i < COUNT(pairs); i++)
        for (uint32_t mode = JG_MATH_DEFAULT; mode <= JG_MATH_F16; mode++)
            for (uint32_t flags = 0; flags <= MATH_FLAGS; flags += JG_MATH_FLUSH)
                for (int order = 0; order < 2; order++) {
                    const jg_problem in = P(.type_a = pairs[i][0], .type_b = pairs[i][1], .math = mode | flags,
                                            .order = (jg_order)order);
                    const int right = mode == JG_MATH_DEFAULT || mode == JG_MATH_STRICT ||
                                      pairs[i][0] == (mode == JG_MATH_F16 ? JG_F16 : JG_F32);
                    const int is_right = right && (mode != JG_MATH_F16 || pairs[i][1] == JG_F16);
                    problem p;
                    const jg_status status = problem_canonicalise(&in, &p);
                    assert_int_equal(status, is_right ? JG_OK : JG_ERR_TYPE);
                    if (is_right) {
                        assert_int_equal(p.math, mode | flags);
                        assert_int_equal(problem_math_mode(&p), mode);
                    } else {
                        assert_non_null(strstr(jg_last_error(), "math = JG_MATH_"));
                        assert_non_null(strstr(jg_last_error(), "nearest that works: JG_MATH_DEFAULT"));
                    }
                }
    static const refusal rows[] = {
        {P(.type_a = JG_F16, .math = JG_MATH_TF32), JG_ERR_TYPE, "math = JG_MATH_TF32 is for f32 x f32, not for f16 x f16"},
        {P(.type_a = JG_S8, .math = JG_MATH_F32_3XTF32 | JG_MATH_FLUSH), JG_ERR_TYPE, "math = JG_MATH_F32_3XTF32 is for f32"},
        {P(.type_a = JG_BF16, .math = JG_MATH_F16), JG_ERR_TYPE, "math = JG_MATH_F16 is for f16 x f16, not for bf16 x bf16"},
        {P(.type_a = JG_S4, .type_b = JG_F16, .math = JG_MATH_F16, .order = JG_COL_MAJOR), JG_ERR_TYPE, "not for s4 x f16"},
    };
    assert_refused(rows, COUNT(rows));
    canonical((jg_problem)P(.math = JG_MATH_TF32, .type_c = JG_E4M3)); /* whatever C is */
    canonical((jg_problem)P(.type_a = JG_F16, .math = JG_MATH_F16, .type_c = JG_F32));
}

/* --- the epilogue --- */

static void every_flag_and_its_turn(void **state)
{
    (void)state;
    static const uint32_t turned[] = {JG_EPILOGUE_SCALE, JG_EPILOGUE_SCALE_N, JG_EPILOGUE_SCALE_M, JG_EPILOGUE_BIAS_N,
                                      JG_EPILOGUE_BIAS_M, JG_EPILOGUE_RESIDUAL, JG_EPILOGUE_RESIDUAL_AFTER,
                                      JG_EPILOGUE_REQUANTIZE};
    const uint32_t both = JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER;
    for (uint32_t flags = 0; flags < 256; flags++) {
        jg_problem in = P(.epilogue = flags);
        problem p;
        if ((flags & both) == both) {
            assert_int_equal(problem_canonicalise(&in, &p), JG_ERR_VALUE);
            continue;
        }
        uint32_t expected = 0;
        for (int bit = 0; bit < 8; bit++)
            if (flags >> bit & 1) expected |= turned[bit];
        p = canonical(in);
        assert_int_equal(p.epilogue, flags);
        assert_int_equal(problem_is_fused(&p) != 0, flags != 0);
        in.order = JG_COL_MAJOR;
        assert_int_equal(canonical(in).epilogue, expected);
        assert_int_equal(problem_transposed_epilogue((uint8_t)flags), expected);
        assert_int_equal(problem_transposed_epilogue((uint8_t)expected), flags);
    }
    static const refusal rows[] = {
        {P(.epilogue = both), JG_ERR_VALUE, "epilogue = 96 has JG_EPILOGUE_RESIDUAL and JG_EPILOGUE_RESIDUAL_AFTER; nearest"},
        {P(.epilogue = 255, .order = JG_COL_MAJOR), JG_ERR_VALUE, "epilogue = 255 has"},
    };
    assert_refused(rows, COUNT(rows));
}

static void activations_are_copied(void **state)
{
    (void)state;
    for (jg_activation x = JG_ACTIVATION_NONE; x <= JG_ACTIVATION_SIGMOID; x++)
        for (int order = 0; order < 2; order++) {
            const problem p = canonical((jg_problem)P(.activation = x, .order = (jg_order)order));
            assert_int_equal(p.activation, x);
            assert_int_equal(problem_is_fused(&p) != 0, x != JG_ACTIVATION_NONE);
        }
}

static void the_type_of_a_bias_counts_where_there_is_one(void **state)
{
    (void)state;
    for (jg_type t = JG_DEFAULT_TYPE; t <= JG_BF16; t++) {
        const uint8_t resolved = t ? (uint8_t)t : JG_F32;
        assert_int_equal(canonical((jg_problem)P(.type_bias = t)).type_bias, 0);
        assert_int_equal(canonical((jg_problem)P(.type_bias = t, .epilogue = JG_EPILOGUE_SCALE_N)).type_bias, 0);
        assert_int_equal(canonical((jg_problem)P(.type_bias = t, .epilogue = JG_EPILOGUE_BIAS_M)).type_bias, resolved);
        assert_int_equal(canonical((jg_problem)P(.type_bias = t, .epilogue = JG_EPILOGUE_BIAS_N)).type_bias, resolved);
        const jg_problem bytes = P(.type_a = JG_S8, .type_bias = t, .epilogue = JG_EPILOGUE_BIAS_N);
        assert_int_equal(canonical(bytes).type_bias, resolved);
    }
}

/* --- the residual --- */

#define RESIDUAL(...) P(.epilogue = JG_EPILOGUE_RESIDUAL, __VA_ARGS__)
#define AFTER(...) P(.epilogue = JG_EPILOGUE_RESIDUAL_AFTER, __VA_ARGS__)

static void the_layout_of_a_residual(void **state)
{
    (void)state;
    problem p = canonical((jg_problem)RESIDUAL());
    assert_true(p.ld_residual == 6 && p.stride_residual == 0);
    p = canonical((jg_problem)AFTER(.ldc = 9));
    assert_int_equal(p.ld_residual, 9); /* ldc, and not densely packed */
    p = canonical((jg_problem)AFTER(.ldc = 9, .ld_residual = 6));
    assert_true(p.ld_residual == 6 && p.ldc == 9);
    p = canonical((jg_problem)RESIDUAL(.order = JG_COL_MAJOR));
    assert_int_equal(p.ld_residual, 4);
    p = canonical((jg_problem)RESIDUAL(.order = JG_COL_MAJOR, .ld_residual = 5));
    assert_true(p.ld_residual == 5 && p.ldc == 4);
    p = canonical((jg_problem)RESIDUAL(.batch = 3, .stride_c = 24));
    assert_int_equal(p.stride_residual, 0); /* one for all items */
    p = canonical((jg_problem)RESIDUAL(.batch = 3, .stride_c = 24, .stride_residual = 5)); /* items may overlap: they are read */
    assert_int_equal(p.stride_residual, 5);
    p = canonical((jg_problem)RESIDUAL(.batch = 1, .stride_residual = INT64_MAX));
    assert_int_equal(p.stride_residual, 0);
    /* A stride that is set tells an empty batch from none, if it is of something. */
    assert_int_equal(canonical((jg_problem)RESIDUAL(.stride_residual = 7)).batch, 0);
    assert_int_equal(canonical((jg_problem)P(.stride_residual = 7)).batch, 1);
    /* Without one nothing of it counts. */
    p = canonical((jg_problem)P(.ld_residual = 1, .stride_residual = 77, .batch = 2, .stride_c = 24));
    assert_true(p.ld_residual == 0 && p.stride_residual == 0);
    p = canonical((jg_problem){.m = 0, .n = 0, .epilogue = JG_EPILOGUE_RESIDUAL});
    assert_int_equal(p.ld_residual, 1);
    static const refusal rows[] = {
        {RESIDUAL(.ld_residual = 5), JG_ERR_LEADING_DIMENSION,
         "ld_residual = 5 is too small; a row of the residual as stored has 6"},
        {AFTER(.ld_residual = -6), JG_ERR_LEADING_DIMENSION, "ld_residual = -6"},
        {RESIDUAL(.ld_residual = 3, .order = JG_COL_MAJOR), JG_ERR_LEADING_DIMENSION, "a column of the residual as stored has 4"},
        {RESIDUAL(.ld_residual = INT64_C(1) << 61), JG_ERR_OVERFLOW,
         "the residual ends beyond 2^63 - 1 bytes: ld_residual = 2305"},
        {AFTER(.batch = 2, .stride_c = 24, .stride_residual = INT64_MAX / 4), JG_ERR_OVERFLOW,
         "stride_residual = 2305843009213693951"},
        {RESIDUAL(.ldc = 5, .ld_residual = 5), JG_ERR_LEADING_DIMENSION, "ldc = 5"}, /* C first */
    };
    assert_refused(rows, COUNT(rows));
    /* It has C's type: the same offset that is too large for f32 is not for bytes. */
    canonical((jg_problem)RESIDUAL(.ld_residual = INT64_C(1) << 61, .type_c = JG_S8));
}

/* --- groups of weights --- */

#define WEIGHTS(...) {.m = 4, .n = 6, .k = 100, .type_a = JG_F16, .type_b = JG_S4, __VA_ARGS__}

static void groups_are_for_weights(void **state)
{
    (void)state;
    static const jg_type halves[] = {JG_F16, JG_BF16}, integers[] = {JG_S8, JG_S4};
    for (int i = 0; i < 32; i++) {
        const jg_type half = halves[i & 1], weights = integers[i >> 1 & 1];
        const int first = i >> 2 & 1;
        const jg_problem in = P(.type_a = first ? weights : half, .type_b = first ? half : weights, .group_k = 32u << (i % 3),
                                .zero_points = (uint32_t)(i >> 3 & 1), .order = (jg_order)(i >> 4));
        const problem p = canonical(in);
        assert_int_equal(p.group_k, in.group_k);
        assert_int_equal(p.zero_points, in.zero_points);
        assert_int_equal(problem_is_weights(&p, 1), first == (in.order == JG_COL_MAJOR));
        assert_int_equal(problem_is_weights(&p, 0), first == (in.order == JG_ROW_MAJOR));
        assert_true(problem_is_fused(&p));
    }
    static const refusal rows[] = {
        {P(.group_k = 32), JG_ERR_TYPE,
         "group_k = 32 is for f16 or bf16 x s8 or s4, not for f32 x f32; nearest that works: group_k = 0"},
        {P(.group_k = 64, .type_a = JG_S4), JG_ERR_TYPE, "group_k = 64 is for f16 or bf16 x s8 or s4, not for s4 x s4"},
        {P(.group_k = 128, .type_a = JG_F16), JG_ERR_TYPE, "group_k = 128"},
        {P(.group_k = 128, .type_a = JG_E4M3), JG_ERR_TYPE, "not for e4m3 x e4m3"},
        {P(.group_k = 32, .type_a = JG_U8, .type_b = JG_S8, .order = JG_COL_MAJOR), JG_ERR_TYPE, "not for u8 x s8"},
        {WEIGHTS(.zero_points = 1), JG_ERR_VALUE,
         "zero_points = 1 without groups, as group_k = 0; nearest that works: group_k = 32"},
        {P(.zero_points = 1), JG_ERR_VALUE, "nearest that works: zero_points = 0"},
    };
    assert_refused(rows, COUNT(rows));
}

/* A scale for each group and column of each item: there can be more of them than of the weights, whose items may overlap. */
static void scales_that_end_too_far(void **state)
{
    (void)state;
    const int64_t most = INT64_C(2147483647);
    jg_problem p = WEIGHTS(.group_k = 32, .zero_points = 1);
    p.n = p.k = most;
    p.batch = 64; /* 2^26 groups of 2^31 columns of two bytes: 2^58 an item */
    p.stride_c = 4 * most;
    canonical(p); /* one weight matrix for all */
    p.stride_b = 2;
    problem out;
    assert_int_equal(problem_canonicalise(&p, &out), JG_ERR_OVERFLOW);
    assert_non_null(strstr(jg_last_error(), "group_scales end beyond 2^63 - 1 bytes: group_k = 32, k = 2147483647, "
                                            "n = 2147483647, batch = 64"));
    p.batch = 31;
    canonical(p);
    p.batch = 64;
    p.group_k = 128;
    canonical(p);
    p.group_k = 32;
    p.type_a = JG_S4;
    p.type_b = JG_F16;
    canonical(p); /* four rows of weights */
    p.order = JG_COL_MAJOR;
    p.m = most;
    p.n = 4;
    p.stride_a = 2;
    p.stride_b = 0;
    assert_int_equal(problem_canonicalise(&p, &out), JG_ERR_OVERFLOW);
    assert_non_null(strstr(jg_last_error(), "m = 2147483647"));
}

/* Everything at once, in either order; and what is not asked for leaves nothing in the key. */
static void the_whole_struct(void **state)
{
    (void)state;
    const jg_problem in = {.m = 4, .n = 6, .k = 64, .batch = 2, .type_a = JG_F16, .type_b = JG_S8, .type_c = JG_E4M3,
                           .order = JG_COL_MAJOR, .stride_c = 24, .math = JG_MATH_STRICT | JG_MATH_SANITIZE,
                           .epilogue = JG_EPILOGUE_SCALE_M | JG_EPILOGUE_BIAS_N | JG_EPILOGUE_RESIDUAL_AFTER |
                                       JG_EPILOGUE_REQUANTIZE,
                           .activation = JG_ACTIVATION_SILU, .type_bias = JG_BF16, .group_k = 64, .zero_points = 1,
                           .ld_residual = 5, .stride_residual = 30};
    const problem expected = {.m = 6, .n = 4, .k = 64, .batch = 2, .lda = 64, .ldb = 4, .ldc = 4, .stride_c = 24,
                              .ld_residual = 5, .stride_residual = 30, .type_a = JG_S8, .type_b = JG_F16,
                              .type_c = JG_E4M3, .swapped = 1, .align_bytes = 16,
                              .math = JG_MATH_STRICT | JG_MATH_SANITIZE,
                              .epilogue = JG_EPILOGUE_SCALE_N | JG_EPILOGUE_BIAS_M | JG_EPILOGUE_RESIDUAL_AFTER |
                                          JG_EPILOGUE_REQUANTIZE,
                              .activation = JG_ACTIVATION_SILU, .type_bias = JG_BF16, .group_k = 64, .zero_points = 1};
    const problem p = canonical(in);
    assert_memory_equal(&p, &expected, sizeof p);
    const problem plain = canonical((jg_problem)P()), idle = canonical((jg_problem)P(.type_bias = JG_F16, .ld_residual = 9));
    assert_memory_equal(&plain, &idle, sizeof plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_that_are_not_known),
        cmocka_unit_test(modes_and_the_types_that_they_are_for),
        cmocka_unit_test(every_flag_and_its_turn),
        cmocka_unit_test(activations_are_copied),
        cmocka_unit_test(the_type_of_a_bias_counts_where_there_is_one),
        cmocka_unit_test(the_layout_of_a_residual),
        cmocka_unit_test(groups_are_for_weights),
        cmocka_unit_test(scales_that_end_too_far),
        cmocka_unit_test(the_whole_struct),
    };
    return cmocka_run_group_tests_name("problem_fused", tests, NULL, NULL);
}
