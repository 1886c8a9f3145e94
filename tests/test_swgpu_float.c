/* src/swgpu/ops_float.c and ops_special.c. Oracles: the processor with its rounding mode set for f32 and f64, __float128
 * (float_oracle.h) for the narrow formats. */
#include "float_oracle.h"
#include "reference.h"

#include <fenv.h>

/* ---- f32 and f64 arithmetic */

static const uint32_t special32[] = {
    0, 0x80000000, 1, 0x80000001, 2, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x00800001, 0x33800000, 0x34000000,
    0x3f000000, 0x3f7fffff, 0x3f800000, 0xbf800000, 0x3f800001, 0xbf800001, 0x3fc00000, 0x40400000, 0x4b7fffff, 0x4b800001,
    0x7e800000, 0x7f000000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc12345,
};
static const uint64_t special64[] = {
    0, 1ull << 63, 1, 0x8000000000000001, 0x000fffffffffffff, 0x0010000000000000, 0x8010000000000001, 0x3ca0000000000000,
    0x3cb0000000000000, 0x3fefffffffffffff, 0x3ff0000000000000, 0xbff0000000000000, 0x3ff0000000000001, 0x3ff8000000000000,
    0x4340000000000001, 0x7fd0000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000,
    0x7ff8000000000000, 0xfff0000000000001,
};

static uint64_t seed = 1;

/* Specials in all combinations first, then numbers whose exponents are close enough to meet. */
static uint32_t operand32(unsigned round, unsigned which)
{
    size_t n = COUNT(special32);
    if (round < n * n) return special32[which == 0 ? round % n : which == 1 ? round / n : (round * 7 + round / n) % n];
    uint64_t x = reference_random(&seed);
    if (x >> 60 == 0) return special32[x % n];
    if (x >> 57 == 0x3f) { /* products at the smallest normal number: 1 less a little times that and a little */
        return which == 2 ? 0 : ((uint32_t)x & 0x80000000) | (which ? 0x00800000 + (uint32_t)(x & 3) : 0x3f800000 - (uint32_t)(x & 3));
    }
    uint32_t base = (x >> 59 & 1) ? 100 : 2, spread = 52;
    return (uint32_t)(x & 0x807fffff) | (base + (uint32_t)(x >> 40) % spread) << 23;
}

static uint64_t operand64(unsigned round, unsigned which)
{
    size_t n = COUNT(special64);
    if (round < n * n) return special64[which == 0 ? round % n : which == 1 ? round / n : (round * 5 + round / n) % n];
    uint64_t x = reference_random(&seed), y = reference_random(&seed);
    if (y >> 60 == 0) return special64[y % n];
    uint64_t base = (y >> 59 & 1) ? 970 : 2;
    return (x & 0x800fffffffffffffull) | (base + y % 110) << 52;
}

static const struct {
    const char *name;
    int mode, rounding;
} modes[] = {{"rn", FE_TONEAREST, ROUND_RN}, {"rz", FE_TOWARDZERO, ROUND_RZ}, {"rm", FE_DOWNWARD, ROUND_RM}, {"rp", FE_UPWARD, ROUND_RP}};

static const struct {
    const char *name;
    int sources;
} operations[] = {{"add", 2}, {"sub", 2}, {"mul", 2}, {"fma", 3}, {"mad", 3}, {"div", 2}, {"rcp", 1}, {"sqrt", 1}};

static float processor32(size_t operation, int mode, float a, float b, float c)
{
    volatile float x = a, y = b, z = c, d;
    fesetround(mode);
    switch (operation) {
    case 0: d = x + y; break;
    case 1: d = x - y; break;
    case 2: d = x * y; break;
    case 3: case 4: d = fmaf(x, y, z); break;
    case 5: d = x / y; break;
    case 6: d = 1.0f / x; break;
    default: d = sqrtf(x); break;
    }
    fesetround(FE_TONEAREST);
    return d;
}

