/* examples/float16.h: each f16 and bf16, against the library's own conversions, and how doubles round to them. */
#include "examples/float16.h"
#include "half.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void each_is_widened_and_comes_back(void **state)
{
    (void)state;
    static const struct { double (*widen)(uint16_t); uint16_t (*narrow)(double); float (*known)(uint16_t); } kinds[] = {
        {f16_value, f16_bits, half_f16_to_f32}, {bf16_value, bf16_bits, half_bf16_to_f32}};
    for (int k = 0; k < 2; k++)
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            const double value = kinds[k].widen((uint16_t)bits), known = (double)kinds[k].known((uint16_t)bits);
            assert_true(isnan(known) ? isnan(value) : value == known && !signbit(value) == !signbit(known));
            if (!isnan(value)) assert_int_equal(kinds[k].narrow(value), bits);
        }
}

/* All kinds of float32, which the library's own conversion rounds. */
static void floats_round_as_the_library_has_it(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0xffffff00u; bits += 65521) {
        float value;
        memcpy(&value, &bits, sizeof value);
        if (isnan(value)) continue;
        assert_int_equal(f16_bits((double)value), half_f32_to_f16(value));
        assert_int_equal(bf16_bits((double)value), half_f32_to_bf16(value));
    }
}

static void doubles_round_once(void **state)
{
    (void)state;
    static const struct { double value; uint16_t bits; } rows[] = {
        {0, 0}, {-0.0, 0x8000}, {1, 0x3c00}, {-2, 0xc000}, {65504, 0x7bff}, {0x1p-14, 0x0400}, {0x1p-24, 0x0001},
        {0x1p-25, 0x0000}, {0x1.8p-24, 0x0002}, {0x1.ffp-15, 0x03fe}, {1 + 0x1p-11, 0x3c00}, {1 + 0x1.8p-10, 0x3c02},
        {1 + 0x1.1p-11, 0x3c01}, {2047.5, 0x6800}, {1.0 / 3, 0x3555}, {65519.999, 0x7bff}, {65520, 0x7c00}, {-1e300, 0xfc00},
        {5e-324, 0}, {1 + 0x1p-11 + 0x1p-40, 0x3c01}}; /* the last would become a tie, to even below, by way of float32 */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (f16_bits(rows[i].value) != rows[i].bits)
            fail_msg("%a becomes %#x, not %#x", rows[i].value, f16_bits(rows[i].value), rows[i].bits);
    assert_int_equal(bf16_bits(1 + 0x1p-8 + 0x1p-40), 0x3f81);
    assert_int_equal(bf16_bits(1e300), 0x7f80);
    assert_int_equal(f16_bits((double)NAN) & 0x7e00, 0x7e00);
    assert_int_equal(bf16_bits((double)NAN) & 0x7fc0, 0x7fc0);
}

static void values_grow_with_their_bits(void **state)
{
    (void)state;
    double before = -1;
    for (unsigned bits = 0; bits < 0x7c00; bits++) {
        const double value = f16_value((uint16_t)bits);
        assert_true(value > before);
        before = value;
        assert_int_equal(f16_bits(-value), bits | 0x8000);
        assert_true(f16_value((uint16_t)(bits | 0x8000)) == -value);
    }
    assert_true(isinf(f16_value(0x7c00)) && isnan(f16_value(0x7e00)));
    assert_true(f16_half_unit(1) == 0x1p-11 && f16_half_unit(1.999) == 0x1p-11 && f16_half_unit(0x1p-20) == 0x1p-25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_widened_and_comes_back),
        cmocka_unit_test(floats_round_as_the_library_has_it),
        cmocka_unit_test(doubles_round_once),
        cmocka_unit_test(values_grow_with_their_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
