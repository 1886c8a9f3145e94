/* src/swgpu/ops_convert.c. Oracles: tests/reference.c for f16 and bf16, the processor with its rounding mode set for f32
 * and f64, long double and 128-bit integers for the rest. Which forms exist was asked of ptxas 13.0, not of the code. */
#include "swgpu_fixture.h"

#include "../src/swgpu/formats.h"
#include "reference.h"

#include <fenv.h>
#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static uint32_t bits_of(float value) { uint32_t b; memcpy(&b, &value, sizeof b); return b; }
static float float_of(uint32_t bits) { float f; memcpy(&f, &bits, sizeof f); return f; }
static uint64_t bits64_of(double value) { uint64_t b; memcpy(&b, &value, sizeof b); return b; }
static double double_of(uint64_t bits) { double f; memcpy(&f, &bits, sizeof f); return f; }

static const struct {
    const char *name;
    unsigned bits;
    char reg;
    int is_signed, is_float;
} types[] = {
    {"u8", 8, 'h', 0, 0},  {"u16", 16, 'h', 0, 0}, {"u32", 32, 'r', 0, 0}, {"u64", 64, 'd', 0, 0}, {"s8", 8, 'h', 1, 0},
    {"s16", 16, 'h', 1, 0}, {"s32", 32, 'r', 1, 0}, {"s64", 64, 'd', 1, 0}, {"f16", 16, 'h', 1, 1}, {"bf16", 16, 'h', 1, 1},
    {"f32", 32, 'r', 1, 1}, {"f64", 64, 'd', 1, 1}, {"tf32", 32, 'r', 1, 1},
};
enum { U8, U16, U32, U64, S8, S16, S32, S64, F16, BF16, F32, F64, TF32 };
#define INTS 8

/* ---- which forms exist */

#define INT_R "rni rzi rmi rpi"
#define INT_SAT "rni rni.sat rzi rzi.sat rmi rmi.sat rpi rpi.sat"
#define INT_FTZ INT_SAT " rni.ftz rni.ftz.sat rzi.ftz rzi.ftz.sat rmi.ftz rmi.ftz.sat rpi.ftz rpi.ftz.sat"
#define FLOAT_R "rn rz rm rp"
#define FLOAT_SAT "rn rn.sat rz rz.sat rm rm.sat rp rp.sat"
#define FLOAT_FTZ FLOAT_SAT " rn.ftz rn.ftz.sat rz.ftz rz.ftz.sat rm.ftz rm.ftz.sat rp.ftz rp.ftz.sat"
#define NARROW " rn.relu rn.satfinite rn.satfinite.relu rz.relu rz.satfinite rz.satfinite.relu"

/* Forms of a pair of types, "-" for none. ptxas also takes a rounding where f32 or f64 come from bf16, and none between
 * f16 and bf16, against the PTX manual; those are refused here. */
static const char *forms(size_t to, size_t from)
{
    /* integers whose .sat can mean something, as a map [to][from] in the order of types[] */
    static const char *const saturating[INTS] = {".#######", "..######", "...#####", "....####",
                                                 "####.###", ".###..##", "..##...#", "...#...."};
    if (to == TF32) return from == F32 ? "rn rz rna rna.satfinite" NARROW : "";
    if (from == TF32) return "";
    if (to < INTS && from < INTS) return saturating[to][from] == '#' ? "- sat" : "-";
    if ((to == BF16 && from < INTS) || (from == BF16 && to < INTS)) {
        if (types[to].bits == 8 || types[from].bits == 8) return "";
        return to == BF16 ? FLOAT_R : INT_R;
    }
    if (to < INTS) return from == F32 ? INT_FTZ : INT_SAT;
    if (from < INTS) return to == F32 ? FLOAT_FTZ : FLOAT_SAT;
    static const char *const floats[4][4] = {
        {"- sat " INT_SAT, FLOAT_R, FLOAT_FTZ NARROW, FLOAT_SAT},
        {FLOAT_R, "- " INT_R, "rn rz rm rp rn.ftz rz.ftz rm.ftz rp.ftz" NARROW, FLOAT_R},
        {"- sat ftz ftz.sat", "- ftz", "- sat ftz ftz.sat " INT_FTZ, FLOAT_FTZ},
        {"- sat", "-", "- sat ftz ftz.sat", "- sat " INT_SAT},
    };
    return floats[to - F16][from - F16];
}

