/* src/swgpu/ops_mma.c and mma_layout.h. The oracle's layouts are written from the PTX manual's formulas, element by
 * element and shape by shape, not by the one rule of the code; products are summed in int64 or long double. */
#include "swgpu_fixture.h"

#include "../src/swgpu/mma_layout.h"
#include "reference.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { SLOT_D = 40, SLOT_A = 60, SLOT_B = 80, SLOT_C = 100 };

static uint32_t bits_of(float value) { uint32_t b; memcpy(&b, &value, sizeof b); return b; }
static float float_of(uint32_t bits) { float f; memcpy(&f, &bits, sizeof f); return f; }
static uint64_t bits64_of(double value) { uint64_t b; memcpy(&b, &value, sizeof b); return b; }
static double double_of(uint64_t bits) { double f; memcpy(&f, &bits, sizeof f); return f; }

/* ---- the manual's formulas: place of element i of a lane */

typedef struct place {
    int row, column;
} place;

static place place_a(int m, int k, int bits, int lane, int i)
{
    int group = lane >> 2, thread = lane % 4;
    place p = {group, thread};
    if (bits == 64 || bits == 32) {
        if (m == 8) return p;
        p.row = i % 2 == 0 ? group : group + 8;
        p.column = thread + i / 2 * 4;
    } else if (bits == 16 && k == 8) {
        p.row = i < 2 ? group : group + 8;
        p.column = thread * 2 + (i & 1);
    } else if (bits == 16) {
        p.row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
        p.column = thread * 2 + (i & 1) + (i >= 4 ? 8 : 0);
    } else if (bits == 8 && m == 8) {
        p.column = thread * 4 + i;
    } else if (bits == 8 && k == 16) {
        p.row = i < 4 ? group : group + 8;
        p.column = thread * 4 + (i & 3);
    } else if (bits == 8) {
        p.row = i < 4 || (i >= 8 && i < 12) ? group : group + 8;
        p.column = thread * 4 + (i & 3) + (i >= 8 ? 16 : 0);
    } else if (m == 8) {
        p.column = thread * 8 + i;
    } else if (k == 32) {
        p.row = i < 8 ? group : group + 8;
        p.column = thread * 8 + (i & 7);
    } else {
        p.row = i < 8 || (i >= 16 && i < 24) ? group : group + 8;
        p.column = thread * 8 + (i & 7) + (i >= 16 ? 32 : 0);
    }
    return p;
}

static place place_b(int bits, int lane, int i)
{
    int group = lane >> 2, thread = lane % 4;
    switch (bits) {
    case 64: case 32: return (place){thread + 4 * i, group};
    case 16: return (place){thread * 2 + (i & 1) + (i >= 2 ? 8 : 0), group};
    case 8: return (place){thread * 4 + (i & 3) + (i >= 4 ? 16 : 0), group};
    default: return (place){thread * 8 + (i & 7) + (i >= 8 ? 32 : 0), group};
    }
}

static place place_c(int lane, int i)
{
    return (place){(lane >> 2) + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)};
}

/* ---- what is tested: every shape and pair of types */

