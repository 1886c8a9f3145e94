/* The oracle's element types, where their elements lie, and what its operands are by default. */
#include "reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void encodings_by_hand(void **state)
{
    (void)state;
    const struct {
        jg_type type;
        double value;
        uint32_t bits;
    } rows[] = {
        {JG_E4M3, 1, 0x38},          {JG_E4M3, -1, 0xb8},         {JG_E4M3, 448, 0x7e},        {JG_E4M3, 464, 0x7e},
        {JG_E4M3, 1e9, 0x7e},        {JG_E4M3, -INFINITY, 0xfe},  {JG_E4M3, 0x1p-9, 0x01},     {JG_E4M3, 0x1p-6, 0x08},
        {JG_E4M3, 0x1p-10, 0x00},    {JG_E4M3, 17, 0x58},         {JG_E4M3, 19, 0x5a},         {JG_E4M3, 255, 0x78},
        {JG_E5M2, 1, 0x3c},          {JG_E5M2, 57344, 0x7b},      {JG_E5M2, 61440, 0x7b},      {JG_E5M2, INFINITY, 0x7b},
        {JG_E5M2, 0x1p-16, 0x01},    {JG_E5M2, 0x1p-17, 0x00},    {JG_E5M2, -0x1.8p-16, 0x82}, {JG_E5M2, 9, 0x48},
        {JG_S8, -1, 0xff},           {JG_S8, 127.5, 0x7f},        {JG_S8, -200, 0x80},         {JG_S8, 2.5, 2},
        {JG_S8, 3.5, 4},             {JG_S8, NAN, 0},             {JG_U8, -3, 0},              {JG_U8, 255.4, 255},
        {JG_U8, INFINITY, 255},      {JG_U8, 0.5, 0},             {JG_S4, -8, 0x8},            {JG_S4, 9, 0x7},
        {JG_S4, -1, 0xf},            {JG_S32, -1, UINT32_MAX},    {JG_S32, 0x1p31, 0x7fffffff}, {JG_S32, -1e12, 0x80000000},
        {JG_S32, 2147483646.5, 0x7ffffffe},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) assert_int_equal(reference_encode(rows[i].type, rows[i].value),
                                                                               rows[i].bits);
    assert_true(reference_decode(JG_E4M3, 0x78) == 256 && isnan(reference_decode(JG_E4M3, 0x7f)) &&
                isnan(reference_decode(JG_E4M3, 0xff)));
    assert_true(reference_decode(JG_E5M2, 0xfc) == -INFINITY && isnan(reference_decode(JG_E5M2, 0x7d)));
    assert_true(isnan(reference_decode(JG_E4M3, reference_encode(JG_E4M3, NAN))));
    assert_true(isnan(reference_decode(JG_E5M2, reference_encode(JG_E5M2, NAN))));
    assert_true(reference_decode(JG_U8, 0xff) == 255 && reference_decode(JG_S4, 0xf8) == -8);
}

/* Every pattern of a narrow type comes back, but NaN and an infinity of e5m2. */
static void every_pattern_comes_back(void **state)
{
    (void)state;
    static const jg_type types[] = {JG_S8, JG_U8, JG_S4, JG_E4M3, JG_E5M2};
    for (size_t t = 0; t < 5; t++)
        for (uint32_t bits = 0; bits < (types[t] == JG_S4 ? 16u : 256u); bits++) {
            const double value = reference_decode(types[t], bits);
            if (isfinite(value)) assert_int_equal(reference_encode(types[t], value), bits);
        }
}

/* Neighbours round to the nearer one, the middle to the one with the even pattern. */
static void middles_round_to_even(void **state)
{
    (void)state;
    static const struct {
        jg_type type;
        uint32_t last;
    } kinds[] = {{JG_E4M3, 0x7e}, {JG_E5M2, 0x7b}};
    for (size_t t = 0; t < 2; t++)
        for (uint32_t bits = 0; bits < kinds[t].last; bits++) {
            const double low = reference_decode(kinds[t].type, bits), high = reference_decode(kinds[t].type, bits + 1), middle =
                (low + high) / 2;
            assert_int_equal(reference_encode(kinds[t].type, middle), bits + bits % 2);
            assert_int_equal(reference_encode(kinds[t].type, nextafter(middle, low)), bits);
            assert_int_equal(reference_encode(kinds[t].type, nextafter(middle, high)), bits + 1);
        }
}