static double processor64(size_t operation, int mode, double a, double b, double c)
{
    volatile double x = a, y = b, z = c, d;
    fesetround(mode);
    switch (operation) {
    case 0: d = x + y; break;
    case 1: d = x - y; break;
    case 2: d = x * y; break;
    case 3: case 4: d = fma(x, y, z); break;
    case 5: d = x / y; break;
    case 6: d = 1.0 / x; break;
    default: d = sqrt(x); break;
    }
    fesetround(FE_TONEAREST);
    return d;
}

static uint32_t flush(uint32_t bits) { return bits & 0x7f800000 ? bits : bits & 0x80000000; }

/* Whether the exact result, rounded to 24 bits with no limit to the exponent, is below the smallest normal number; so it
 * was seen on a GPU. The limit is where that rounding reaches the number. */
static int tiny32(size_t operation, int rounding, float a, float b, float c)
{
    if (operation != 3 && operation != 4) c = 0; /* what it does not take may be anything */
    if (operation > 5) b = 1;
    __float128 x = a, y = b, z = c, product = x * y, smallest = power(-126);
    __float128 d = operation == 0 ? x + y : operation == 1 ? x - y : operation == 2 ? product : operation < 5 ? product + z
                   : operation == 5 ? x / y : operation == 6 ? 1 / x : smallest;
    if (!isfinite(a) || !isfinite(b) || !isfinite(c) || d == 0) return 0;
    int away = rounding == (d < 0 ? ROUND_RM : ROUND_RP);
    if (d < 0) d = -d, product = -product;
    if (rounding == ROUND_RN) return d < smallest - power(-151);
    if (away) return d <= smallest - power(-150);
    /* a product so small that the sum lost it */
    if ((operation == 3 || operation == 4) && d == smallest && (z == d || z == -d)) return product < 0;
    return d < smallest;
}

static uint32_t clamp(uint32_t bits)
{
    float x = float_of(bits);
    return x > 0 ? x < 1 ? bits : 0x3f800000 : 0;
}

static void make(char *text, size_t bytes, size_t operation, const char *words, const char *reg)
{
    int n = snprintf(text, bytes, "%s.%s %s40", operations[operation].name, words, reg);
    for (int s = 0; s < operations[operation].sources; s++) n += snprintf(text + n, bytes - (size_t)n, ", %s%d", reg, 42 + 2 * s);
}

static void f32_rounds_as_the_processor_does(void **state)
{
    (void)state;
    for (size_t operation = 0; operation < COUNT(operations); operation++)
        for (unsigned variant = 0; variant < 16; variant++) {
            size_t m = variant / 4;
            int ftz = variant & 1, sat = variant >> 1 & 1;
            if (sat && operation > 4) continue;
            char words[32], text[80];
            snprintf(words, sizeof words, "%s%s%s.f32", modes[m].name, ftz ? ".ftz" : "", sat ? ".sat" : "");
            make(text, sizeof text, operation, words, "r");
            fixture_reset();
            assert_non_null(fixture_bind(text));
            for (unsigned round = 0; round < 3200; round += 32) {
                for (unsigned lane = 0; lane < 32; lane++)
                    for (unsigned s = 0; s < 3; s++) fixture_set32(42 + 2 * s, lane, operand32(round + lane, s));
                assert_int_equal(fixture_again(FULL_MASK), 0);
                for (unsigned lane = 0; lane < 32; lane++) {
                    uint32_t v[3];
                    for (unsigned s = 0; s < 3; s++) v[s] = fixture_get32(42 + 2 * s, lane), v[s] = ftz ? flush(v[s]) : v[s];
                    float d = processor32(operation, modes[m].mode, float_of(v[0]), float_of(v[1]), float_of(v[2]));
                    uint32_t expected = isnan(d) ? 0x7fffffff : bits_of(d), got = fixture_get32(40, lane);
                    if (ftz && tiny32(operation, modes[m].rounding, float_of(v[0]), float_of(v[1]), float_of(v[2]))) expected &= 0x80000000;
                    if (sat) expected = clamp(expected);
                    if (got != expected) fail_msg("%s of 0x%x 0x%x 0x%x: 0x%x, not 0x%x", text, v[0], v[1], v[2], got, expected);
                }
            }
        }
}