/* A form's place in the list of them all: [rounding][ftz][sat][relu]. */
static const char *const rounding_names[] = {"", "rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"};

static void join(char *form, size_t bytes, size_t rounding, int ftz, int sat, int relu)
{
    const char *sats[] = {"", ".sat", ".satfinite"};
    snprintf(form, bytes, ".%s%s%s%s", rounding_names[rounding], ftz ? ".ftz" : "", sats[sat], relu ? ".relu" : "");
    if (!rounding) memmove(form, form + 1, strlen(form));
    if (!*form) strcpy(form, ".-");
    memmove(form, form + 1, strlen(form));
}

static int listed(const char *list, const char *form)
{
    size_t n = strlen(form);
    for (const char *at = list; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == n && !strncmp(at, form, n)) return 1;
    return 0;
}

static void check_forms(const char *list, const char *to, const char *from, const char *operands)
{
    for (unsigned k = 0; k < COUNT(rounding_names) * 12; k++) {
        char form[40], text[100];
        join(form, sizeof form, k / 12, k / 6 % 2, (int)(k / 2 % 3), k % 2);
        snprintf(text, sizeof text, "cvt%s%s.%s.%s %s", *form == '-' ? "" : ".", *form == '-' ? "" : form, to, from, operands);
        int bound = fixture_bind(text) != NULL;
        if (bound != listed(list, form)) fail_msg("%s: %s", text, bound ? "accepted" : "refused");
    }
}

static void exactly_the_legal_forms_bind(void **state)
{
    (void)state;
    fixture_reset();
    for (size_t to = 0; to < COUNT(types); to++)
        for (size_t from = 0; from < COUNT(types); from++) {
            char operands[32];
            snprintf(operands, sizeof operands, "%c40, %c42", types[to].reg, types[from].reg);
            check_forms(forms(to, from), types[to].name, types[from].name, operands);
        }
    const char *rows[][4] = {
        {"rn rz" NARROW, "f16x2", "f32", "r40, r42, r44"},   {"rn rz" NARROW, "bf16x2", "f32", "r40, r42, r44"},
        {"rn.satfinite rn.satfinite.relu", "e4m3x2", "f32", "h40, r42, r44"}, {"rn.satfinite rn.satfinite.relu", "e5m2x2", "f32", "h40, r42, r44"},
        {"rn.satfinite rn.satfinite.relu", "e4m3x2", "f16x2", "h40, r42"},    {"rn.satfinite rn.satfinite.relu", "e5m2x2", "f16x2", "h40, r42"},
        {"rn rn.relu", "f16x2", "e4m3x2", "r40, h42"},       {"rn rn.relu", "f16x2", "e5m2x2", "r40, h42"},
        {"", "f16x2", "f32", "r40, r42"},                    {"", "f16", "f32", "h40, r42, r44"},      {"", "e4m3x2", "f32", "r40, r42, r44"},
        {"", "bf16x2", "e4m3x2", "r40, h42"},                {"", "e4m3x2", "bf16x2", "h40, r42"},     {"", "f16x2", "f16x2", "r40, r42"},
        {"", "f16x2", "bf16x2", "r40, r42"},                 {"", "e4m3", "f32", "h40, r42"},          {"", "f32", "f16", "d40, h42"},
        {"", "f32", "f16", "r40, r42"},                      {"", "u32", "u16", "h40, h42"},           {"", "u64", "u32", "d40, h42"},
        {"", "u32", "u16", "r40, [r42]"},                    {"", "u32", "u16", "{r40, r41}, h42"},    {"", "u32", "u16", "p40, h42"},
        {"", "u32", "u16", "_, h42"},                        {"", "u32", "u16", "r2, h42"},            {"", "u32", "u16", "#1, h42"},
    };
    for (size_t k = 0; k < COUNT(rows); k++) check_forms(rows[k][0], rows[k][1], rows[k][2], rows[k][3]);
}

