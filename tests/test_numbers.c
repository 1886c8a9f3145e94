/* templates/numbers.cuh, as the cpu device compiles it: every pattern of the narrow types, roundings at and beside every tie, and
 * sweeps over float32 against double precision. JG_TEST_FLOATS=1 takes every float (minutes), else one in so many. Also the
 * arithmetic that flushes denormals. */
#include "cpu_numbers.h"
#include "half.h"
#include "types_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static float widen_f16(u32 bits) { return half_f16_to_f32((uint16_t)bits); }
static float widen_bf16(u32 bits) { return half_bf16_to_f32((uint16_t)bits); }
static float widen_e4m3(u32 bits) { return jg_from_e4m3(bits); }
static float widen_e5m2(u32 bits) { return jg_from_e5m2(bits); }
static u32 narrow_f16(float x) { return half_f32_to_f16(x); }
static u32 narrow_bf16(float x) { return half_f32_to_bf16(x); }
static u32 narrow_e4m3(float x) { return jg_to_e4m3(x); }
static u32 narrow_e5m2(float x) { return jg_to_e5m2(x); }
static u32 narrow_s32(float x) { return (u32)jg_to_s32(x); }
static u32 narrow_s8(float x) { return (u32)jg_to_s8(x) & 0xff; }
static u32 narrow_u8(float x) { return (u32)jg_to_u8(x); }

static const struct {
    jg_type type;
    float (*widen)(u32);
    u32 (*narrow)(float);
} types[] = {
    {JG_F16, widen_f16, narrow_f16},    {JG_BF16, widen_bf16, narrow_bf16}, {JG_E4M3, widen_e4m3, narrow_e4m3},
    {JG_E5M2, widen_e5m2, narrow_e5m2}, {JG_S8, NULL, narrow_s8},           {JG_U8, NULL, narrow_u8},
    {JG_S32, NULL, narrow_s32},
};

static uint64_t floats_step(void)
{
    const char *text = getenv("JG_TEST_FLOATS");
    const uint64_t step = text ? strtoull(text, NULL, 10) : 0;
    return step ? step : 977; /* a prime: all exponents, both signs, low bits of every kind */
}

static void every_pattern_widens_and_comes_back(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT(types); t++) {
        const oracle_type *type = &oracle_types[types[t].type];
        for (u32 bits = 0; types[t].widen && bits < 1u << type->bits; bits++) {
            const float wide = types[t].widen(bits);
            const double expected = oracle_value(types[t].type, bits);
            if (isnan(expected)) {
                assert_true(isnan(wide) && bits_of(wide) & 0x00400000u);
                assert_int_equal(signbit(wide) != 0, bits >> (type->bits - 1));
                assert_true(isnan(oracle_value(types[t].type, types[t].narrow(wide))));
            } else {
                if ((double)wide != expected || !signbit(wide) != !signbit(expected))
                    fail_msg("%s 0x%x is %g, not %g", type->name, bits, (double)wide, expected);
                /* The two infinities of e5m2 become its largest numbers. */
                assert_int_equal(types[t].narrow(wide), isinf(expected) && type->saturates ? bits - 1 : bits);
            }
        }
    }
}

static void check_narrow(size_t t, float x)
{
    const u32 got = types[t].narrow(x), expected = oracle_round(types[t].type, x);
    const u32 half = 1u << (oracle_types[types[t].type].bits - 1);
    if (got == expected && !isnan(x)) return;
    /* Of a NaN of 16 bits the payload is free; that of 8 has no sign. */
    const oracle_type *type = &oracle_types[types[t].type];
    if (isnan(x) && type->bits != 16 && got == (type->exponent ? 0x7f : 0)) return;
    if (isnan(x) && type->bits == 16 && (got & half) == (expected & half) && isnan(oracle_value(types[t].type, got))) return;
    fail_msg("%s of %a is 0x%x, not 0x%x", type->name, (double)x, got, expected);
}

/* At each tie between two neighbours and a step to either side, and the same of the integers. */
static void ties_go_to_even(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT(types); t++) {
        const oracle_type *type = &oracle_types[types[t].type];
        const u32 last = type->exponent ? type->largest : 1u << 16;
        for (u32 low = 0; low <= last; low++) {
            const double below = type->exponent ? oracle_value(types[t].type, low) : (double)low;
            const double above = !type->exponent       ? below + 1
                                 : low < type->largest ? oracle_value(types[t].type, low + 1)
                                                       : 2 * below - oracle_value(types[t].type, low - 1);
            const float tie = (float)((below + above) / 2);
            const float values[] = {tie, nextafterf(tie, 0), nextafterf(tie, INFINITY)};
            for (int i = 0; i < 6; i++) check_narrow(t, i % 2 ? -values[i / 2] : values[i / 2]);
        }
    }
}