static void f64_rounds_as_the_processor_does(void **state)
{
    (void)state;
    for (size_t operation = 0; operation < COUNT(operations); operation++)
        for (size_t m = 0; m < 4; m++) {
            char words[32], text[80];
            snprintf(words, sizeof words, "%s.f64", modes[m].name);
            make(text, sizeof text, operation, words, "d");
            fixture_reset();
            assert_non_null(fixture_bind(text));
            for (unsigned round = 0; round < 6400; round += 32) {
                for (unsigned lane = 0; lane < 32; lane++)
                    for (unsigned s = 0; s < 3; s++) fixture_set64(42 + 2 * s, lane, operand64(round + lane, s));
                assert_int_equal(fixture_again(FULL_MASK), 0);
                for (unsigned lane = 0; lane < 32; lane++) {
                    double v[3];
                    for (unsigned s = 0; s < 3; s++) v[s] = double_of(fixture_get64(42 + 2 * s, lane));
                    double d = processor64(operation, modes[m].mode, v[0], v[1], v[2]);
                    uint64_t expected = isnan(d) ? 0x7ff8000000000000ull : bits64_of(d), got = fixture_get64(40, lane);
                    if (got != expected)
                        fail_msg("%s of %a %a %a: 0x%llx, not 0x%llx", text, v[0], v[1], v[2], (unsigned long long)got, (unsigned long long)expected);
                }
            }
        }
}

/* Forms without a rounding, and the approximate ones, which are exact here. */
static void defaults_round_to_nearest(void **state)
{
    (void)state;
    const struct { const char *text; size_t operation; } rows[] = {
        {"add.f32 r40, r42, r44", 0}, {"sub.f32 r40, r42, r44", 1}, {"mul.f32 r40, r42, r44", 2}, {"div.full.f32 r40, r42, r44", 5},
        {"div.approx.f32 r40, r42, r44", 5}, {"rcp.approx.f32 r40, r42", 6}, {"sqrt.approx.f32 r40, r42", 7},
    };
    for (size_t k = 0; k < COUNT(rows); k++) {
        fixture_reset();
        for (unsigned lane = 0; lane < 32; lane++)
            for (unsigned s = 0; s < 2; s++) fixture_set32(42 + 2 * s, lane, operand32(2000 + lane, s));
        fixture_run(rows[k].text, FULL_MASK);
        for (unsigned lane = 0; lane < 32; lane++) {
            float d = processor32(rows[k].operation, FE_TONEAREST, float_of(fixture_get32(42, lane)), float_of(fixture_get32(44, lane)), 0);
            assert_int_equal(fixture_get32(40, lane), isnan(d) ? 0x7fffffff : bits_of(d));
        }
    }
}

/* The destination may be a source, lanes outside the mask keep theirs, immediates count. */
static void masks_and_aliases(void **state)
{
    (void)state;
    const uint32_t masks[] = {1, 0x80000000, 0x00ff00f1, 0x7fffffff, FULL_MASK};
    for (size_t k = 0; k < COUNT(masks); k++) {
        fixture_reset();
        for (unsigned lane = 0; lane < 32; lane++) fixture_set32(40, lane, bits_of((float)lane));
        fixture_run("fma.rn.f32 r40, r40, r40, r40", masks[k]);
        fixture_run("add.rz.f32 r40, r40, #0x3f800000", masks[k]);
        for (unsigned lane = 0; lane < 32; lane++) {
            float x = (float)lane;
            assert_int_equal(fixture_get32(40, lane), bits_of(masks[k] >> lane & 1 ? x * x + x + 1 : x));
        }
    }
}

/* ---- f16, bf16 and their pairs: exact in __float128 for these operands, then rounded once */

static uint32_t operand16(const struct oracle_format *f, unsigned round)
{
    uint64_t x = reference_random(&seed);
    if (f->type == TYPE_F16 || round % 8 == 0) return (uint32_t)(x & 0xffff); /* any pattern */
    return (uint32_t)(x & 0x807f) | (uint32_t)(110 + (x >> 32) % 34) << 7;
}