/* ---- integers */

static const uint64_t integers[] = {0,          1,          2,          0x7f,       0x80,       0xff,       0x100,      0x7fff,     0x8000,     0xffff,
                                    0x10000,    0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, ~0ull >> 1, 1ull << 63, ~0ull,      0xffffff7f, 0xffffffffffffff7f,
                                    0xffffffffffff7fff, 0xffffffff7fffffff, 0x0123456789abcdef, 0x1000001, 0x1000003, 0x20000000000001, 0x20000000000003,
                                    2049, 2051, 65519, 65520, 257, 259};

static __int128 value_of(size_t type, uint64_t bits)
{
    unsigned up = 64 - types[type].bits;
    bits <<= up;
    return types[type].is_signed ? (__int128)((int64_t)bits >> up) : (__int128)(bits >> up);
}

static uint64_t get(char reg) { return reg == 'd' ? fixture_get64(40, 7) : fixture_get32(40, 7); }

static void set(char reg, uint64_t bits)
{
    for (unsigned lane = 0; lane < 32; lane++) {
        if (reg == 'd') fixture_set64(42, lane, bits);
        else fixture_set32(42, lane, (uint32_t)(reg == 'h' ? bits & 0xffff : bits));
    }
}

/* Through registers as wide as the type, and through all wider ones. */
static void integers_to_integers(void **state)
{
    (void)state;
    const char regs[] = "hrd";
    const unsigned widths[] = {16, 32, 64};
    for (size_t to = 0; to < INTS; to++)
        for (size_t from = 0; from < INTS; from++)
            for (unsigned way = 0; way < 18; way++) {
                unsigned t = way % 3, f = way / 3 % 3, sat = way / 9;
                if (widths[t] < types[to].bits || widths[f] < types[from].bits || (sat && !listed(forms(to, from), "sat"))) continue;
                char text[80];
                snprintf(text, sizeof text, "cvt%s.%s.%s %c40, %c42", sat ? ".sat" : "", types[to].name, types[from].name, regs[t], regs[f]);
                fixture_reset();
                assert_non_null(fixture_bind(text));
                for (size_t k = 0; k < COUNT(integers); k++) {
                    set(regs[f], integers[k]);
                    for (unsigned pass = 0; pass < 2; pass++) {
                        fixture_again(pass ? FULL_MASK : 1u << 7);
                        __int128 value = value_of(from, integers[k]);
                        __int128 most = ((__int128)1 << (types[to].bits - (unsigned)types[to].is_signed)) - 1, least = types[to].is_signed ? -most - 1 : 0;
                        if (sat) value = value > most ? most : value < least ? least : value;
                        uint64_t expected = (uint64_t)value_of(to, (uint64_t)value) & ~0ull >> (64 - widths[t]);
                        if (get(regs[t]) != expected) fail_msg("%s of 0x%llx: 0x%llx", text, (unsigned long long)integers[k], (unsigned long long)get(regs[t]));
                    }
                }
            }
}

static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

static float narrowed(long double value, int mode)
{
    volatile long double x = value;
    fesetround(mode);
    volatile float f = (float)x;
    fesetround(FE_TONEAREST);
    return f;
}

static double to_double(long double value, int mode)
{
    volatile long double x = value;
    fesetround(mode);
    volatile double f = (double)x;
    fesetround(FE_TONEAREST);
    return f;
}

static uint64_t saturated(uint64_t bits, double value, uint64_t one) { return value > 0 ? value < 1 ? bits : one : 0; }