static const struct variant {
    const char *shape, *a, *b, *c;
    int m, k, bits;
} variants[] = {
    {"m16n8k8", "f16", "f16", "f32", 16, 8, 16},     {"m16n8k16", "f16", "f16", "f32", 16, 16, 16},  {"m16n8k8", "f16", "f16", "f16", 16, 8, 16},
    {"m16n8k16", "f16", "f16", "f16", 16, 16, 16},   {"m16n8k8", "bf16", "bf16", "f32", 16, 8, 16},  {"m16n8k16", "bf16", "bf16", "f32", 16, 16, 16},
    {"m16n8k4", "tf32", "tf32", "f32", 16, 4, 32},   {"m16n8k8", "tf32", "tf32", "f32", 16, 8, 32},  {"m16n8k32", "e4m3", "e4m3", "f32", 16, 32, 8},
    {"m16n8k32", "e4m3", "e5m2", "f32", 16, 32, 8},  {"m16n8k32", "e5m2", "e4m3", "f32", 16, 32, 8}, {"m16n8k32", "e5m2", "e5m2", "f32", 16, 32, 8},
    {"m16n8k32", "e4m3", "e5m2", "f16", 16, 32, 8},  {"m16n8k32", "e4m3", "e4m3", "f16", 16, 32, 8}, {"m16n8k32", "e5m2", "e4m3", "f16", 16, 32, 8},
    {"m16n8k32", "e5m2", "e5m2", "f16", 16, 32, 8},  {"m16n8k16", "e4m3", "e5m2", "f32", 16, 16, 8}, {"m16n8k16", "e5m2", "e5m2", "f16", 16, 16, 8},
    {"m8n8k16", "s8", "s8", "s32", 8, 16, 8},        {"m8n8k16", "u8", "s8", "s32", 8, 16, 8},       {"m16n8k16", "s8", "u8", "s32", 16, 16, 8},
    {"m16n8k16", "u8", "u8", "s32", 16, 16, 8},      {"m16n8k32", "s8", "s8", "s32", 16, 32, 8},     {"m16n8k32", "u8", "s8", "s32", 16, 32, 8},
    {"m16n8k32", "u8", "u8", "s32", 16, 32, 8},      {"m8n8k32", "s4", "u4", "s32", 8, 32, 4},       {"m16n8k32", "s4", "s4", "s32", 16, 32, 4},
    {"m16n8k64", "s4", "u4", "s32", 16, 64, 4},      {"m16n8k64", "u4", "s4", "s32", 16, 64, 4},     {"m8n8k4", "f64", "f64", "f64", 8, 4, 64},
    {"m16n8k4", "f64", "f64", "f64", 16, 4, 64},     {"m16n8k8", "f64", "f64", "f64", 16, 8, 64},    {"m16n8k16", "f64", "f64", "f64", 16, 16, 64},
};

static int is(const char *a, const char *b) { return !strcmp(a, b); }

/* The bits of a small number in a type. */
static uint64_t encode(const char *type, double value)
{
    if (is(type, "f64")) return bits64_of(value);
    if (is(type, "f32") || is(type, "tf32")) return bits_of((float)value);
    if (is(type, "f16")) return reference_encode(JG_F16, value);
    if (is(type, "bf16")) return reference_encode(JG_BF16, value);
    if (is(type, "e5m2")) return reference_encode(JG_F16, value) >> 8;
    if (is(type, "e4m3")) { /* by trying all */
        for (uint32_t b = 0; b < 256; b++) {
            int e = (int)(b >> 3 & 15);
            double x = e ? ldexp(8 + (b & 7), e - 10) : ldexp(b & 7, -9);
            if ((b & 127) != 127 && (b >> 7 ? -x : x) == value && !signbit(value) == !(b >> 7)) return b;
        }
        fail_msg("%g is no e4m3", value);
    }
    return (uint64_t)(int64_t)value;
}

static double decode(const char *type, uint64_t bits)
{
    if (is(type, "f64")) return double_of(bits);
    if (is(type, "f32")) return float_of((uint32_t)bits);
    if (is(type, "f16")) return reference_decode(JG_F16, (uint32_t)bits);
    return (int32_t)bits;
}

/* The registers of a lane's fragment, filled from or read into a matrix. */
static void put(uint32_t slot, int bits, int lane, int i, uint64_t value)
{
    if (bits == 64) {
        fixture_set64(slot + 2 * (uint32_t)i, (unsigned)lane, value);
        return;
    }
    uint32_t per = 32u / (uint32_t)bits, mask = bits == 32 ? ~0u : (1u << bits) - 1, shift = (uint32_t)i % per * (uint32_t)bits;
    uint32_t *word = slot32(&fixture.warp, slot + (uint32_t)i / per) + lane;
    *word = (*word & ~(mask << shift)) | ((uint32_t)value & mask) << shift;
}

static uint64_t take(uint32_t slot, int bits, int lane, int i)
{
    if (bits == 64) return fixture_get64(slot + 2 * (uint32_t)i, (unsigned)lane);
    uint32_t per = 32u / (uint32_t)bits, word = fixture_get32(slot + (uint32_t)i / per, (unsigned)lane);
    return bits == 32 ? word : word >> (uint32_t)i % per * (uint32_t)bits & ((1u << bits) - 1);
}