static void halves_round_once(void **state)
{
    (void)state;
    const char *names[] = {"add", "sub", "mul", "fma.rn"};
    for (size_t t = 0; t < 2; t++)
        for (size_t o = 0; o < COUNT(names); o++)
            for (unsigned relu = 0; relu < (o == 3 ? 2u : 1u); relu++)
                for (unsigned round = 0; round < 4000; round++) {
                    const struct oracle_format *f = &oracle_formats[t];
                    char text[80];
                    snprintf(text, sizeof text, "%s%s.%sx2 r40, r42, r44%s", names[o], relu ? ".relu" : "", f->name, o == 3 ? ", r46" : "");
                    if (round == 0) fixture_reset(), assert_non_null(fixture_bind(text));
                    __float128 x[3][2];
                    int special = 0;
                    for (unsigned s = 0; s < 3; s++) {
                        uint32_t pair = operand16(f, round) | operand16(f, round) << 16;
                        fixture_set32(42 + 2 * s, 5, pair);
                        for (unsigned h = 0; h < 2; h++) {
                            double v = oracle_decode(f, pair >> 16 * h & 0xffff);
                            if (!isfinite(v) || v == 0 || (t == 1 && (fabs(v) < 0x1p-20 || fabs(v) > 0x1p20))) special = 1;
                            x[s][h] = v;
                        }
                    }
                    if (special) continue;
                    fixture_again(1u << 5);
                    for (unsigned h = 0; h < 2; h++) {
                        __float128 a = x[0][h], b = x[1][h], c = x[2][h], d = o == 0 ? a + b : o == 1 ? a - b : o == 2 ? a * b : a * b + c;
                        uint32_t got = fixture_get32(40, 5) >> 16 * h & 0xffff;
                        uint32_t expected = relu && d < 0 ? 0 : (uint32_t)oracle_encode(f, d, ROUND_RN);
                        if (got != expected) fail_msg("%s half %u: 0x%x, not 0x%x", text, h, got, expected);
                    }
                }
}

static void halves_by_hand(void **state)
{
    (void)state;
    const struct {
        const char *text;
        uint32_t a, b, c, expected;
    } rows[] = {
        /* a product of just over a tie, by less than double's or float's last bit */
        {"fma.rn.bf16 h40, h42, h44, h46", 0x3f81, 0x3f81, 0x0001, 0x3f82},
        {"fma.rn.bf16 h40, h42, h44, h46", 0x3f80, 0x3b80, 0x3f80, 0x3f80}, /* 1 + 2^-8: the tie goes to even */
        {"fma.rn.bf16 h40, h42, h44, h46", 0x3f81, 0x3f80, 0x3b80, 0x3f82}, /* the next one's goes up */
        {"fma.rn.bf16 h40, h42, h44, h46", 0x1e80, 0x1c80, 0x0000, 0x0000}, /* 2^-136: nothing is left */
        {"fma.rn.bf16 h40, h42, h44, h46", 0x1f80, 0x1e80, 0x0000, 0x0008},
        {"fma.rn.f16 h40, h42, h44, h46", 0x7c00, 0x0000, 0x3c00, 0x7fff},
        {"fma.rn.f16 h40, h42, h44, h46", 0x7bff, 0x7bff, 0xfc00, 0xfc00},
        {"fma.rn.relu.f16 h40, h42, h44, h46", 0xfe00, 0x3c00, 0x3c00, 0x7fff},
        {"fma.rn.relu.f16 h40, h42, h44, h46", 0xbc00, 0x3c00, 0x0000, 0x0000},
        {"fma.rn.relu.bf16 h40, h42, h44, h46", 0x8000, 0x3f80, 0x8000, 0x0000},
        {"fma.rn.sat.f16 h40, h42, h44, h46", 0x4000, 0x3c00, 0x0000, 0x3c00},
        {"fma.rn.sat.f16 h40, h42, h44, h46", 0x7e00, 0x3c00, 0x0000, 0x0000},
        {"fma.rn.sat.f16 h40, h42, h44, h46", 0x3800, 0x3c00, 0x0000, 0x3800},
        {"fma.rn.ftz.f16 h40, h42, h44, h46", 0x83ff, 0x3c00, 0x8000, 0x8000},
        {"fma.rn.ftz.f16 h40, h42, h44, h46", 0x0400, 0x3800, 0x0000, 0x0000},
        {"add.f16 h40, h42, h44", 0x7bff, 0x4bff, 0, 0x7bff},
        {"add.f16 h40, h42, h44", 0x7bff, 0x4c00, 0, 0x7c00},
        {"add.sat.f16x2 r40, r42, r44", 0x3c00c000, 0x3c003c00, 0, 0x3c000000},
        {"add.bf16x2 r40, r42, r44", 0x7f80ff80, 0xff80ff80, 0, 0x7fffff80},
        {"sub.bf16 h40, h42, h44", 0x3f80, 0x3f80, 0, 0x0000},
        {"mul.ftz.f16 h40, h42, h44", 0x0001, 0x7bff, 0, 0x0000},
        {"mul.f16 h40, h42, h44", 0x0001, 0x7bff, 0, 0x1bff},
        {"mul.bf16 h40, h42, h44", 0x0001, 0x3f00, 0, 0x0000},
        {"mul.bf16 h40, h42, h44", 0x0003, 0x3f00, 0, 0x0002},
    };
    for (size_t k = 0; k < COUNT(rows); k++) {
        fixture_reset();
        fixture_set32(42, 3, rows[k].a);
        fixture_set32(44, 3, rows[k].b);
        fixture_set32(46, 3, rows[k].c);
        fixture_run(rows[k].text, 8);
        if (fixture_get32(40, 3) != rows[k].expected) fail_msg("row %zu, %s: 0x%x", k, rows[k].text, fixture_get32(40, 3));
    }
}

