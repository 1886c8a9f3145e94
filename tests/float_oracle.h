/* Oracle of the software GPU's floating-point formats: by arithmetic on __float128, which is exact for every case here. */
#ifndef JG_TESTS_FLOAT_ORACLE_H
#define JG_TESTS_FLOAT_ORACLE_H

#include "swgpu_fixture.h"

#include "../src/swgpu/formats.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const struct oracle_format {
    const char *name;
    ptx_type type;
    int exponent_bits, fraction_bits, bits, low;
} oracle_formats[] = {
    {"f16", TYPE_F16, 5, 10, 16, 0}, {"bf16", TYPE_BF16, 8, 7, 16, 0}, {"e4m3", TYPE_E4M3, 4, 3, 8, 0},
    {"e5m2", TYPE_E5M2, 5, 2, 8, 0}, {"tf32", TYPE_TF32, 8, 10, 32, 13}, {"f32", TYPE_F32, 8, 23, 32, 0},
    {"f64", TYPE_F64, 11, 52, 64, 0},
};

static inline uint32_t bits_of(float value) { uint32_t b; memcpy(&b, &value, sizeof b); return b; }
static inline float float_of(uint32_t bits) { float f; memcpy(&f, &bits, sizeof f); return f; }
static inline uint64_t bits64_of(double value) { uint64_t b; memcpy(&b, &value, sizeof b); return b; }
static inline double double_of(uint64_t bits) { double f; memcpy(&f, &bits, sizeof f); return f; }

/* 2^e, by multiplication. */
static inline __float128 power(int e)
{
    __float128 p = 1, factor = e < 0 ? 0.5 : 2;
    for (int k = e < 0 ? -e : e; k; k >>= 1, factor *= factor)
        if (k & 1) p *= factor;
    return p;
}

/* The value of a pattern; NaN and infinity as doubles have them. */
static inline double oracle_decode(const struct oracle_format *f, uint64_t bits)
{
    uint64_t fraction = bits >> f->low & ((1ull << f->fraction_bits) - 1);
    int top = (1 << f->exponent_bits) - 1, exponent = (int)(bits >> (f->low + f->fraction_bits)) & top, bias = top / 2;
    double sign = bits >> (f->bits - 1) & 1 ? -1 : 1;
    if (f->type == TYPE_E4M3 && exponent == top && fraction == 7) return NAN;
    if (f->type != TYPE_E4M3 && exponent == top) return fraction ? NAN : sign * INFINITY;
    if (!exponent) return sign * ldexp((double)fraction, 1 - bias - f->fraction_bits);
    return sign * ldexp((double)(fraction | 1ull << f->fraction_bits), exponent - bias - f->fraction_bits);
}

/* Rounds a finite number to a format: its magnitude is counted in units of the last place. */
static inline uint64_t oracle_encode(const struct oracle_format *f, __float128 value, int rounding)
{
    int top = (1 << f->exponent_bits) - 1, bias = top / 2, negative = value < 0, e = 1 - bias;
    __float128 x = negative ? -value : value;
    uint64_t sign = (uint64_t)negative << (f->bits - 1);
    for (int step = 1 << 10; step; step >>= 1) /* the exponent, by halving steps */
        if (x >= power(e + step)) e += step;
    __float128 units = x * power(f->fraction_bits - e);
    uint64_t kept = (uint64_t)units;
    __float128 rest = units - (__float128)kept;
    int up = rounding == ROUND_RN    ? rest > 0.5Q || (rest == 0.5Q && (kept & 1))
             : rounding == ROUND_RNA ? rest >= 0.5Q
             : rounding == ROUND_RM  ? rest > 0 && negative
             : rounding == ROUND_RP  ? rest > 0 && !negative
                                     : 0;
    kept += (uint64_t)up;
    if (kept >> (f->fraction_bits + 1)) kept >>= 1, e++;
    uint64_t largest = f->type == TYPE_E4M3 ? 0x7e : (((uint64_t)top << f->fraction_bits) - 1);
    uint64_t pattern = kept >> f->fraction_bits ? (uint64_t)(e + bias - 1) * (1ull << f->fraction_bits) + kept : kept;
    if (e > bias + 1 || pattern > largest) {
        int toward_zero = rounding == ROUND_RZ || (rounding == ROUND_RM && !negative) || (rounding == ROUND_RP && negative);
        if (toward_zero) pattern = largest;
        else if (f->type == TYPE_E4M3) return 0x7f;
        else pattern = largest + 1;
    }
    return sign | pattern << f->low;
}

#endif
