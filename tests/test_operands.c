/* Operands in canonical order, their defaults, and the checks on them. */
#include "operands.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char room[64] __attribute__((aligned(64)));

static void test_defaults_and_order(void **state)
{
    (void)state;
    problem p = {.k = 4};
    const float alpha = 2, beta = 3;
    operands o = operands_canonicalise(&p, &(jg_operands){.a = room, .b = room + 16, .c = room + 32});
    assert_ptr_equal(o.a, room);
    assert_ptr_equal(o.b, room + 16);
    assert_ptr_equal(o.c, room + 32);
    assert_true(o.alpha == 1 && o.beta == 0);
    p.swapped = 1;
    o = operands_canonicalise(&p, &(jg_operands){.a = room, .b = room + 16, .alpha = &alpha, .beta = &beta});
    assert_ptr_equal(o.a, room + 16);
    assert_ptr_equal(o.b, room);
    assert_string_equal(o.name_a, "b");
    assert_true(o.alpha == 2 && o.beta == 3);
}

static void test_empty_sum_has_no_alpha(void **state)
{
    (void)state;
    const problem p = {.k = 0};
    const float alpha = INFINITY;
    const operands o = operands_canonicalise(&p, &(jg_operands){.alpha = &alpha});
    assert_true(o.alpha == 0);
    assert_false(operands_read_ab(&o));
}

static void test_alignment(void **state)
{
    (void)state;
    assert_int_equal(operands_alignment(NULL), 16);
    assert_int_equal(operands_alignment(room), 16);
    for (unsigned i = 1; i < 16; i *= 2) assert_int_equal(operands_alignment(room + i), i);
    assert_int_equal(operands_alignment(room + 6), 2);
}

static void test_checks_name_the_member(void **state)
{
    (void)state;
    const problem plain = {.k = 4}; /* nothing fused in: what was given besides is not looked at */
    const operands o = {.a = room + 2, .b = room, .c = room + 4, .alpha = 1, .name_a = "b", .name_b = "a"};
    assert_int_equal(operands_check(&plain, &o, 2, 16, 4), JG_OK);
    assert_int_equal(operands_check(&plain, &o, 4, 16, 4), JG_ERR_MISALIGNED);
    assert_non_null(strstr(jg_last_error(), "operands.b"));
    assert_int_equal(operands_check(&plain, &o, 2, 16, 8), JG_ERR_MISALIGNED);
    assert_non_null(strstr(jg_last_error(), "operands.c"));
    operands missing = o;
    missing.b = NULL;
    assert_int_equal(operands_check(&plain, &missing, 2, 16, 4), JG_ERR_NULL);
    assert_non_null(strstr(jg_last_error(), "operands.a"));
    missing.alpha = 0; /* nothing is read */
    assert_int_equal(operands_check(&plain, &missing, 16, 16, 4), JG_OK);
    missing.c = NULL;
    assert_int_equal(operands_check(&plain, &missing, 2, 16, 4), JG_ERR_NULL);
}

/* --- what is fused in --- */

static problem canonical(jg_problem in)
{
    problem out;
    if (problem_canonicalise(&in, &out) != JG_OK) fail_msg("%s", jg_last_error());
    return out;
}

static void assert_checked(const problem *p, const jg_operands *in, jg_status status, const char *named)
{
    const operands o = operands_canonicalise(p, in);
    const jg_status got = operands_check(p, &o, 1, 1, 1);
    if (got != status || !strstr(got ? jg_last_error() : "", named))
        fail_msg("\"%s\": %s, %s", named, jg_status_name(got), got ? jg_last_error() : "");
}

/* A pointer of jg_operands, the flag that makes it read, and the bytes that it must be aligned to. */
typedef struct fused_pointer {
    const char *name;
    size_t at;
    uint32_t flag;
    unsigned aligned;
} fused_pointer;

#define MEMBER(name) #name, offsetof(jg_operands, name)

static const void **member(jg_operands *in, const fused_pointer *x)
{
    return (const void **)(void *)((char *)in + x->at);
}