/* ---- min, max, signs, classes */

static void min_and_max_of_all_specials(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 8; variant++) {
        int is_max = variant & 1, nan = variant >> 1 & 1, ftz = variant >> 2;
        char text[80];
        snprintf(text, sizeof text, "%s%s%s.f32 r40, r42, r44", is_max ? "max" : "min", ftz ? ".ftz" : "", nan ? ".NaN" : "");
        fixture_reset();
        assert_non_null(fixture_bind(text));
        for (size_t x = 0; x < COUNT(special32); x++) {
            for (unsigned y = 0; y < 32; y++) fixture_set32(42, y, special32[x]), fixture_set32(44, y, special32[y % COUNT(special32)]);
            fixture_again(FULL_MASK);
            for (unsigned y = 0; y < 32; y++) {
                uint32_t a = special32[x], b = special32[y % COUNT(special32)], expected;
                if (ftz) a = flush(a), b = flush(b);
                float p = float_of(a), q = float_of(b);
                if (isnan(p) || isnan(q)) expected = (nan || (isnan(p) && isnan(q))) ? 0x7fffffff : isnan(p) ? b : a;
                else if (p == q) expected = is_max ? a & b : a | b; /* differ in the sign of zero at most */
                else expected = (p < q) != is_max ? a : b;
                if (fixture_get32(40, y) != expected) fail_msg("%s of 0x%x 0x%x: 0x%x", text, a, b, fixture_get32(40, y));
            }
        }
    }
}

