/* src/half.c: every 16-bit pattern both ways, the edges by hand, and a sweep of float32 against the oracle's own
 * conversion, which works by another method (arithmetic on doubles). */
#include "half.h"
#include "reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Both types behind one face. */
static const struct {
    jg_type type;
    float (*widen)(uint16_t);
    uint16_t (*narrow)(float);
    uint16_t infinity, quiet;
} kinds[] = {
    {JG_F16, half_f16_to_f32, half_f32_to_f16, 0x7c00, 0x0200},
    {JG_BF16, half_bf16_to_f32, half_f32_to_bf16, 0x7f80, 0x0040},
};

static void widening_agrees_and_round_trips(void **state)
{
    (void)state;
    for (size_t t = 0; t < 2; t++) {
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            float wide = kinds[t].widen((uint16_t)bits);
            uint16_t back = kinds[t].narrow(wide);
            if ((bits & 0x7fff) > kinds[t].infinity) {
                assert_true(isnan(wide));
                assert_true(bits_of(wide) & 0x00400000); /* quiet */
                assert_int_equal(back, bits | kinds[t].quiet);
            } else {
                double expected = reference_decode(kinds[t].type, bits);
                assert_true((double)wide == expected && !signbit(wide) == !signbit(expected));
                assert_int_equal(back, bits);
            }
        }
    }
}

/* Between each two neighbours: the tie goes to the even one, and a float32 step off the tie to the nearer one. */
static void halfway_cases_go_to_even(void **state)
{
    (void)state;
    for (size_t t = 0; t < 2; t++) {
        for (uint32_t low = 0; low < kinds[t].infinity; low++) {
            double below = reference_decode(kinds[t].type, low);
            /* Past the largest finite value the next one would be at the same distance. */
            int last = low + 1 == kinds[t].infinity;
            double above = last ? 2 * below - reference_decode(kinds[t].type, low - 1)
                                : reference_decode(kinds[t].type, low + 1);
            float tie = (float)((below + above) / 2);
            if ((double)tie != (below + above) / 2) continue; /* bf16 denormals have no float32 between them */
            uint32_t even = low % 2 == 0 ? low : low + 1;
            assert_int_equal(kinds[t].narrow(tie), even);
            assert_int_equal(kinds[t].narrow(-tie), even | 0x8000);
            assert_int_equal(kinds[t].narrow(nextafterf(tie, 0)), low);
            assert_int_equal(kinds[t].narrow(nextafterf(tie, INFINITY)), low + 1);
        }
    }
}

static void edges_by_hand(void **state)
{
    (void)state;
    const struct {
        float value;
        uint16_t f16, bf16;
    } rows[] = {
        {0.0f, 0x0000, 0x0000},        {-0.0f, 0x8000, 0x8000},      {1.0f, 0x3c00, 0x3f80},
        {-2.0f, 0xc000, 0xc000},       {65504.0f, 0x7bff, 0x4780},   {65519.99f, 0x7bff, 0x4780},
        {65520.0f, 0x7c00, 0x4780},    {-65536.0f, 0xfc00, 0xc780},  {3.4e38f, 0x7c00, 0x7f80},
        {0x1p-14f, 0x0400, 0x3880},    {0x1p-24f, 0x0001, 0x3380},   {0x1p-25f, 0x0000, 0x3300},
        {0x1.8p-25f, 0x0001, 0x3340},  {0x1p-149f, 0x0000, 0x0000},  {0x1p-133f, 0x0000, 0x0001},
        {INFINITY, 0x7c00, 0x7f80},    {-INFINITY, 0xfc00, 0xff80},  {0x1.ff8p-15f, 0x03ff, 0x3880},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(half_f32_to_f16(rows[i].value), rows[i].f16);
        assert_int_equal(half_f32_to_bf16(rows[i].value), rows[i].bf16);
    }
}

static void nans_become_quiet_and_keep_their_sign(void **state)
{
    (void)state;
    const uint32_t nans[] = {0x7f800001, 0x7fc00000, 0x7fffffff, 0xff800001, 0xffa00000, 0x7f80ffff};
    for (size_t i = 0; i < sizeof nans / sizeof nans[0]; i++) {
        for (size_t t = 0; t < 2; t++) {
            uint16_t narrow = kinds[t].narrow(float_of(nans[i]));
            assert_true((narrow & 0x7fff) > kinds[t].infinity);
            assert_true(narrow & kinds[t].quiet);
            assert_int_equal(narrow >> 15, nans[i] >> 31);
        }
    }
}

/* A prime stride over all float32 patterns: about 4.4 million, with all exponents and both signs. */
static void sweep_agrees_with_the_oracle(void **state)
{
    (void)state;
    for (uint64_t pattern = 0; pattern < UINT64_C(1) << 32; pattern += 977) {
        float value = float_of((uint32_t)pattern);
        if (isnan(value)) continue;
        for (size_t t = 0; t < 2; t++)
            if (kinds[t].narrow(value) != reference_encode(kinds[t].type, value))
                fail_msg("%s of %a is 0x%04x", t ? "bf16" : "f16", (double)value, kinds[t].narrow(value));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widening_agrees_and_round_trips),
        cmocka_unit_test(halfway_cases_go_to_even),
        cmocka_unit_test(edges_by_hand),
        cmocka_unit_test(nans_become_quiet_and_keep_their_sign),
        cmocka_unit_test(sweep_agrees_with_the_oracle),
    };
    return cmocka_run_group_tests_name("half", tests, NULL, NULL);
}