static void integers_to_floats(void **state)
{
    (void)state;
    for (size_t from = 0; from < INTS; from++)
        for (size_t to = F32; to <= F64; to++)
            for (unsigned m = 0; m < 8; m++) {
                char text[80];
                int sat = (int)m / 4;
                snprintf(text, sizeof text, "cvt.%s%s.%s.%s %c40, %c42", rounding_names[1 + m % 4], sat ? ".sat" : "", types[to].name, types[from].name,
                         types[to].reg, types[from].reg);
                fixture_reset();
                assert_non_null(fixture_bind(text));
                for (size_t k = 0; k < COUNT(integers); k++) {
                    set(types[from].reg, integers[k]);
                    fixture_again(FULL_MASK);
                    long double value = (long double)value_of(from, integers[k]); /* exact: 64 bits of significand */
                    uint64_t expected = to == F32 ? bits_of(narrowed(value, modes[m % 4])) : bits64_of(to_double(value, modes[m % 4]));
                    if (sat) expected = saturated(expected, (double)value, to == F32 ? 0x3f800000 : 0x3ff0000000000000);
                    if (get(types[to].reg) != expected) fail_msg("%s of 0x%llx: 0x%llx", text, (unsigned long long)integers[k], (unsigned long long)get(types[to].reg));
                }
            }
    /* f16 and bf16 to nearest */
    for (size_t from = 0; from < INTS; from++)
        for (size_t to = F16; to <= BF16; to++) {
            if (to == BF16 && types[from].bits == 8) continue;
            char text[80];
            snprintf(text, sizeof text, "cvt.rn.%s.%s h40, %c42", types[to].name, types[from].name, types[from].reg);
            fixture_reset();
            assert_non_null(fixture_bind(text));
            for (size_t k = 0; k < COUNT(integers); k++) {
                __int128 value = value_of(from, integers[k]);
                if ((__int128)(double)value != value) continue;
                set(types[from].reg, integers[k]);
                fixture_again(FULL_MASK);
                assert_int_equal(get('h'), reference_encode(to == F16 ? JG_F16 : JG_BF16, (double)value));
            }
        }
}

static const double reals[] = {0.0, -0.0, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 3.5, -0.5, -0.75, -1, -1.5, -2.5, -3.5, 126.5, 127.5, 128, -127.5, -128.5, -129, 254.5,
                               255, 255.5, 256, 32767.5, 32768, -32768.5, -32769, 65503.5, 65504, 0x7fffff80, 2147483647.5, 2147483648.0, -2147483648.0, -2147483649.0,
                               4294967295.0, 4294967295.5, 4294967296.0, 0x1p62, 0x1p63, 0x1.fffffep63, 0x1.fffffffffffffp63, 0x1p64, -0x1p63, -0x1.8p63, 1e30, -1e30, 0x1p-20,
                               -0x1p-20, 0x1p-140, -0x1p-140, 0x1p-1060, INFINITY, -INFINITY, NAN};

static double source(size_t from, double value, uint64_t *bits)
{
    if (from == F64) return *bits = bits64_of(value), value;
    if (from == F32) return *bits = bits_of((float)value), (float)value;
    jg_type type = from == F16 ? JG_F16 : JG_BF16;
    *bits = isnan(value) ? 0x7fff : reference_encode(type, value);
    return isnan(value) ? NAN : reference_decode(type, (uint32_t)*bits);
}

static double integral(double value, unsigned m)
{
    return m == 0 ? nearbyint(value) : m == 1 ? trunc(value) : m == 2 ? floor(value) : ceil(value);
}

