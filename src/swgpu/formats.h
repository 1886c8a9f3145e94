/* Floating-point formats: exact numbers between them, and arithmetic on those, rounded once.
 *
 * Two ways lead through here. A `number` holds any value exactly (or with a sticky last bit far below any rounding), so
 * that every operation in every format and rounding is decode, compute, encode: slow (tens of nanoseconds) and right.
 * The inline functions at the end do the common conversions without branches, so that loops over lanes vectorise.
 * Nothing here depends on the floating-point environment but those inline functions, which need round to nearest. */
#ifndef SWGPU_FORMATS_H
#define SWGPU_FORMATS_H

#include "ptx.h"

#include <stdint.h>
#include <string.h>

typedef unsigned __int128 format_u128;

typedef struct format {
    uint8_t bits, exponent_bits, fraction_bits;
    uint8_t low_bits;      /* always 0, below the fraction: tf32 fills the upper part of 32 bits */
    uint8_t infinities;    /* e4m3 has none */
    uint32_t nan_high;     /* the one NaN that operations give: its upper 32 bits if bits is 64, else the whole */
    uint64_t largest;      /* finite, without low_bits */
} format;

/* The format of a type (of one half of a packed type), or null if it is no floating-point type. */
const format *format_of(ptx_type type);
uint64_t format_nan(const format *f);

typedef enum number_kind { NUMBER_FINITE, NUMBER_INFINITE, NUMBER_NAN } number_kind;

/* (-1)^negative * significand * 2^exponent. */
typedef struct number {
    format_u128 significand;
    int32_t exponent;
    uint8_t kind;
    uint8_t negative;
} number;

/* rounding: ROUND_RN, _RZ, _RM, _RP, _RNA (ties away from 0). saturate: what would overflow, and infinity, becomes the
 * largest finite value. */
number format_decode(const format *f, uint64_t bits);
uint64_t format_encode(const format *f, number n, int rounding, int saturate);

/* A denormal becomes zero of its sign. */
uint64_t format_flush(const format *f, uint64_t bits);

/* Whether a number that is not 0 is denormal: less than the smallest normal one after it was rounded to as many bits, as
 * if the exponent had no limit. That is what .ftz makes zero of; what only rounds to the smallest normal number because
 * denormals have fewer bits is among it. */
int number_is_tiny(const format *f, number n, int rounding);

/* Operands are straight from format_decode, but number_add also takes a product. The sum of opposite numbers is +0, or
 * -0 if rounding is ROUND_RM. */
number number_add(number a, number b, int rounding);
number number_multiply(number a, number b);
number number_divide(number a, number b);
number number_sqrt(number a);
number number_from_int(uint64_t magnitude, int negative);

/* To an integral value; ROUND_RN etc. or ROUND_RNI etc. */
number number_round(number n, int rounding);

/* A number that number_round made, as an integer of so many bits, clamped to its range; `bits` may be 8 to 64. NaN gives
 * 0. */
uint64_t number_to_int(number n, unsigned bits, int is_signed);

/* ---- patterns */

static inline float format_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t format_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double format_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t format_bits64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#define FORMAT_NAN32 0x7fffffffu
#define FORMAT_NAN64 0x7ff8000000000000ull

static inline uint32_t format_canonical32(float value)
{
    return value != value ? FORMAT_NAN32 : format_bits(value);
}

static inline uint64_t format_canonical64(double value)
{
    return value != value ? FORMAT_NAN64 : format_bits64(value);
}

/* ---- conversions that vectorise; patterns in the low bits, NaNs become canonical */

/* Both sides are evaluated: gcc would else move a float operation into a branch, and not vectorise that. */
static inline uint32_t format_select(int which, uint32_t yes, uint32_t no)
{
    uint32_t mask = 0u - (uint32_t)which;
    return (yes & mask) | (no & ~mask);
}

static inline uint32_t format_f16_to_f32(uint32_t half)
{
    uint32_t magnitude = (half & 0x7fff) << 13;
    /* A denormal is its fraction in units of 2^-24: put under a 1 of that scale, which is then taken away. */
    const uint32_t denormal_one = 113u << 23;
    uint32_t denormal = format_bits(format_float(magnitude + denormal_one) - format_float(denormal_one));
    uint32_t normal = magnitude + (112u << 23);
    uint32_t bits = format_select(magnitude < 1u << 23, denormal, normal);
    bits = format_select(magnitude >= 31u << 23, magnitude + (224u << 23), bits);
    bits |= (half & 0x8000) << 16;
    return format_select(magnitude > 31u << 23, FORMAT_NAN32, bits);
}

/* To nearest even. */
static inline uint32_t format_f32_to_f16(uint32_t bits)
{
    uint32_t magnitude = bits & 0x7fffffff;
    /* Beside 0.5 a float's last place is 2^-24, an f16 denormal's unit: the addition rounds. */
    const uint32_t half_one = 126u << 23;
    uint32_t denormal = format_bits(format_float(magnitude) + 0.5f) - half_one;
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t half = format_select(magnitude < 113u << 23, denormal, normal);
    half = format_select(magnitude >= 0x477ff000u, 0x7c00, half); /* 65520 and more */
    half |= bits >> 16 & 0x8000;
    return format_select(magnitude > 0x7f800000u, 0x7fff, half);
}

static inline uint32_t format_bf16_to_f32(uint32_t half)
{
    uint32_t bits = half << 16;
    return (bits & 0x7fffffff) > 0x7f800000u ? FORMAT_NAN32 : bits;
}

/* To nearest even. */
static inline uint32_t format_f32_to_bf16(uint32_t bits)
{
    uint32_t half = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (bits & 0x7fffffff) > 0x7f800000u ? 0x7fff : half;
}

/* Exact: e5m2 is the upper byte of an f16; an e4m3's bits one place up are an f16 of 2^-8 times the value. */
static inline uint32_t format_e5m2_to_f32(uint32_t byte)
{
    return format_f16_to_f32((byte & 0xff) << 8);
}

static inline uint32_t format_e4m3_to_f32(uint32_t byte)
{
    uint32_t scaled = format_f16_to_f32((byte & 0x80) << 8 | (byte & 0x7f) << 7);
    uint32_t bits = format_bits(format_float(scaled) * 256.0f);
    return format_select((byte & 0x7f) == 0x7f, FORMAT_NAN32, bits);
}

#endif