static void floats_are_rounded_as_the_oracle_does(void **state)
{
    (void)state;
    const float edges[] = {0, 447.9f, 448, 463.99f, 464, 480, 57344, 61439, 61440, 65504, 65519, 65520, 127.5f, 128, 128.5f, 129,
                           254.5f, 255.5f, 256, 4194303.5f, 4194304.5f, 8388607.5f, 8388608, 16777217, 2147483520.0f,
                           2147483648.0f, 4294967296.0f, 3.4e38f, INFINITY, NAN, 0x1p-149f, 0x1p-126f, 0.5f, 1.5f, 2.5f};
    for (size_t t = 0; t < COUNT(types); t++) {
        for (size_t i = 0; i < COUNT(edges); i++) check_narrow(t, edges[i]), check_narrow(t, -edges[i]);
        for (u32 upper = 0; upper < 0x10000; upper++) check_narrow(t, float_of(upper << 16));
        for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += floats_step() * 3) check_narrow(t, float_of((u32)bits));
    }
}

/* ---- functions ---- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static float exp_f(float x) { return jg_exp(x); }
static float tanh_f(float x) { return jg_tanh(x); }
static float erf_f(float x) { return jg_erf(x); }
static float sigmoid_f(float x) { return jg_sigmoid(x); }

/* A unit in the last place of a float that is as large. */
static double place_of(double x)
{
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, x == 0 || exponent < -125 ? -149 : exponent - 24);
}

/* error: what the comments of numbers.cuh say. step_back: how far a larger argument's result may be below, in last places; what
 * is measured by itself is 1 for exp, 0 for tanh and erf, and 2 for sigmoid. */
static const struct {
    const char *name;
    float (*function)(float);
    double (*exact)(double);
    double error, step_back;
    float at_infinity, at_minus_infinity, at_zero;
} functions[] = {
    {"exp", exp_f, exp, 1.01, 1, INFINITY, 0, 1},
    {"tanh", tanh_f, tanh, 1.56, 0, 1, -1, 0},
    {"erf", erf_f, erf, 1.02, 0, 1, -1, 0},
    {"sigmoid", sigmoid_f, sigmoid, 2.41, 2, 1, 0, 0.5f},
};

static double error_of(size_t f, float x)
{
    const double expected = functions[f].exact(x);
    const float got = functions[f].function(x);
    /* What rounds to infinity is above the largest float by half a place. */
    if (isinf(got)) return fabs(expected) >= 0x1.ffffffp127 ? 0 : INFINITY;
    const double error = fabs(got - expected) / place_of(expected);
    return isnan(error) ? (double)INFINITY : error;
}

static void functions_are_as_accurate_as_they_say(void **state)
{
    (void)state;
    for (size_t f = 0; f < COUNT(functions); f++) {
        double worst = 0, back = 0;
        float at = 0;
        for (int sign = 0; sign < 2; sign++) {
            float before = sign ? functions[f].at_zero : functions[f].function(0);
            for (uint64_t bits = 0; bits <= 0x7f800000u; bits += floats_step()) {
                const float x = float_of((u32)bits | (u32)sign << 31), y = functions[f].function(x);
                const double error = error_of(f, x), drop = (sign ? y - before : before - y) / place_of(y);
                if (error > worst) worst = error, at = x;
                if (drop > back) back = drop;
                before = y;
            }
        }
        print_message("# %s: error %.3f of a last place, at %.9g; steps back by %g\n", functions[f].name, worst, (double)at,
                      back);
        assert_true(worst <= functions[f].error);
        assert_true(back <= functions[f].step_back);
    }
}

/* Every float for a while to either side of where a formula, or what it rounds to, changes. */
static void functions_at_their_seams(void **state)
{
    (void)state;
    const float seams[] = {0.55f, 0.875f, 4, 9.01f, 17.3f, 88.72f, 89, 87.33f, 103.97f, 104, 0.3465736f, 1.03972f, 0x1p-126f};
    for (size_t f = 0; f < COUNT(functions); f++)
        for (size_t s = 0; s < COUNT(seams); s++)
            for (u32 i = 0; i < 20000; i++)
                for (int sign = 0; sign < 2; sign++) {
                    const float x = float_of((bits_of(seams[s]) - 10000 + i) ^ (u32)sign << 31);
                    if (!(error_of(f, x) <= functions[f].error))
                        fail_msg("%s(%.9g) is off by %g", functions[f].name, (double)x, error_of(f, x));
                }
}