static void floats_to_integers(void **state)
{
    (void)state;
    for (size_t to = 0; to < INTS; to++)
        for (size_t from = F16; from <= F64; from++)
            for (unsigned m = 0; m < 8; m++) {
                int ftz = m / 4 && from == F32;
                if ((from == BF16 && types[to].bits == 8) || (m / 4 && !ftz)) continue;
                char text[80];
                snprintf(text, sizeof text, "cvt.%s%s.%s.%s %c40, %c42", rounding_names[6 + m % 4], ftz ? ".ftz" : "", types[to].name, types[from].name,
                         types[to].reg, types[from].reg);
                fixture_reset();
                assert_non_null(fixture_bind(text));
                for (size_t k = 0; k < COUNT(reals); k++) {
                    uint64_t bits, expected;
                    double value = source(from, reals[k], &bits);
                    set(types[from].reg, bits);
                    fixture_again(FULL_MASK);
                    if (ftz && fabs(value) < 0x1p-126) value = 0;
                    unsigned places = types[to].bits - (unsigned)types[to].is_signed;
                    uint64_t most = ~0ull >> (64 - places);
                    if (isnan(value)) {
                        expected = types[to].bits == 64 || from == F64 ? 1ull << (types[to].bits - 1) : 0;
                    } else {
                        double whole = integral(value, m % 4);
                        if (whole >= ldexp(1, (int)places)) expected = most;
                        else if (whole < 0 && !types[to].is_signed) expected = 0;
                        else if (whole < -ldexp(1, (int)places)) expected = most + 1;
                        else expected = whole < 0 ? 0 - (uint64_t)-whole : (uint64_t)whole;
                    }
                    unsigned width = types[to].bits == 8 ? 16 : types[to].bits; /* an 8-bit result extends to its register */
                    if (types[to].is_signed && types[to].bits == 8) expected = (uint64_t)value_of(S8, expected);
                    expected &= ~0ull >> (64 - width);
                    if (get(types[to].reg) != expected)
                        fail_msg("%s of %a: 0x%llx, not 0x%llx", text, value, (unsigned long long)get(types[to].reg), (unsigned long long)expected);
                }
            }
}

/* ---- floats */

static void halves_widen_and_narrow(void **state)
{
    (void)state;
    const jg_type kinds[] = {JG_F16, JG_BF16};
    for (unsigned t = 0; t < 2; t++) {
        char text[80];
        snprintf(text, sizeof text, "cvt.f32.%s r40, h42", types[F16 + t].name);
        fixture_reset();
        assert_non_null(fixture_bind(text));
        for (uint32_t bits = 0; bits < 0x10000; bits += 32) {
            for (unsigned lane = 0; lane < 32; lane++) fixture_set32(42, lane, bits + lane);
            fixture_again(FULL_MASK);
            for (unsigned lane = 0; lane < 32; lane++) {
                double value = reference_decode(kinds[t], bits + lane);
                uint32_t nan = t ? (bits + lane) << 16 : 0x7fffffff; /* from bf16 the bits just move */
                assert_int_equal(fixture_get32(40, lane), isnan(value) ? nan : bits_of((float)value));
            }
        }
        /* and back, from all f32 exponents and around every rounding */
        for (unsigned packed = 0; packed < 2; packed++) {
            snprintf(text, sizeof text, packed ? "cvt.rn.%sx2.f32 r40, r42, r44" : "cvt.rn.%s.f32 h40, r42", types[F16 + t].name);
            assert_non_null(fixture_bind(text));
            for (uint64_t at = 0; at < 1ull << 32; at += 32 * 14983) {
                for (unsigned lane = 0; lane < 32; lane++) {
                    uint32_t x = (uint32_t)(at + lane * 14983ull);
                    fixture_set32(42, lane, lane % 3 ? x : x & ~0xfffu);
                    fixture_set32(44, lane, x ^ 0x55555555);
                }
                fixture_again(FULL_MASK);
                for (unsigned lane = 0; lane < 32; lane++) {
                    uint32_t expected[2];
                    for (unsigned s = 0; s < 2; s++) {
                        float x = float_of(fixture_get32(42 + 2 * s, lane));
                        expected[s] = isnan(x) ? 0x7fff : reference_encode(kinds[t], x);
                    }
                    assert_int_equal(fixture_get32(40, lane), packed ? expected[0] << 16 | expected[1] : expected[0]);
                }
            }
        }
    }
}