static int c_bits(const struct variant *v) { return is(v->c, "f64") ? 64 : is(v->c, "f16") ? 16 : 32; }

static void fill(const struct variant *v, double a[16][64], double b[64][8], double c[16][8])
{
    for (int lane = 0; lane < 32; lane++) {
        for (int i = 0; i < v->m * v->k / 32; i++) {
            place p = place_a(v->m, v->k, v->bits, lane, i);
            put(SLOT_A, v->bits, lane, i, encode(v->a, a[p.row][p.column]));
        }
        for (int i = 0; i < v->k * 8 / 32; i++) {
            place p = place_b(v->bits, lane, i);
            put(SLOT_B, v->bits, lane, i, encode(v->b, b[p.row][p.column]));
        }
        for (int i = 0; i < v->m / 4; i++) {
            place p = place_c(lane, i);
            put(SLOT_C, c_bits(v), lane, i, encode(v->c, c[p.row][p.column]));
        }
    }
}

static void group(char *text, size_t bytes, char reg, uint32_t slot, int count)
{
    size_t n = strlen(text);
    for (int k = 0; k < count; k++)
        n += (size_t)snprintf(text + n, bytes - n, "%s%c%u", k ? ", " : "{", reg, slot + (uint32_t)k * (reg == 'd' ? 2 : 1));
    snprintf(text + n, bytes - n, "}");
}

static void instruction(const struct variant *v, const char *satfinite, char *text, size_t bytes)
{
    char reg = v->bits == 64 ? 'd' : 'r';
    int per = v->bits == 64 ? 1 : 32 / v->bits, c = v->m / 4 / (c_bits(v) == 16 ? 2 : 1);
    snprintf(text, bytes, "mma.sync.aligned.%s.row.col%s.%s.%s.%s.%s ", v->shape, satfinite, v->c, v->a, v->b, v->c);
    group(text, bytes, reg, SLOT_D, c);
    strcat(text, ", ");
    group(text, bytes, reg, SLOT_A, v->m * v->k / 32 / per);
    strcat(text, ", ");
    group(text, bytes, reg, SLOT_B, v->k * 8 / 32 / per);
    strcat(text, ", ");
    group(text, bytes, reg, SLOT_C, c);
}

static void bind(const struct variant *v, const char *satfinite)
{
    char text[256];
    fixture_reset();
    instruction(v, satfinite, text, sizeof text);
    if (!fixture_bind(text)) fail_msg("refused: %s", text);
}

/* ---- layouts: one element of A and one of B are 1, so exactly one of D is */

static void unit_matrices_find_their_place(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT(variants); t++) {
        const struct variant *v = &variants[t];
        bind(v, "");
        for (int trial = 0; trial < v->m * v->k; trial++) {
            static double a[16][64], b[64][8], c[16][8];
            int row = trial % v->m, k = trial / v->m, column = (trial * 5 + trial / 8) % 8;
            a[row][k] = b[k][column] = 1;
            fill(v, a, b, c);
            a[row][k] = b[k][column] = 0;
            fixture_again(FULL_MASK);
            for (int lane = 0; lane < 32; lane++)
                for (int i = 0; i < v->m / 4; i++) {
                    place p = place_c(lane, i);
                    double d = decode(v->c, take(SLOT_D, c_bits(v), lane, i));
                    if (d != (p.row == row && p.column == column))
                        fail_msg("%s %s: A(%d, %d) B(%d, %d) gives D(%d, %d) = %g", v->shape, v->a, row, k, k, column, p.row, p.column, d);
                }
        }
    }
}

/* ---- small integers: exact in every type, C included */

