/* What the bits of every element type mean, and how a value is rounded to one: by arithmetic on doubles, from the formats' sizes
 * alone, without a line of the library. */
#ifndef JG_TESTS_TYPES_ORACLE_H
#define JG_TESTS_TYPES_ORACLE_H

#include "jitgemm.h"

#include <math.h>
#include <string.h>

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* By jg_type. low, high: the range of an integer; else the bits of exponent and fraction, the largest finite number's bits, and
 * whether what is larger becomes that instead of infinity. */
typedef struct oracle_type {
    const char *name;
    int bits;
    double low, high;
    int exponent, fraction;
    uint32_t largest;
    int saturates;
} oracle_type;

static const oracle_type oracle_types[] = {
    [JG_F32] = {"f32", 32, 0, 0, 8, 23, 0x7f7fffff, 0}, [JG_F16] = {"f16", 16, 0, 0, 5, 10, 0x7bff, 0},
    [JG_BF16] = {"bf16", 16, 0, 0, 8, 7, 0x7f7f, 0},    [JG_S8] = {"s8", 8, -128, 127, 0, 0, 0, 0},
    [JG_U8] = {"u8", 8, 0, 255, 0, 0, 0, 0},            [JG_S4] = {"s4", 4, -8, 7, 0, 0, 0, 0},
    [JG_S32] = {"s32", 32, -2147483648.0, 2147483647.0, 0, 0, 0, 0},
    [JG_E4M3] = {"e4m3", 8, 0, 0, 4, 3, 0x7e, 1},       [JG_E5M2] = {"e5m2", 8, 0, 0, 5, 2, 0x7b, 1},
};

static inline int oracle_is_float(jg_type type)
{
    return oracle_types[type].exponent != 0;
}

static inline double oracle_value(jg_type type, uint32_t bits)
{
    const oracle_type *t = &oracle_types[type];
    if (!t->exponent) return t->low < 0 && bits >> (t->bits - 1) & 1 ? (double)bits - ldexp(1, t->bits) : (double)bits;
    const uint32_t size = bits & ((1u << (t->bits - 1)) - 1), fraction = size & ((1u << t->fraction) - 1);
    const int field = (int)(size >> t->fraction), first = 2 - (1 << (t->exponent - 1)) - t->fraction; /* the last place's */
    double value = field ? ldexp(fraction + ldexp(1, t->fraction), first + field - 1) : ldexp(fraction, first);
    if (size > t->largest) value = type != JG_E4M3 && size == t->largest + 1 ? (double)INFINITY : (double)NAN;
    return bits >> (t->bits - 1) & 1 ? -value : value;
}

/* The smallest normal number. */
static inline double oracle_smallest(jg_type type)
{
    return oracle_is_float(type) ? ldexp(1, 2 - (1 << (oracle_types[type].exponent - 1))) : 0;
}

/* Nearest, ties to even. NaN is 0 as an integer, else has all bits below the sign set. */
static inline uint32_t oracle_round(jg_type type, double value)
{
    const oracle_type *t = &oracle_types[type];
    const uint32_t sign = signbit(value) ? 1u << (t->bits - 1) : 0, mask = t->bits == 32 ? 0xffffffffu : (1u << t->bits) - 1;
    if (!t->exponent) {
        if (isnan(value)) return 0;
        const double whole = nearbyint(value), inside = whole < t->low ? t->low : whole > t->high ? t->high : whole;
        return (uint32_t)(int64_t)inside & mask;
    }
    if (isnan(value)) return sign | ((1u << (t->bits - 1)) - 1);
    const double largest = oracle_value(type, t->largest), size = fabs(value), smallest = oracle_smallest(type);
    int exponent;
    frexp(size < smallest || isinf(size) ? smallest : size, &exponent);
    const double place = ldexp(1, exponent - 1 - t->fraction), rounded = isinf(size) ? size : nearbyint(size / place) * place;
    if (rounded > largest) return sign | (t->largest + !t->saturates);
    frexp(rounded, &exponent);
    if (rounded < smallest) return sign | (uint32_t)(rounded / place);
    const uint32_t field = (uint32_t)(exponent - 1 + (1 << (t->exponent - 1)) - 1);
    return sign | (field << t->fraction) | (uint32_t)((ldexp(rounded, 1 - exponent) - 1) * ldexp(1, t->fraction));
}

/* An element of an array; of packed s4 the low half of a byte is the element with the even index. */
static inline uint32_t oracle_get(jg_type type, const void *data, int64_t at)
{
    const unsigned char *bytes = data;
    if (type == JG_S4) return bytes[at / 2] >> (at % 2 * 4) & 15;
    uint32_t bits = 0;
    memcpy(&bits, bytes + at * (oracle_types[type].bits / 8), (size_t)oracle_types[type].bits / 8);
    return bits;
}

static inline void oracle_put(jg_type type, void *data, int64_t at, uint32_t bits)
{
    unsigned char *bytes = data;
    if (type == JG_S4) {
        const int shift = (int)(at % 2 * 4);
        bytes[at / 2] = (unsigned char)((bytes[at / 2] & ~(15 << shift)) | bits << shift);
    } else {
        memcpy(bytes + at * (oracle_types[type].bits / 8), &bits, (size_t)oracle_types[type].bits / 8);
    }
}

#endif