/* All that a product may have. */
static jg_operands full(void)
{
    return (jg_operands){.a = room, .b = room, .c = room, .scale = (float *)(void *)room, .scale_m = (float *)(void *)room,
                         .scale_n = (float *)(void *)room, .bias_m = room, .bias_n = room, .residual = room,
                         .group_scales = room, .group_zeros = (int8_t *)room, .clamp_low = -1, .clamp_high = 1};
}

/* Under the caller's names, whichever way round A and B are; and only if the flag says that it is read. */
static void test_fused_pointers(void **state)
{
    (void)state;
    static const fused_pointer pointers[] = {
        {MEMBER(scale), JG_EPILOGUE_SCALE, 4},      {MEMBER(scale_m), JG_EPILOGUE_SCALE_M, 4},
        {MEMBER(scale_n), JG_EPILOGUE_SCALE_N, 4},  {MEMBER(bias_m), JG_EPILOGUE_BIAS_M, 2},
        {MEMBER(bias_n), JG_EPILOGUE_BIAS_N, 2},    {MEMBER(residual), JG_EPILOGUE_RESIDUAL, 4},
        {MEMBER(residual), JG_EPILOGUE_RESIDUAL_AFTER, 4},
    };
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++)
        for (int order = 0; order < 2; order++) {
            const fused_pointer *x = &pointers[i];
            char named[64];
            jg_problem in = {.m = 4, .n = 6, .k = 8, .order = (jg_order)order, .type_bias = JG_BF16, .epilogue = x->flag};
            problem p = canonical(in);
            jg_operands given = full();
            snprintf(named, sizeof named, "operands.%s is", x->name);
            assert_checked(&p, &given, JG_OK, "");
            *member(&given, x) = NULL;
            assert_checked(&p, &given, JG_ERR_NULL, named);
            *member(&given, x) = room + x->aligned / 2;
            assert_checked(&p, &given, JG_ERR_MISALIGNED, named);
            *member(&given, x) = room + x->aligned;
            assert_checked(&p, &given, JG_OK, "");
            in.epilogue = 0xffu & ~(x->flag | JG_EPILOGUE_RESIDUAL);
            if (x->flag == JG_EPILOGUE_RESIDUAL) in.epilogue &= ~(uint32_t)JG_EPILOGUE_RESIDUAL_AFTER;
            *member(&given, x) = x->flag == JG_EPILOGUE_RESIDUAL_AFTER ? room : NULL;
            p = canonical(in);
            assert_checked(&p, &given, JG_OK, "");
        }
}