static void integer_operands_are_exact(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (size_t t = 0; t < COUNT(variants); t++) {
        const struct variant *v = &variants[t];
        for (unsigned round = 0; round < 6; round++) {
            static double a[16][64], b[64][8], c[16][8];
            int a_unsigned = v->a[0] == 'u', b_unsigned = v->b[0] == 'u';
            for (int k = 0; k < v->k; k++) {
                for (int row = 0; row < 16; row++) a[row][k] = round ? (double)(reference_random(&seed) % 7) - (a_unsigned ? 0 : 3) : 1;
                for (int n = 0; n < 8; n++) b[k][n] = round ? (double)(reference_random(&seed) % 7) - (b_unsigned ? 0 : 3) : 1;
            }
            for (int e = 0; e < 128; e++) c[e / 8][e % 8] = (double)(reference_random(&seed) % 200) - 100;
            bind(v, "");
            fill(v, a, b, c);
            fixture_again(FULL_MASK);
            for (int lane = 0; lane < 32; lane++)
                for (int i = 0; i < v->m / 4; i++) {
                    place p = place_c(lane, i);
                    int64_t d = (int64_t)c[p.row][p.column];
                    for (int k = 0; k < v->k; k++) d += (int64_t)a[p.row][k] * (int64_t)b[k][p.column];
                    if (decode(v->c, take(SLOT_D, c_bits(v), lane, i)) != (double)d) fail_msg("%s %s %s: not %lld", v->shape, v->a, v->b, (long long)d);
                }
        }
    }
}

/* All patterns of the integer types, with C at the ends of its range: modulo 2^32, or clamped. */
static void integers_wrap_or_saturate(void **state)
{
    (void)state;
    uint64_t seed = 6;
    for (size_t t = 0; t < COUNT(variants); t++) {
        const struct variant *v = &variants[t];
        if (!is(v->c, "s32")) continue;
        for (unsigned round = 0; round < 12; round++) {
            static double a[16][64], b[64][8], c[16][8];
            int bits = v->bits, a_low = v->a[0] == 'u' ? 0 : -(1 << (bits - 1)), b_low = v->b[0] == 'u' ? 0 : -(1 << (bits - 1));
            for (int k = 0; k < v->k; k++) {
                for (int row = 0; row < 16; row++) a[row][k] = a_low + (double)(reference_random(&seed) >> 20 & ((1u << bits) - 1));
                for (int n = 0; n < 8; n++) b[k][n] = b_low + (double)(reference_random(&seed) >> 20 & ((1u << bits) - 1));
            }
            const double ends[] = {2147483647, -2147483648.0, 2147483000, -2147483000};
            for (int e = 0; e < 128; e++) c[e / 8][e % 8] = ends[reference_random(&seed) % 4];
            bind(v, round % 2 ? ".satfinite" : "");
            fill(v, a, b, c);
            fixture_again(FULL_MASK);
            for (int lane = 0; lane < 32; lane++)
                for (int i = 0; i < v->m / 4; i++) {
                    place p = place_c(lane, i);
                    int64_t d = (int64_t)c[p.row][p.column];
                    for (int k = 0; k < v->k; k++) d += (int64_t)a[p.row][k] * (int64_t)b[k][p.column];
                    if (round % 2) d = d > INT32_MAX ? INT32_MAX : d < INT32_MIN ? INT32_MIN : d;
                    assert_int_equal((uint32_t)take(SLOT_D, 32, lane, i), (uint32_t)d);
                }
        }
    }
}

/* ---- fractions: within half a unit of the accumulator's last place of the exact sum, and what double loses on the way */

static double some_fraction(uint64_t *seed, const char *type)
{
    uint64_t x = reference_random(seed);
    int places = is(type, "e5m2") ? 2 : is(type, "e4m3") ? 3 : is(type, "bf16") ? 7 : 10, spread = is(type, "e4m3") ? 8 : 12;
    double value = ldexp((double)(1 << places | (int)(x & ((1u << places) - 1))), (int)(x >> 20 & 1023) % spread - 6 - places);
    return x >> 60 & 1 ? -value : value;
}