static void other_widths_and_signs_by_hand(void **state)
{
    (void)state;
    const struct {
        const char *text;
        uint64_t a, b, expected;
    } rows[] = {
        {"min.f16x2 r40, r42, r44", 0x80007e01, 0x00003c00, 0x80003c00}, {"max.f16x2 r40, r42, r44", 0x8000fc00, 0x0000fbff, 0x0000fbff},
        {"max.NaN.bf16x2 r40, r42, r44", 0x7fc13f80, 0x3f804000, 0x7fff4000}, {"max.ftz.f16 h40, h42, h44", 0x03ff, 0x8000, 0x0000},
        {"min.bf16 h40, h42, h44", 0xffff, 0x7f81, 0x7fff}, {"min.bf16 h40, h42, h44", 0xbf80, 0xbf81, 0xbf81},
        {"min.f64 d40, d42, d44", 0x8000000000000000, 0, 0x8000000000000000}, {"max.f64 d40, d42, d44", 0x7ff0000000000001, 5, 5},
        {"max.f64 d40, d42, d44", 0xfff0000000000001, 0x7ff8000000000000, 0x7ff8000000000000},
        {"min.f64 d40, d42, d44", 0xbff0000000000000, 0xbff0000000000001, 0xbff0000000000001},
        {"neg.f32 r40, r42", 0x7fc00001, 0, 0xffc00001}, {"abs.f32 r40, r42", 0xffc00001, 0, 0x7fc00001}, {"neg.f32 r40, r42", 0, 0, 0x80000000},
        {"neg.ftz.f32 r40, r42", 1, 0, 0x80000000}, {"abs.ftz.f32 r40, r42", 0x80000001, 0, 0}, {"abs.f32 r40, r42", 0x80000001, 0, 1},
        {"neg.f64 d40, d42", 0x7ff0000000000001, 0, 0xfff0000000000001}, {"abs.f64 d40, d42", 0x8000000000000005, 0, 5},
        {"neg.f16 h40, h42", 0x7e00, 0, 0xfe00}, {"abs.bf16 h40, h42", 0xff81, 0, 0x7f81}, {"neg.f16x2 r40, r42", 0x00018000, 0, 0x80010000},
        {"abs.bf16x2 r40, r42", 0xffff8000, 0, 0x7fff0000}, {"neg.ftz.f16x2 r40, r42", 0x83ff3c00, 0, 0x0000bc00},
        {"copysign.f32 r40, r42, r44", 0x80000000, 0x7fc00000, 0xffc00000}, {"copysign.f32 r40, r42, r44", 0x3f800000, 0xc0000000, 0x40000000},
        {"copysign.f64 d40, d42, d44", 1ull << 63, 0x3ff0000000000000, 0xbff0000000000000},
        {"rcp.approx.ftz.f64 d40, d42", 0x3ff80000ffffffff, 0, 0x3fe5555500000000},
        {"rcp.approx.ftz.f64 d40, d42", 0x0008000000000000, 0, 0x7ff0000000000000},
    };
    for (size_t k = 0; k < COUNT(rows); k++) {
        fixture_reset();
        int wide = strstr(rows[k].text, "f64") != NULL;
        for (unsigned lane = 0; lane < 32; lane++) {
            if (wide) fixture_set64(42, lane, rows[k].a), fixture_set64(44, lane, rows[k].b);
            else fixture_set32(42, lane, (uint32_t)rows[k].a), fixture_set32(44, lane, (uint32_t)rows[k].b);
        }
        for (unsigned pass = 0; pass < 2; pass++) {
            fixture_run(rows[k].text, pass ? FULL_MASK : 1u << 9);
            uint64_t got = wide ? fixture_get64(40, 9) : fixture_get32(40, 9), other = wide ? fixture_get64(40, 8) : fixture_get32(40, 8);
            if (got != rows[k].expected) fail_msg("row %zu, %s: 0x%llx", k, rows[k].text, (unsigned long long)got);
            assert_true(other == (pass ? rows[k].expected : 0));
        }
    }
}