static void s4_is_two_in_a_byte(void **state)
{
    (void)state;
    const jg_problem p = {.m = 2, .n = 1, .k = 3, .type_a = JG_S4};
    reference ref;
    reference_make(&ref, &p, REFERENCE_ONES, 1, 1);
    assert_int_equal((uintptr_t)reference_at(&ref.a) % 256, 1);
    assert_int_equal(ref.a.row_step, 4); /* rounded up to even */
    for (int j = 0; j < 3; j++) reference_set(&ref.a, 0, 1, j, -2 - j);
    const unsigned char *bytes = reference_at(&ref.a);
    assert_int_equal(bytes[0], 0x11);
    assert_int_equal(bytes[1], 0xf1); /* what is no element stays 0xf */
    assert_int_equal(bytes[2], 0xde); /* -3, -2 */
    assert_int_equal(bytes[3], 0xfc);
    assert_int_equal(bytes[4], 0xff);
    reference_set(&ref.a, 0, 1, 0, 7);
    assert_int_equal(bytes[2], 0xd7);
    assert_true(reference_get(&ref.a, 0, 1, 1) == -3 && reference_get(&ref.a, 0, 1, 2) == -4);
    assert_true(ref.c.type == JG_S32 && ref.b.col_step == 1 && ref.b.row_step == 2); /* 3 x 1: rows of one */
    reference_free(&ref);
}

static void s4_strides_begin_at_bytes(void **state)
{
    (void)state;
    jg_problem p = {.m = 3, .n = 5, .k = 7, .batch = 2, .type_a = JG_F16, .type_b = JG_S4, .op_b = JG_T};
    reference_pack(&p);
    assert_true(p.stride_a == 21 && p.stride_b == 40 && p.stride_c == 15 && p.stride_residual == 0);
    p.op_b = JG_N;
    p.epilogue = JG_EPILOGUE_RESIDUAL;
    p.ld_residual = 6;
    reference_pack(&p);
    assert_true(p.stride_b == 42 && p.stride_residual == 18);
}

static void defaults_of_c(void **state)
{
    (void)state;
    const struct {
        jg_type a, b, c;
    } rows[] = {
        {JG_DEFAULT_TYPE, JG_DEFAULT_TYPE, JG_F32}, {JG_BF16, JG_DEFAULT_TYPE, JG_BF16}, {JG_S8, JG_DEFAULT_TYPE, JG_S32},
            {JG_U8, JG_S8, JG_S32},
        {JG_S4, JG_S4, JG_S32}, {JG_E4M3, JG_E5M2, JG_F32}, {JG_E5M2, JG_DEFAULT_TYPE, JG_F32}, {JG_F16, JG_S8, JG_F16},
        {JG_S4, JG_BF16, JG_BF16}, {JG_S8, JG_F16, JG_F16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const jg_problem p = {.m = 1, .n = 1, .k = 2, .type_a = rows[i].a, .type_b = rows[i].b};
        reference ref;
        reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
        assert_int_equal(ref.c.type, rows[i].c);
        reference_free(&ref);
    }
}

/* A misalignment is rounded up to whole elements of each. */
static void misalignment_by_element(void **state)
{
    (void)state;
    const jg_problem p = {.m = 3, .n = 3, .k = 3, .type_a = JG_S8, .epilogue = JG_EPILOGUE_BIAS_N, .type_bias = JG_F16};
    reference ref;
    reference_make(&ref, &p, REFERENCE_ONES, 1, 1);
    assert_int_equal((uintptr_t)reference_at(&ref.a) % 256, 1);
    assert_int_equal((uintptr_t)reference_at(&ref.c) % 256, 4);
    assert_int_equal((uintptr_t)reference_at(&ref.bias_n) % 256, 2);
    assert_null(reference_at(&ref.bias_m));
    reference_free(&ref);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodings_by_hand),       cmocka_unit_test(every_pattern_comes_back),
            cmocka_unit_test(middles_round_to_even),
        cmocka_unit_test(s4_is_two_in_a_byte),     cmocka_unit_test(s4_strides_begin_at_bytes), cmocka_unit_test(defaults_of_c),
        cmocka_unit_test(misalignment_by_element),
    };
    return cmocka_run_group_tests_name("reference types", tests, NULL, NULL);
}
