/* f16 (IEEE binary16) and bf16 (the upper half of a float32) on the host, by their bits. Widening is exact. Narrowing rounds once, from
 * double, to nearest even: denormals are kept, what is too large is infinity, NaN a quiet NaN. Thread-safe. */
#ifndef EXAMPLES_FLOAT16_H
#define EXAMPLES_FLOAT16_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* A float of so many bits of fraction, whose least normal exponent is `least`, from its bits. */
static inline double float16_widen(uint16_t bits, int fraction_bits, int least)
{
    const int exponent = (bits & 0x7fff) >> fraction_bits, top = 0x7fff >> fraction_bits;
    const uint64_t sign = (uint64_t)(bits >> 15) << 63, fraction = bits & ((1u << fraction_bits) - 1);
    const uint64_t wide = sign | (uint64_t)(exponent == top ? 2047 : exponent + 1022 + least) << 52 | fraction << (52 - fraction_bits);
    double value;
    memcpy(&value, &wide, sizeof value);
    return exponent ? value : ldexp(sign ? -(double)fraction : (double)fraction, least - fraction_bits);
}

/* The reverse. Counted in units in the last place a carry goes by itself into the exponent, up to infinity. */
static inline uint16_t float16_narrow(double value, int fraction_bits, int least)
{
    const int sign = signbit(value) ? 0x8000 : 0, infinity = (0x7fff >> fraction_bits) << fraction_bits;
    const double magnitude = fabs(value);
    if (isnan(value)) return (uint16_t)(sign | infinity | 1 << (fraction_bits - 1));
    if (magnitude >= ldexp(1, 2 - least)) return (uint16_t)(sign | infinity);
    const int exponent = magnitude > 0 && ilogb(magnitude) > least ? ilogb(magnitude) : least;
    const int units = (int)rint(ldexp(magnitude, fraction_bits - exponent)) + ((exponent - least) << fraction_bits);
    return (uint16_t)(sign | units);
}

static inline double f16_value(uint16_t bits)
{
    return float16_widen(bits, 10, -14);
}

static inline double bf16_value(uint16_t bits)
{
    return float16_widen(bits, 7, -126);
}

static inline uint16_t f16_bits(double value)
{
    return float16_narrow(value, 10, -14);
}

static inline uint16_t bf16_bits(double value)
{
    return float16_narrow(value, 7, -126);
}

/* Half a unit in the last place of an f16 as large as this. */
static inline double f16_half_unit(double value)
{
    int exponent;
    frexp(fabs(value), &exponent);
    return ldexp(1, (exponent - 11 < -24 ? -24 : exponent - 11) - 1);
}

#endif
