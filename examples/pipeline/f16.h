/* f16 (IEEE binary16) by its bits, to nearest even, denormals too. Thread-safe. */
#ifndef PIPELINE_F16_H
#define PIPELINE_F16_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double f16_value(uint16_t half)
{
    const uint64_t sign = (uint64_t)(half >> 15) << 63, exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
    const uint64_t bits = sign | (exponent == 31 ? (uint64_t)2047 : exponent + 1023 - 15) << 52 | fraction << 42;
    double value;
    memcpy(&value, &bits, sizeof value);
    return exponent ? value : (sign ? -0x1p-24 : 0x1p-24) * (double)fraction;
}

/* Values are finite and below 65504 in magnitude. */
static inline uint16_t f16_bits(double value)
{
    int exponent;
    const double magnitude = fabs(value);
    const unsigned sign = signbit(value) ? 0x8000u : 0u;
    if (magnitude == 0) return (uint16_t)sign;
    frexp(magnitude, &exponent); /* magnitude < 2^exponent */
    const int unit = exponent - 11 < -24 ? -24 : exponent - 11;
    const unsigned count = (unsigned)rint(ldexp(magnitude, -unit)); /* of units in the last place: up to 2048 */
    return (uint16_t)(sign | (((unsigned)(unit + 24) << 10) + count));
}

/* Half a unit in the last place of a number as large as this. */
static inline double f16_half_unit(double value)
{
    int exponent;
    frexp(fabs(value), &exponent);
    return ldexp(1, (exponent - 11 < -24 ? -24 : exponent - 11) - 1);
}

#endif