static void functions_at_infinity_zero_and_nan(void **state)
{
    (void)state;
    for (size_t f = 0; f < COUNT(functions); f++) {
        assert_true(functions[f].function(INFINITY) == functions[f].at_infinity);
        assert_true(functions[f].function(-INFINITY) == functions[f].at_minus_infinity);
        assert_true(functions[f].function(0) == functions[f].at_zero && functions[f].function(-0.0f) == functions[f].at_zero);
        assert_true(isnan(functions[f].function(NAN)) && isnan(functions[f].function(-NAN)));
        assert_true(functions[f].function(3e38f) == functions[f].at_infinity);
        assert_true(functions[f].function(-3e38f) == functions[f].at_minus_infinity);
    }
    assert_true(signbit(jg_tanh(-0.0f)) && signbit(jg_erf(-0.0f)) && !signbit(jg_tanh(0.0f)) && !signbit(jg_erf(0.0f)));
    assert_true(jg_tanh(-0.7f) == -jg_tanh(0.7f) && jg_erf(-1.7f) == -jg_erf(1.7f));
    assert_true(jg_tanh(0x1p-140f) == 0x1p-140f);
}

/* ---- activations ---- */

static float activation(int kind, float x) { return jg_activate((u32)kind, x, -1.5f, 2.5f); }

/* In double, and what the result may be off by: the error of the factor, and two or three roundings. The argument of
 * gelu_tanh's sigmoid, 2u, is off by a few roundings itself, which count as the exponential's derivative says. */
static double exact_activation(int kind, double x, double *allowed)
{
    const double ulp = 0x1p-24, u = sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
    const double factor = sigmoid(kind == JG_ACTIVATION_GELU_TANH ? 2 * u : x);
    double y = x;
    *allowed = 0;
    switch (kind) {
    case JG_ACTIVATION_RELU: y = fmax(x, 0); break;
    case JG_ACTIVATION_RELU6: y = fmin(fmax(x, 0), 6); break;
    case JG_ACTIVATION_CLAMP: y = fmin(fmax(x, -1.5), 2.5); break;
    case JG_ACTIVATION_GELU_TANH: y = x * factor, *allowed = fabs(y) * ulp * (7 + 8 * fmin(fabs(u), 100)); break;
    case JG_ACTIVATION_GELU_ERF:
        y = x / 2 * erfc(-x / sqrt(2));
        *allowed = (fmin(fabs(x), 128) * 2 + fabs(y) * 4) * ulp;
        break;
    case JG_ACTIVATION_SILU: y = x * factor, *allowed = fabs(y) * ulp * 7 + (x < -87 ? fabs(x) * 0x1p-147 : 0); break;
    case JG_ACTIVATION_SIGMOID: y = factor, *allowed = place_of(y) * 2.41; break;
    default: break;
    }
    *allowed += kind >= JG_ACTIVATION_GELU_TANH ? 0x1p-140 : 0;
    return y;
}

static void activations_are_the_formulas(void **state)
{
    (void)state;
    for (int kind = JG_ACTIVATION_NONE; kind <= JG_ACTIVATION_SIGMOID; kind++) {
        for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += floats_step() * 7) {
            const float x = float_of((u32)bits);
            double allowed;
            if (!isfinite(x)) continue;
            const double expected = exact_activation(kind, x, &allowed), error = fabs(activation(kind, x) - expected);
            if (!(error <= allowed))
                fail_msg("activation %d of %.9g is %.9g, not %.9g", kind, (double)x, (double)activation(kind, x), expected);
        }
    }
}

static void activations_at_infinity_zero_and_nan(void **state)
{
    (void)state;
    const float high[] = {INFINITY, INFINITY, 6, 2.5f, INFINITY, INFINITY, INFINITY, 1};
    const float low[] = {-INFINITY, 0, 0, -1.5f, 0, 0, 0, 0};
    for (int kind = JG_ACTIVATION_NONE; kind <= JG_ACTIVATION_SIGMOID; kind++) {
        assert_true(activation(kind, INFINITY) == high[kind] && activation(kind, -INFINITY) == low[kind]);
        assert_true(isnan(activation(kind, NAN)));
        assert_true(activation(kind, 0) == (kind == JG_ACTIVATION_SIGMOID ? 0.5f : 0));
        assert_true(activation(kind, -3e38f) == (kind ? low[kind] : -3e38f));
    }
    assert_true(jg_activate(JG_ACTIVATION_CLAMP, 7, -INFINITY, INFINITY) == 7);
}

