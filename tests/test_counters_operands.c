/* The operands of jitgemm-swgpu, on the cpu device: of every type, aligned as promised, of numbers that are none but numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "half.h"
#include "problem.h"
#include "status_asserts.h"
#include "tools/counters_operands.h"

static jg_context *context;

static int open_context(void **state)
{
    (void)state;
    const jg_options options = {.device = JG_DEVICE_CPU, .compile = JG_COMPILE_WAIT, .resident = JG_RESIDENT_NONE,
                                .prewarm = JG_PREWARM_NO_MET, .cache_path = "", .factory_path = ""};
    return jg_open(&options, &context) == JG_OK ? 0 : -1;
}

static int close_context(void **state)
{
    (void)state;
    return jg_close(context) == JG_OK ? 0 : -1;
}

static void assert_aligned(const void *pointer, size_t bytes)
{
    assert_non_null(pointer);
    assert_int_equal((uintptr_t)pointer % (bytes < 16 ? 2 * bytes : 16), bytes % 16);
}

/* A float by its bits; -2 for an infinity or NaN of 8 bits. */
static float decode(const void *data, int64_t i, jg_type type)
{
    const unsigned byte = ((const uint8_t *)data)[i], digits = type == JG_E4M3 ? 3 : 2;
    const int exponent = (int)((byte & 0x7f) >> digits), bias = type == JG_E4M3 ? 7 : 15;
    if (type == JG_F32) return ((const float *)data)[i];
    if (type == JG_F16) return half_f16_to_f32(((const uint16_t *)data)[i]);
    if (type == JG_BF16) return half_bf16_to_f32(((const uint16_t *)data)[i]);
    if ((byte & 0x7f) == 0) return 0;
    const float part = ldexpf((float)((byte & ((1u << digits) - 1)) + (1u << digits)), exponent - bias - (int)digits);
    return exponent == 0 || exponent > bias ? -2 : byte & 0x80 ? -part : part;
}

/* Floats fill [-1, 1), and no two matrices have the same numbers. */
static void floats(void **state)
{
    (void)state;
    static const jg_type types[] = {JG_F32, JG_F16, JG_BF16, JG_E4M3, JG_E5M2};
    for (size_t t = 0; t < COUNT(types); t++) {
        const jg_problem p = {.m = 40, .n = 30, .k = 50, .type_a = types[t]};
        counters_operands o = {0};
        float least = 1, most = -1;
        int same = 0;
        assert_ok(counters_operands_make(context, &p, &o));
        for (int64_t i = 0; i < 1500; i++) {
            const float a = decode(o.data.a, i, types[t]), b = decode(o.data.b, i, types[t]);
            assert_true(a >= -1 && a < 1 && b >= -1 && b < 1);
            least = a < least ? a : least;
            most = a > most ? a : most;
            same += a == b;
        }
        assert_true(least < -0.7f && most > 0.7f && same < 700);
        assert_ok(counters_operands_free(context, &o));
        assert_null(o.data.a);
    }
}

static void alignments(void **state)
{
    (void)state;
    static const struct { jg_type a, b, c; uint32_t align; size_t of[3]; } rows[] = {
        {JG_F32, JG_F32, JG_F32, 0, {16, 16, 16}}, {JG_F16, JG_F16, JG_F32, 2, {2, 2, 4}}, {JG_U8, JG_S8, JG_S32, 1, {1, 1, 4}},
        {JG_F16, JG_S4, JG_DEFAULT_TYPE, 1, {2, 1, 2}}, {JG_S4, JG_S4, JG_DEFAULT_TYPE, 2, {2, 2, 4}},
        {JG_E4M3, JG_E5M2, JG_DEFAULT_TYPE, 8, {8, 8, 8}}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const jg_problem p = {.m = 4, .n = 6, .k = 8, .type_a = rows[i].a, .type_b = rows[i].b, .type_c = rows[i].c,
                              .align_bytes = rows[i].align};
        counters_operands o = {0};
        assert_ok(counters_operands_make(context, &p, &o));
        assert_aligned(o.data.a, rows[i].of[0]);
        assert_aligned(o.data.b, rows[i].of[1]);
        assert_aligned(o.data.c, rows[i].of[2]);
        assert_ok(counters_operands_free(context, &o));
    }
}

/* Each pointer that the problem's flags name, and no other; of their addresses nothing but whole elements is promised. */
static void what_is_fused_in(void **state)
{
    (void)state;
    const jg_problem p = {.m = 4, .n = 6, .k = 70, .type_a = JG_F16, .type_b = JG_S8, .group_k = 32, .zero_points = 1,
                          .epilogue = 31 | JG_EPILOGUE_RESIDUAL_AFTER, .type_bias = JG_BF16, .activation = JG_ACTIVATION_CLAMP};
    const jg_problem plain = {.m = 4, .n = 6, .k = 70, .type_a = JG_F16, .type_b = JG_S8};
    counters_operands o = {0};
    assert_ok(counters_operands_make(context, &p, &o));
    const jg_operands *d = &o.data;
    assert_aligned(d->scale, 4);
    assert_aligned(d->scale_m, 4);
    assert_aligned(d->scale_n, 4);
    assert_aligned(d->bias_m, 2);
    assert_aligned(d->bias_n, 2);
    assert_aligned(d->residual, 2);
    assert_aligned(d->group_scales, 2);
    assert_aligned(d->group_zeros, 1);
    assert_true(d->clamp_low <= d->clamp_high);
    assert_ok(counters_operands_free(context, &o));
    assert_ok(counters_operands_make(context, &plain, &o));
    assert_true(!d->scale && !d->scale_m && !d->scale_n && !d->bias_m && !d->bias_n && !d->residual && !d->group_scales &&
                !d->group_zeros);
    assert_ok(counters_operands_free(context, &o));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats),
        cmocka_unit_test(alignments),
        cmocka_unit_test(what_is_fused_in),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