static void fractions_stay_within_the_bound(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (size_t t = 0; t < COUNT(variants); t++) {
        const struct variant *v = &variants[t];
        if (is(v->c, "s32")) continue;
        for (unsigned round = 0; round < 8; round++) {
            static double a[16][64], b[64][8], c[16][8];
            for (int k = 0; k < v->k; k++) {
                for (int row = 0; row < 16; row++) a[row][k] = some_fraction(&seed, v->a);
                for (int n = 0; n < 8; n++) b[k][n] = some_fraction(&seed, v->b);
            }
            for (int e = 0; e < 128; e++) c[e / 8][e % 8] = some_fraction(&seed, "f16");
            bind(v, "");
            fill(v, a, b, c);
            fixture_again(FULL_MASK);
            for (int lane = 0; lane < 32; lane++)
                for (int i = 0; i < v->m / 4; i++) {
                    place p = place_c(lane, i);
                    long double sum = c[p.row][p.column], size = fabsl(sum);
                    for (int k = 0; k < v->k; k++) {
                        long double product = (long double)a[p.row][k] * b[k][p.column];
                        sum += product, size += fabsl(product);
                    }
                    double d = decode(v->c, take(SLOT_D, c_bits(v), lane, i));
                    if (is(v->c, "f16")) {
                        /* everything here is a multiple of 2^-36 below 2^17, so double and long double are exact */
                        assert_true(d == reference_decode(JG_F16, reference_encode(JG_F16, (double)sum)));
                    } else if (is(v->c, "f32")) {
                        assert_true(d == (double)(float)sum);
                    } else {
                        assert_true(fabsl(d - sum) <= 0x1p-53L * v->k * size);
                    }
                }
        }
    }
}

/* ---- special values */

static void special_values_by_hand(void **state)
{
    (void)state;
    const struct {
        size_t variant;
        uint64_t a, b, c, expected; /* D(0, 0) from A(0, 0) B(0, 0) + C(0, 0) */
    } rows[] = {
        {0, 0x7c00, 0x0000, 0, 0x7fffffff},      {0, 0x7c00, 0x3c00, 0xff800000, 0x7fffffff}, {0, 0x7c00, 0xbc00, 0, 0xff800000},
        {0, 0x7e01, 0x3c00, 0, 0x7fffffff},      {0, 0x3c00, 0x3c00, 0x7f800001, 0x7fffffff}, {0, 0x0001, 0x0001, 0, 0x27800000},
        {0, 0x8000, 0x3c00, 0x80000000, 0},      {0, 0x0001, 0x0001, 0x3f800000, 0x3f800000}, {0, 0x3c00, 0x0001, 0x3f800000, 0x3f800000},
        {0, 0x3c00, 0x0001, 0x3f800001, 0x3f800002}, /* a tie goes to even */
        {2, 0x7bff, 0x4000, 0, 0x7c00},          {2, 0x7c00, 0x0000, 0, 0x7fff},              {2, 0x3c00, 0x1000, 0x3c00, 0x3c00},
        {2, 0x3c01, 0x1000, 0x3c00, 0x3c01},     {2, 0x0001, 0x0001, 0x0001, 0x0001},         {2, 0x3bff, 0x7bff, 0x7bff, 0x7c00},
        {4, 0x7f7f, 0x7f7f, 0, 0x7f800000},      {4, 0x7f7f, 0xff7f, 0x7f7fffff, 0xff800000}, {4, 0x0001, 0x0001, 1, 1},
        {4, 0x7f7f, 0x0001, 0, 0x3cff0000},
        {6, 0x3f801fff, 0x3f800000, 0, 0x3f800000}, /* the low bits of tf32 do not count */
        {8, 0x7f, 0x38, 0, 0x7fffffff},          {8, 0x7e, 0xfe, 0, 0xc8440000},              {8, 0x01, 0x01, 0, 0x36800000},
        {11, 0x7c, 0xbc, 0, 0xff800000},         {11, 0x7b, 0x7b, 0, 0x4f440000},             {12, 0x7e, 0x7b, 0, 0x7c00},
        {29, 0x3ff0000000000001, 0x3ff0000000000001, 0xbff0000000000002, 0x3970000000000000}, /* fused */
        {29, 0x7ff0000000000000, 0, 0, 0x7ff8000000000000},
    };
    for (size_t r = 0; r < COUNT(rows); r++) {
        const struct variant *v = &variants[rows[r].variant];
        bind(v, "");
        put(SLOT_A, v->bits, 0, 0, rows[r].a);
        put(SLOT_B, v->bits, 0, 0, rows[r].b);
        put(SLOT_C, c_bits(v), 0, 0, rows[r].c);
        fixture_again(FULL_MASK);
        uint64_t got = take(SLOT_D, c_bits(v), 0, 0);
        if (got != rows[r].expected) fail_msg("row %zu, %s %s: 0x%llx", r, v->shape, v->a, (unsigned long long)got);
    }
}