static void f64_narrows_to_f32(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (unsigned m = 0; m < 8; m++) {
        int ftz = m / 4;
        char text[80];
        snprintf(text, sizeof text, "cvt.%s%s.f32.f64 r40, d42", rounding_names[1 + m % 4], ftz ? ".ftz" : "");
        fixture_reset();
        assert_non_null(fixture_bind(text));
        for (unsigned k = 0; k < 3000; k++) {
            uint64_t x = reference_random(&seed), y = reference_random(&seed);
            double value = k < COUNT(reals) ? reals[k] : double_of((x & 0x800fffffffffffffull) | (870 + y % 290) << 52);
            if (k % 16 == 1) value = copysign(0x1p-126 - ldexp((double)(y % 5), -152 - (int)(y / 8 % 3)), value);
            if (k % 3 == 0) value = double_of(bits64_of(value) & ~0xfffffffull); /* more ties */
            set('d', bits64_of(value));
            fixture_again(FULL_MASK);
            float f = narrowed(value, modes[m % 4]);
            uint32_t expected = isnan(f) ? 0x7fffffff : bits_of(f);
            /* denormal after rounding to 24 bits, as seen on a GPU: its magnitude times 2^40 is rounded there */
            if (ftz && fabsf(narrowed(value * 0x1p40, modes[m % 4])) < 0x1p-86f) expected &= 0x80000000;
            if (get('r') != expected) fail_msg("%s of %a: 0x%llx", text, value, (unsigned long long)get('r'));
        }
    }
}

static void f32_rounds_to_integers(void **state)
{
    (void)state;
    for (unsigned m = 0; m < 4; m++)
        for (size_t type = F16; type <= F64; type++) {
            char text[80];
            snprintf(text, sizeof text, "cvt.%s.%s.%s %c40, %c42", rounding_names[6 + m], types[type].name, types[type].name, types[type].reg, types[type].reg);
            fixture_reset();
            assert_non_null(fixture_bind(text));
            for (size_t k = 0; k < COUNT(reals); k++) {
                uint64_t bits, expected;
                double value = integral(source(type, reals[k], &bits), m);
                set(types[type].reg, bits);
                fixture_again(FULL_MASK);
                source(type, value, &expected);
                if (isnan(value)) expected = type == F64 ? 0x7ff8000000000000 : type == F32 ? 0x7fffffff : 0x7fff;
                assert_true(get(types[type].reg) == expected);
            }
        }
}