/* ---- flushing ---- */

/* Exact: both the product and the sums that are asked about have far fewer than the 113 bits of a __float128. */
static float flushed(__float128 exact, float ieee)
{
    const __float128 size = exact < 0 ? -exact : exact;
    return size < (__float128)0x1p-126 - (__float128)0x1p-151 ? copysignf(0, ieee) : ieee;
}

static float zero_of_denormal(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static void results_below_the_smallest_normal_are_flushed(void **state)
{
    (void)state;
    uint32_t random = 1, tiny = 0;
    for (int i = 0; i < 2000000; i++) {
        u32 words[3];
        for (int w = 0; w < 3; w++) words[w] = random = random * 1664525u + 1013904223u;
        /* a b is near 2^-126, c of about that size; one in four is denormal or has few bits. */
        const float a = float_of((words[0] >> 9) | (127u + (u32)i % 3 - 1) << 23 | (words[0] & 1) << 31);
        const float b = float_of((i % 4 ? words[1] >> 9 : 0x7fffff) | (u32)(i / 7 % 4) << 23);
        const float c = i % 5 ? float_of((words[2] >> 9) | (u32)(i / 3 % 3) << 23 | (words[2] & 1) << 31) : 0;
        const float fb = zero_of_denormal(b), fc = zero_of_denormal(c);
        const float fma_got = cpu_flush_fma(a, b, c), fma_want = flushed((__float128)a * fb + fc, fmaf(a, fb, fc));
        const float mul_got = cpu_flush_mul(a, b), mul_want = flushed((__float128)a * fb, a * fb);
        const float add_got = cpu_flush_add(b, c), add_want = flushed((__float128)fb + fc, fb + fc);
        const float div_got = cpu_flush_div(b, a), div_want = flushed((__float128)fb / a, fb / a);
        tiny += (fabsf(fma_got) == 0) + (fabsf(mul_got) == 0);
        if (bits_of(fma_got) != bits_of(fma_want) || bits_of(mul_got) != bits_of(mul_want) ||
            bits_of(add_got) != bits_of(add_want) || bits_of(div_got) != bits_of(div_want))
            fail_msg("%a, %a, %a: fma %a %a mul %a %a add %a %a div %a %a", (double)a, (double)b, (double)c, (double)fma_got,
                     (double)fma_want, (double)mul_got, (double)mul_want, (double)add_got, (double)add_want, (double)div_got,
                     (double)div_want);
    }
    assert_true(tiny > 10000);
}

/* As the head of numbers.cuh says. Sigmoids are denormal below -87.3, which gelu_tanh's argument is from -7 or so on. */
static void flushing_changes_only_denormals(void **state)
{
    (void)state;
    for (int kind = JG_ACTIVATION_NONE; kind <= JG_ACTIVATION_SIGMOID; kind++) {
        for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += floats_step() * 97) {
            const float x = float_of((u32)bits), y = activation(kind, x);
            const float z = cpu_activate_flushed((u32)kind, x, -1.5f, 2.5f);
            if (fabsf(y) > 0x1p-115f && fabsf(x) >= 0x1p-126f) assert_int_equal(bits_of(y), bits_of(z));
            if (kind > JG_ACTIVATION_CLAMP) assert_true(z == 0 || !(fabsf(z) < 0x1p-126f));
        }
    }
    assert_true(jg_activate(JG_ACTIVATION_SILU, -88, 0, 0) != 0 && cpu_activate_flushed(JG_ACTIVATION_SILU, -88, 0, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_widens_and_comes_back),
        cmocka_unit_test(ties_go_to_even),
        cmocka_unit_test(floats_are_rounded_as_the_oracle_does),
        cmocka_unit_test(functions_are_as_accurate_as_they_say),
        cmocka_unit_test(functions_at_their_seams),
        cmocka_unit_test(functions_at_infinity_zero_and_nan),
        cmocka_unit_test(activations_are_the_formulas),
        cmocka_unit_test(activations_at_infinity_zero_and_nan),
        cmocka_unit_test(results_below_the_smallest_normal_are_flushed),
        cmocka_unit_test(flushing_changes_only_denormals),
    };
    return cmocka_run_group_tests_name("numbers", tests, NULL, NULL);
}
