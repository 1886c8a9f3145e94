/* Conversions between float32 and the 16-bit float types, done on the bits with integers: the result depends on
 * neither the rounding mode nor the flush-to-zero setting that the caller's thread happens to have. */
#include "half.h"

#include <string.h>

#define F32_SIGN 0x80000000u
#define F32_INFINITY 0x7f800000u
#define F32_QUIET 0x00400000u
#define F32_HIDDEN_BIT 0x00800000u
#define F32_FRACTION 0x007fffffu

#define F16_INFINITY 0x7c00u
#define F16_QUIET 0x0200u

/* Bits that f16 has fewer than f32 in its fraction, and the distance of the exponent biases, in place. */
#define F16_SHIFT 13
#define F16_REBIAS ((127u - 15u) << 23)
#define F16_FIRST_OVERFLOW 0x47800000u /* 2^16; what lies between the largest f16 and this carries into infinity */
#define F16_FIRST_NORMAL 0x38800000u   /* 2^-14 */
#define F16_FIRST_NONZERO 0x33000000u  /* 2^-25: half the smallest denormal, the tie that goes to zero */

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

/* value / 2^shift, rounded to nearest, ties to even. */
static uint32_t round_shift(uint32_t value, int shift)
{
    uint32_t odd = (value >> shift) & 1;
    return (value + (1u << (shift - 1)) - 1 + odd) >> shift;
}

float half_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t magnitude = bits & 0x7fffu;
    if (magnitude > F16_INFINITY) return float_of(sign | F32_INFINITY | F32_QUIET | magnitude << F16_SHIFT);
    if (magnitude == F16_INFINITY) return float_of(sign | F32_INFINITY);
    if (magnitude >= 0x0400u) return float_of(sign | ((magnitude << F16_SHIFT) + F16_REBIAS));
    /* Zero or a denormal: a count of 2^-24, which float32 holds as a normal number. */
    return float_of(sign | bits_of((float)magnitude * 0x1p-24f));
}

uint16_t half_f32_to_f16(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & ~F32_SIGN;
    uint32_t result;
    if (magnitude > F32_INFINITY) {
        result = F16_INFINITY | F16_QUIET | (magnitude & F32_FRACTION) >> F16_SHIFT;
    } else if (magnitude >= F16_FIRST_OVERFLOW) {
        result = F16_INFINITY;
    } else if (magnitude >= F16_FIRST_NORMAL) {
        /* A carry out of the fraction raises the exponent, up to infinity: just what rounding asks for. */
        result = round_shift(magnitude - F16_REBIAS, F16_SHIFT);
    } else if (magnitude > F16_FIRST_NONZERO) {
        int exponent = (int)(magnitude >> 23);
        result = round_shift((magnitude & F32_FRACTION) | F32_HIDDEN_BIT, 126 - exponent);
    } else {
        result = 0;
    }
    return (uint16_t)(sign | result);
}

float half_bf16_to_f32(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    if ((wide & ~F32_SIGN) > F32_INFINITY) wide |= F32_QUIET;
    return float_of(wide);
}

uint16_t half_f32_to_bf16(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & ~F32_SIGN) > F32_INFINITY) return (uint16_t)((bits | F32_QUIET) >> 16);
    return (uint16_t)round_shift(bits, 16);
}