static void test_alignment_follows_the_types(void **state)
{
    (void)state;
    static const struct {
        jg_type bias, c;
        unsigned bias_bytes, residual_bytes;
    } rows[] = {{JG_DEFAULT_TYPE, JG_F16, 4, 2}, {JG_F16, JG_E4M3, 2, 1}, {JG_BF16, JG_F32, 2, 4}, {JG_F32, JG_S8, 4, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const problem p = canonical((jg_problem){.m = 4, .n = 6, .k = 8, .type_a = JG_F16, .type_bias = rows[i].bias,
                                                 .type_c = rows[i].c, .epilogue = JG_EPILOGUE_BIAS_N | JG_EPILOGUE_RESIDUAL});
        jg_operands given = full();
        given.bias_n = room + rows[i].bias_bytes;
        given.residual = room + rows[i].residual_bytes;
        assert_checked(&p, &given, JG_OK, "");
        given.bias_n = room + rows[i].bias_bytes / 2;
        assert_checked(&p, &given, JG_ERR_MISALIGNED, rows[i].bias_bytes == 4 ? "is not a multiple of 4 bytes" : "of 2 bytes");
        given.bias_n = room;
        given.residual = room + 1;
        assert_checked(&p, &given, rows[i].residual_bytes > 1 ? JG_ERR_MISALIGNED : JG_OK, "");
    }
}

static void test_groups(void **state)
{
    (void)state;
    const float none = 0;
    for (int order = 0; order < 2; order++)
        for (uint32_t zeros = 0; zeros < 2; zeros++) {
            jg_problem in = {.m = 4, .n = 6, .k = 64, .order = (jg_order)order, .type_a = JG_F16, .type_b = JG_S4, .group_k = 32,
                             .zero_points = zeros};
            problem p = canonical(in);
            jg_operands given = full();
            given.group_scales = room + 2;
            given.group_zeros = (int8_t *)room + 1;
            assert_checked(&p, &given, JG_OK, "");
            given.group_scales = room + 1;
            assert_checked(&p, &given, JG_ERR_MISALIGNED, "operands.group_scales is");
            given.group_scales = NULL;
            assert_checked(&p, &given, JG_ERR_NULL, "operands.group_scales is null");
            given.alpha = &none; /* no weight is read */
            assert_checked(&p, &given, JG_OK, "");
            given = full();
            given.group_zeros = NULL;
            assert_checked(&p, &given, zeros ? JG_ERR_NULL : JG_OK, zeros ? "operands.group_zeros is null" : "");
            given.alpha = &none;
            assert_checked(&p, &given, JG_OK, "");
            in.k = 0;
            p = canonical(in);
            given = (jg_operands){.c = room};
            assert_checked(&p, &given, JG_OK, "");
            in.k = 64;
            in.group_k = in.zero_points = 0; /* the integers as they are */
            p = canonical(in);
            given = (jg_operands){.a = room, .b = room, .c = room};
            assert_checked(&p, &given, JG_OK, "");
        }
}

static void test_clamp(void **state)
{
    (void)state;
    problem p = canonical((jg_problem){.m = 4, .n = 6, .k = 8, .activation = JG_ACTIVATION_CLAMP});
    jg_operands given = full();
    given.clamp_low = 2;
    assert_checked(&p, &given, JG_ERR_VALUE, "operands.clamp_low = 2 must not be above clamp_high = 1");
    given.clamp_low = 1;
    assert_checked(&p, &given, JG_OK, "");
    given.clamp_low = -INFINITY;
    given.clamp_high = INFINITY;
    assert_checked(&p, &given, JG_OK, "");
    given.clamp_low = NAN;
    assert_checked(&p, &given, JG_ERR_VALUE, "clamp_low = nan");
    given.clamp_low = 0;
    given.clamp_high = NAN;
    assert_checked(&p, &given, JG_ERR_VALUE, "clamp_high = nan");
    p = canonical((jg_problem){.m = 4, .n = 6, .k = 8, .activation = JG_ACTIVATION_RELU6});
    assert_checked(&p, &given, JG_OK, "");
    given.c = NULL;
    assert_checked(&p, &given, JG_ERR_NULL, "operands.c is null");
}

/* Where A and B change places, so do what goes along m and n. */
static void test_fused_operands_in_canonical_order(void **state)
{
    (void)state;
    jg_operands in = full();
    in.scale_m = (float *)(void *)(room + 4);
    in.scale_n = (float *)(void *)(room + 8);
    in.bias_m = room + 12;
    in.bias_n = room + 16;
    in.residual = room + 20;
    in.group_scales = room + 24;
    in.group_zeros = (int8_t *)room + 28;
    in.out_scale = 3;
    in.out_zero = 4;
    for (int swapped = 0; swapped < 2; swapped++) {
        const problem p = {.k = 4, .swapped = (uint8_t)swapped};
        const operands o = operands_canonicalise(&p, &in);
        const fused_operands f = operands_fused(&o);
        assert_ptr_equal(f.scale, room);
        assert_ptr_equal(f.scale_m, room + (swapped ? 8 : 4));
        assert_ptr_equal(f.scale_n, room + (swapped ? 4 : 8));
        assert_ptr_equal(f.bias_m, room + (swapped ? 16 : 12));
        assert_ptr_equal(f.bias_n, room + (swapped ? 12 : 16));
        assert_ptr_equal(f.residual, room + 20);
        assert_ptr_equal(f.group_scales, room + 24);
        assert_ptr_equal(f.group_zeros, room + 28);
        assert_true(f.clamp_low == -1 && f.clamp_high == 1 && f.out_scale == 3 && f.out_zero == 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_and_order),
        cmocka_unit_test(test_empty_sum_has_no_alpha),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_checks_name_the_member),
        cmocka_unit_test(test_fused_pointers),
        cmocka_unit_test(test_alignment_follows_the_types),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_clamp),
        cmocka_unit_test(test_fused_operands_in_canonical_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