static void testp_sorts_into_classes(void **state)
{
    (void)state;
    const char *tests[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
    for (size_t t = 0; t < COUNT(tests); t++)
        for (unsigned wide = 0; wide < 2; wide++) {
            char text[80];
            snprintf(text, sizeof text, "testp.%s.%s p40, %s42", tests[t], wide ? "f64" : "f32", wide ? "d" : "r");
            size_t n = wide ? COUNT(special64) : COUNT(special32);
            for (size_t k = 0; k < n; k++) {
                fixture_reset();
                if (wide) fixture_set64(42, 4, special64[k]);
                else fixture_set32(42, 4, special32[k]);
                fixture_set_predicate(40, 0xffffffef);
                fixture_run(text, 0x30); /* lane 5 holds 0 */
                int class = wide ? fpclassify(double_of(special64[k])) : fpclassify(float_of(special32[k]));
                const int expected[] = {class != FP_NAN && class != FP_INFINITE, class == FP_INFINITE, class != FP_NAN, class == FP_NAN,
                                        class == FP_NORMAL || class == FP_ZERO, class == FP_SUBNORMAL};
                const int of_zero[] = {1, 0, 1, 0, 1, 0};
                assert_int_equal(fixture_get_predicate(40), 0xffffffcf | (uint32_t)expected[t] << 4 | (uint32_t)of_zero[t] << 5);
            }
        }
}

/* ---- approximations: within two units of the last place of the C library's long double, and the special values */

static void special_functions(void **state)
{
    (void)state;
    long double (*const functions[])(long double) = {sinl, cosl, log2l, exp2l, tanhl};
    const char *names[] = {"sin.approx", "cos.approx", "lg2.approx", "ex2.approx", "tanh.approx", "rsqrt.approx"};
    for (size_t k = 0; k < COUNT(names); k++) {
        char text[80];
        snprintf(text, sizeof text, "%s.f32 r40, r42", names[k]);
        fixture_reset();
        for (unsigned lane = 0; lane < 32; lane++) fixture_set32(42, lane, bits_of(0.01f + 0.37f * (float)lane));
        fixture_run(text, FULL_MASK);
        for (unsigned lane = 0; lane < 32; lane++) {
            long double x = (long double)float_of(fixture_get32(42, lane)), y = k < 5 ? functions[k](x) : 1 / sqrtl(x);
            assert_true(fabsl((long double)float_of(fixture_get32(40, lane)) - y) <= 0x1p-23L * fabsl(y));
        }
    }
    const struct {
        const char *text;
        uint64_t a, expected;
    } rows[] = {
        {"sin.approx.f32 r40, r42", 0x7f800000, 0x7fffffff}, {"cos.approx.f32 r40, r42", 0, 0x3f800000}, {"sin.approx.f32 r40, r42", 0x80000000, 0x80000000},
        {"lg2.approx.f32 r40, r42", 0, 0xff800000}, {"lg2.approx.f32 r40, r42", 0xbf800000, 0x7fffffff}, {"lg2.approx.f32 r40, r42", 0x41000000, 0x40400000},
        {"lg2.approx.f32 r40, r42", 1, 0xc3150000}, {"lg2.approx.ftz.f32 r40, r42", 1, 0xff800000},
        {"ex2.approx.f32 r40, r42", 0xff800000, 0}, {"ex2.approx.f32 r40, r42", 0x43000000, 0x7f800000}, {"ex2.approx.f32 r40, r42", 0xc3020000, 0x00080000},
        {"ex2.approx.ftz.f32 r40, r42", 0xc3020000, 0}, {"ex2.approx.f16 h40, h42", 0x4200, 0x4800}, {"ex2.approx.ftz.bf16x2 r40, r42", 0x4040bf80, 0x41003f00},
        {"tanh.approx.f32 r40, r42", 0xff800000, 0xbf800000}, {"tanh.approx.f16x2 r40, r42", 0xfc000000, 0xbc000000}, {"tanh.approx.bf16 h40, h42", 0x7fc1, 0x7fff},
        {"rsqrt.approx.f32 r40, r42", 0x80000000, 0xff800000}, {"rsqrt.approx.f32 r40, r42", 0x40800000, 0x3f000000}, {"rsqrt.approx.f32 r40, r42", 0xbf800000, 0x7fffffff},
        {"rsqrt.approx.f32 r40, r42", 0x7f800000, 0}, {"rsqrt.approx.f64 d40, d42", 0x4010000000000000, 0x3fe0000000000000},
        {"rsqrt.approx.ftz.f64 d40, d42", 0x40000000ffffffff, 0x3fe6a09e00000000},
    };
    for (size_t k = 0; k < COUNT(rows); k++) {
        fixture_reset();
        fixture_set64(42, 3, 0);
        if (strstr(rows[k].text, "f64")) fixture_set64(42, 3, rows[k].a);
        else fixture_set32(42, 3, (uint32_t)rows[k].a);
        fixture_run(rows[k].text, 8);
        uint64_t got = strstr(rows[k].text, "f64") ? fixture_get64(40, 3) : fixture_get32(40, 3);
        if (got != rows[k].expected) fail_msg("%s of 0x%llx: 0x%llx", rows[k].text, (unsigned long long)rows[k].a, (unsigned long long)got);
    }
}

/* ---- what does not exist */

static void illegal_forms_are_refused(void **state)
{
    (void)state;
    const char *texts[] = {
        "fma.f32 r40, r42, r44, r46", "fma.f16 h40, h42, h44, h46", "mad.f32 r40, r42, r44, r46", "mad.f64 d40, d42, d44, d46",
        "fma.rn.relu.f32 r40, r42, r44, r46", "fma.rn.sat.f64 d40, d42, d44, d46", "fma.rn.ftz.f64 d40, d42, d44, d46",
        "fma.rn.sat.relu.f16 h40, h42, h44, h46", "fma.rn.sat.bf16 h40, h42, h44, h46", "fma.rn.ftz.bf16 h40, h42, h44, h46",
        "fma.rz.f16 h40, h42, h44, h46", "fma.rni.f32 r40, r42, r44, r46", "fma.rna.f32 r40, r42, r44, r46", "add.rz.f16 h40, h42, h44",
        "add.sat.f64 d40, d42, d44", "add.sat.bf16 h40, h42, h44", "add.satfinite.f32 r40, r42, r44", "mul.wide.f32 r40, r42, r44",
        "div.f32 r40, r42, r44", "div.f64 d40, d42, d44", "div.approx.rn.f32 r40, r42, r44", "div.full.f64 d40, d42, d44",
        "rcp.f32 r40, r42", "rcp.full.f32 r40, r42", "rcp.approx.f64 d40, d42", "rcp.rn.ftz.f64 d40, d42", "sqrt.approx.f64 d40, d42",
        "sqrt.f32 r40, r42", "rsqrt.f32 r40, r42", "rsqrt.full.f32 r40, r42", "sin.f32 r40, r42", "ex2.approx.ftz.f16 h40, h42",
        "ex2.approx.bf16 h40, h42", "min.relu.f16 h40, h42, h44", "min.NaN.f64 d40, d42, d44", "min.ftz.bf16 h40, h42, h44",
        "max.xorsign.f32 r40, r42, r44", "neg.ftz.f64 d40, d42", "abs.ftz.bf16 h40, h42", "testp.f32 p40, r42",
        "testp.normal.f32 r40, r42", "add.f32 d40, r42, r44", "add.f32 r40, d42, r44", "add.f64 d40, d42, r44", "add.f16 r40, h42, h44",
        "add.f16x2 h40, r42, r44", "add.f32 {r40, r41}, r42, r44", "add.f32 #1, r42, r44", "fma.rn.f32 r40, r42, r44, p46",
        "neg.f32 r40, L", "neg.f32 _, r42", "neg.f32 r2, r42", "abs.f32 r40, [r42]",
    };
    fixture_reset();
    for (size_t k = 0; k < COUNT(texts); k++)
        if (fixture_bind(texts[k])) fail_msg("accepted: %s", texts[k]);
}

static int use_base(void **state) { (void)state; fixture_use_table(0); return 0; }
static int use_wide(void **state) { (void)state; fixture_use_table(1); return 0; }

#define TESTS(X)                                                                                                       \
    X(f32_rounds_as_the_processor_does) X(f64_rounds_as_the_processor_does) X(defaults_round_to_nearest) X(masks_and_aliases) \
    X(halves_round_once) X(halves_by_hand) X(min_and_max_of_all_specials) X(other_widths_and_signs_by_hand)            \
    X(testp_sorts_into_classes) X(special_functions) X(illegal_forms_are_refused)
#define BASE(test) cmocka_unit_test_setup(test, use_base),
#define WIDE(test) {#test " (wide)", test, use_wide, NULL, NULL},

int main(void)
{
    const struct CMUnitTest base[] = {TESTS(BASE)};
    const struct CMUnitTest wide[] = {TESTS(WIDE)};
    int failed = cmocka_run_group_tests_name("swgpu float", base, NULL, NULL);
    if (fixture_tables() == 2) failed += cmocka_run_group_tests_name("swgpu float, wide", wide, NULL, NULL);
    return failed;
}