/* D may be C or A; lanes that are gone keep what they had; immediates are operands too. */
static void aliases_masks_and_immediates(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 3; way++) {
        fixture_reset();
        for (unsigned lane = 0; lane < 32; lane++) {
            for (uint32_t r = 0; r < 4; r++) fixture_set32(SLOT_A + r, lane, 0x3c003c00), fixture_set32(SLOT_C + r, lane, 0x3f800000);
            for (uint32_t r = 0; r < 2; r++) fixture_set32(SLOT_B + r, lane, 0x3c003c00);
        }
        const char *texts[] = {
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r100, r101, r102, r103}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r60, r61, r62, r63}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r40, r41, r42, r43}, {r60, r61, r62, r63}, {r80, r81}, {#n0, #n0x3f800000, #n0, #n0}",
        };
        const uint32_t slots[] = {100, 60, 40}, before[] = {0x3f800000, 0x3c003c00, 0};
        fixture_run(texts[way], 0x7ffffffe);
        for (unsigned lane = 0; lane < 32; lane++)
            for (uint32_t r = 0; r < 4; r++) {
                float expected = way == 2 && r != 1 ? 16 : 17;
                assert_int_equal(fixture_get32(slots[way] + r, lane), lane == 0 || lane == 31 ? before[way] : bits_of(expected));
            }
    }
}

static void illegal_forms_are_refused(void **state)
{
    (void)state;
    const char *texts[] = {
        "mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32 {r40, r41, r42, r43}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {r40, r41, r42, r43}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.aligned.m16n8k16.f32.f16.f16.f32 {r40, r41, r42, r43}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r40, r41, r42, r43}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.m16n8k16.row.col.f32.f16.f16.f32 {r40, r41, r42, r43}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.aligned.row.col.f32.f16.f16.f32 {r40, r41, r42, r43}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {r40, r41, r42, r43}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {r40, r41, r42, r43}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {r40, r41, r42, r43}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101}",
        "mma.sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16 {r40, r41}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101}",
        "mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32 {r40, r41, r42, r43}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.aligned.m16n8k32.row.col.sat.s32.s8.s8.s32 {r40, r41, r42, r43}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s4.s32 {r40, r41, r42, r43}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r40, r41, r42}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r40, r41, r42, r43}, {r60, r61}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r40, r41, r42, r43}, {r60, r61, r62, r63}, r80, {r100, r101, r102, r103}",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r40, r41, r42, r43}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101}",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r40, r41, r42, d44}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r40, r41, r42, r43}, {r60, r61, h62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r40, r41, r42, _}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r40, r41, r42, r2}, {r60, r61, r62, r63}, {r80, r81}, {r100, r101, r102, r103}",
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {r40, r41}, d60, d80, {d100, d102}",
        "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {r40, r41, r42, r43}, {r60, r61}, {r80, r81}, {r100, r101, r102, r103}",
    };
    fixture_reset();
    for (size_t k = 0; k < COUNT(texts); k++)
        if (fixture_bind(texts[k])) fail_msg("accepted: %s", texts[k]);
}

static int use_base(void **state) { (void)state; fixture_use_table(0); return 0; }
static int use_wide(void **state) { (void)state; fixture_use_table(1); return 0; }

#define TESTS(X)                                                                                                       \
    X(unit_matrices_find_their_place) X(integer_operands_are_exact) X(integers_wrap_or_saturate)                       \
    X(fractions_stay_within_the_bound) X(special_values_by_hand) X(aliases_masks_and_immediates) X(illegal_forms_are_refused)
#define BASE(test) cmocka_unit_test_setup(test, use_base),
#define WIDE(test) {#test " (wide)", test, use_wide, NULL, NULL},

int main(void)
{
    const struct CMUnitTest base[] = {TESTS(BASE)};
    const struct CMUnitTest wide[] = {TESTS(WIDE)};
    int failed = cmocka_run_group_tests_name("swgpu mma", base, NULL, NULL);
    if (fixture_tables() == 2) failed += cmocka_run_group_tests_name("swgpu mma, wide", wide, NULL, NULL);
    return failed;
}