static void others_by_hand(void **state)
{
    (void)state;
    const struct {
        const char *text;
        uint64_t a, b, expected;
    } rows[] = {
        {"cvt.f64.f32 d40, r42", 0x7f800001, 0, 0x7ff8000000000000}, {"cvt.f64.f32 d40, r42", 0x80000001, 0, 0xb6a0000000000000},
        {"cvt.ftz.f64.f32 d40, r42", 0x80000001, 0, 0x8000000000000000}, {"cvt.f64.f16 d40, h42", 0x0001, 0, 0x3e70000000000000},
        {"cvt.sat.f32.f32 r40, r42", 0x7fc00000, 0, 0}, {"cvt.f32.f32 r40, r42", 0xffc00001, 0, 0xffc00001}, {"cvt.ftz.f32.f32 r40, r42", 0xffc00001, 0, 0x7fffffff},
        {"cvt.ftz.f32.bf16 r40, h42", 0xffc1, 0, 0x7fffffff}, {"cvt.f64.f64 d40, d42", 0xfff0000000000001, 0, 0xfff0000000000001}, {"cvt.sat.f32.f32 r40, r42", 0x80000000, 0, 0}, {"cvt.sat.f32.f32 r40, r42", 0x40000000, 0, 0x3f800000},
        {"cvt.sat.f32.f16 r40, h42", 0xbc00, 0, 0}, {"cvt.ftz.f32.f32 r40, r42", 0x80000001, 0, 0x80000000}, {"cvt.f32.f32 r40, r42", 0x80000001, 0, 0x80000001},
        {"cvt.ftz.f32.bf16 r40, h42", 0x8001, 0, 0x80000000}, {"cvt.ftz.f32.f16 r40, h42", 0x8001, 0, 0xb3800000},
        {"cvt.rn.ftz.f16.f32 h40, r42", 0x33800000, 0, 0x0001}, {"cvt.rn.ftz.bf16.f32 h40, r42", 0x80400000, 0, 0x8000}, {"cvt.rn.bf16.f32 h40, r42", 0x80400000, 0, 0x8040},
        {"cvt.rz.f16.f32 h40, r42", 0x477fffff, 0, 0x7bff}, {"cvt.rz.bf16.f32 h40, r42", 0x3f80ffff, 0, 0x3f80}, {"cvt.rp.bf16.f32 h40, r42", 0x3f800001, 0, 0x3f81},
        {"cvt.rm.f16.f32 h40, r42", 0xbf800001, 0, 0xbc01}, {"cvt.rn.f16.bf16 h40, h42", 0x7f00, 0, 0x7c00}, {"cvt.rn.bf16.f16 h40, h42", 0x3c07, 0, 0x3f81},
        {"cvt.rn.bf16.f64 h40, d42", 0x3ff0100000000001, 0, 0x3f81}, {"cvt.rn.f16.f64 h40, d42", 0x3ff0020000000001, 0, 0x3c01},
        {"cvt.rn.relu.f16.f32 h40, r42", 0xbf800000, 0, 0}, {"cvt.rn.relu.f16.f32 h40, r42", 0xffc00000, 0, 0x7fff}, {"cvt.rz.satfinite.bf16.f32 h40, r42", 0xff800000, 0, 0xff7f},
        {"cvt.rn.satfinite.f16.f32 h40, r42", 0x7f800000, 0, 0x7bff}, {"cvt.rn.satfinite.f16.f32 h40, r42", 0x7fc00000, 0, 0x7fff},
        {"cvt.rna.tf32.f32 r40, r42", 0x3f801000, 0, 0x3f802000}, {"cvt.rn.tf32.f32 r40, r42", 0x3f801000, 0, 0x3f800000}, {"cvt.rn.tf32.f32 r40, r42", 0x3f803000, 0, 0x3f804000},
        {"cvt.rz.tf32.f32 r40, r42", 0xbf803fff, 0, 0xbf802000}, {"cvt.rna.tf32.f32 r40, r42", 0x7fffffff, 0, 0x7fffe000}, {"cvt.rna.tf32.f32 r40, r42", 0x7f7fffff, 0, 0x7f800000},
        {"cvt.rna.satfinite.tf32.f32 r40, r42", 0x7f7fffff, 0, 0x7f7fe000}, {"cvt.rn.relu.tf32.f32 r40, r42", 0xbf800000, 0, 0}, {"cvt.rna.tf32.f32 r40, r42", 0x00001000, 0, 0x2000},
        {"cvt.rz.f16x2.f32 r40, r42, r44", 0x3f800fff, 0xbfffffff, 0x3c00bfff}, {"cvt.rn.relu.bf16x2.f32 r40, r42, r44", 0xbf800000, 0x3f800000, 0x00003f80},
        {"cvt.rn.satfinite.f16x2.f32 r40, r42, r44", 0x7f800000, 0xff800000, 0x7bfffbff},
        {"cvt.rn.satfinite.e4m3x2.f32 h40, r42, r44", 0x3f800000, 0xc0000000, 0x38c0}, {"cvt.rn.satfinite.e4m3x2.f32 h40, r42, r44", 0x7f800000, 0x7fc00000, 0x7e7f},
        {"cvt.rn.satfinite.relu.e4m3x2.f32 h40, r42, r44", 0xc3e80001, 0x3b000001, 0x0001}, {"cvt.rn.satfinite.e4m3x2.f32 h40, r42, r44", 0x3a800000, 0x3ac00000, 0x0001},
        {"cvt.rn.satfinite.e5m2x2.f32 h40, r42, r44", 0x47800000, 0x37800000, 0x7b01}, {"cvt.rn.satfinite.e5m2x2.f16x2 h40, r42", 0x3c807c00, 0, 0x3c7b},
        {"cvt.rn.satfinite.e5m2x2.f16x2 h40, r42", 0x3c813d80, 0, 0x3d3e}, {"cvt.rn.satfinite.relu.e4m3x2.f16x2 h40, r42", 0xbc003c00, 0, 0x0038},
        {"cvt.rn.f16x2.e4m3x2 r40, h42", 0x7f81, 0, 0x7fff9800}, {"cvt.rn.f16x2.e5m2x2 r40, h42", 0x7cbc, 0, 0x7c00bc00}, {"cvt.rn.relu.f16x2.e5m2x2 r40, h42", 0x3cbc, 0, 0x3c000000},
        {"cvt.u16.u32 r40, r42", 0x12345678, 0, 0x5678}, {"cvt.s16.s32 r40, r42", 0x1234f678, 0, 0xfffff678}, {"cvt.s8.u32 h40, r42", 0x80, 0, 0xff80},
        {"cvt.s8.s32 b40, r42", 0x1280, 0, 0x80}, {"cvt.u64.u32 d40, #n-1", 0, 0, 0xffffffff}, {"cvt.s32.s8 r40, b42", 0x80, 0, 0xffffff80},
    };
    for (size_t k = 0; k < COUNT(rows); k++)
        for (unsigned pass = 0; pass < 2; pass++) {
            fixture_reset();
            int wide = strstr(rows[k].text, ", d42") != NULL, wide_to = strstr(rows[k].text, " d40") != NULL;
            for (unsigned lane = 0; lane < 32; lane++) {
                if (wide) fixture_set64(42, lane, rows[k].a);
                else fixture_set32(42, lane, (uint32_t)rows[k].a);
                fixture_set32(44, lane, (uint32_t)rows[k].b);
            }
            fixture_run(rows[k].text, pass ? FULL_MASK : 1u << 7);
            uint64_t got = get(wide_to ? 'd' : 'r');
            if (got != rows[k].expected) fail_msg("row %zu, %s of 0x%llx: 0x%llx", k, rows[k].text, (unsigned long long)rows[k].a, (unsigned long long)got);
            uint64_t other = wide_to ? fixture_get64(40, 8) : fixture_get32(40, 8);
            assert_true(other == (pass ? rows[k].expected : 0));
        }
}

static int use_base(void **state) { (void)state; fixture_use_table(0); return 0; }
static int use_wide(void **state) { (void)state; fixture_use_table(1); return 0; }

#define TESTS(X)                                                                                                       \
    X(exactly_the_legal_forms_bind) X(integers_to_integers) X(integers_to_floats) X(floats_to_integers) X(halves_widen_and_narrow) \
    X(f64_narrows_to_f32) X(f32_rounds_to_integers) X(others_by_hand)
#define BASE(test) cmocka_unit_test_setup(test, use_base),
#define WIDE(test) {#test " (wide)", test, use_wide, NULL, NULL},

int main(void)
{
    const struct CMUnitTest base[] = {TESTS(BASE)};
    const struct CMUnitTest wide[] = {TESTS(WIDE)};
    int failed = cmocka_run_group_tests_name("swgpu convert", base, NULL, NULL);
    if (fixture_tables() == 2) failed += cmocka_run_group_tests_name("swgpu convert, wide", wide, NULL, NULL);
    return failed;
}
