/* Numbers of every element type by plain C: what a part of a fake product is read, rounded and written as. It shares no code with
 * the library. A part of fake_cuda.c. */
#ifndef JG_TESTS_FAKE_NUMBERS_H
#define JG_TESTS_FAKE_NUMBERS_H

#include "jitgemm.h"

#include <math.h>
#include <string.h>

/* fma(a, b, c), whatever libm's is: the product is exact in double; rounding the sum to odd makes the second one harmless. */
static float fused(float a, float b, float c)
{
    double product = (double)a * (double)b, sum = product + (double)c;
    double back = sum - product;
    double error = (product - (sum - back)) + ((double)c - back);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (error != 0 && !(bits & 1) && error == error) bits += (error > 0) == (sum > 0) ? 1 : -1;
    memcpy(&sum, &bits, sizeof sum);
    return (float)sum;
}

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

static float from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
    if (exponent == 31) return float_of(sign | 0x7f800000 | mantissa << 13);
    if (exponent) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    float tiny = (float)mantissa * 0x1p-24f;
    return sign ? -tiny : tiny;
}

static uint16_t to_f16(float value)
{
    uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffff;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (magnitude > 0x7f800000) return 0x7fff;
    if (magnitude >= 0x477ff000) return sign | 0x7c00; /* 65520 and above */
    if (magnitude < 0x38800000) /* below 2^-14: adding 0.5 makes the float's own unit 2^-24 */
        return sign | (uint16_t)(bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f));
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return sign | (uint16_t)((magnitude >> 13) - (112 << 10));
}

static uint16_t to_bf16(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The size of an 8-bit float with so many bits of mantissa; its code without the sign. */
static double from_code(int code, int mantissa_bits)
{
    const int bias = mantissa_bits == 3 ? 7 : 15, one = 1 << mantissa_bits, exponent = code >> mantissa_bits;
    const int mantissa = code & (one - 1);
    if (mantissa_bits == 3 ? code == 0x7f : code > 0x7c) return NAN;
    if (mantissa_bits == 2 && code == 0x7c) return INFINITY;
    return exponent ? ldexp(one + mantissa, exponent - bias - mantissa_bits) : ldexp(mantissa, 1 - bias - mantissa_bits);
}

static float from_f8(uint8_t bits, int mantissa_bits)
{
    const float size = (float)from_code(bits & 0x7f, mantissa_bits);
    return bits & 0x80 ? -size : size;
}

/* The nearest of all, of two the one with the even code; what is too large is the largest. */
static uint8_t to_f8(float value, int mantissa_bits)
{
    const int largest = mantissa_bits == 3 ? 0x7e : 0x7b;
    const double size = fabs((double)value);
    int best = 0;
    if (value != value) return 0x7f;
    for (int code = 1; code <= largest; code++) {
        const double off = fabs(from_code(code, mantissa_bits) - size), before = fabs(from_code(best, mantissa_bits) - size);
        if (off < before || (off == before && code % 2 == 0)) best = code;
    }
    if (size > from_code(largest, mantissa_bits)) best = largest;
    return (uint8_t)(best | (bits_of(value) >> 24 & 0x80));
}

static int is_integer(int type)
{
    return type == JG_S8 || type == JG_U8 || type == JG_S4 || type == JG_S32;
}

static int64_t bits_in(int type)
{
    return type == JG_F32 || type == JG_S32 ? 32 : type == JG_F16 || type == JG_BF16 ? 16 : type == JG_S4 ? 4 : 8;
}

static int32_t get_integer(const void *base, int type, int64_t at)
{
    const uint8_t byte = type == JG_S32 ? 0 : ((const uint8_t *)base)[type == JG_S4 ? at / 2 : at];
    switch (type) {
    case JG_S32: return ((const int32_t *)base)[at];
    case JG_S8: return (int8_t)byte;
    case JG_S4: return (int8_t)(at % 2 ? byte & 0xf0 : byte << 4) / 16;
    default: return byte;
    }
}

/* As it is used: JG_MATH_FLUSH and JG_MATH_SANITIZE see to floats. */
static float cleaned(float x, int type, unsigned math)
{
    const double smallest = type == JG_F16 || type == JG_E5M2 ? 0x1p-14 : type == JG_E4M3 ? 0x1p-6 : 0x1p-126;
    if (is_integer(type)) return x;
    if (math & JG_MATH_SANITIZE && !isfinite(x)) x = 0;
    if (math & JG_MATH_FLUSH && fabs((double)x) < smallest) x = copysignf(0, x);
    return x;
}

static float get(const void *base, int type, int64_t at, unsigned math)
{
    float x = 0;
    switch (type) {
    case JG_F32: x = ((const float *)base)[at]; break;
    case JG_F16: x = from_f16(((const uint16_t *)base)[at]); break;
    case JG_BF16: x = float_of((uint32_t)((const uint16_t *)base)[at] << 16); break;
    case JG_E4M3: x = from_f8(((const uint8_t *)base)[at], 3); break;
    case JG_E5M2: x = from_f8(((const uint8_t *)base)[at], 2); break;
    default: return (float)get_integer(base, type, at);
    }
    return cleaned(x, type, math);
}

/* The nearest whole number within bounds; 0 for NaN. */
static int32_t whole(float x, double low, double high)
{
    const double nearest = nearbyint((double)x);
    return x != x ? 0 : (int32_t)(nearest < low ? low : nearest > high ? high : nearest);
}

/* Rounded to C's type. */
static void set(void *base, int type, int64_t at, float x, unsigned math)
{
    const unsigned flush = math & JG_MATH_FLUSH;
    if (math & JG_MATH_SANITIZE && type == JG_F16 && fabsf(x) > 65504) x = copysignf(65504, x);
    switch (type) {
    case JG_F32: ((float *)base)[at] = cleaned(x, type, flush); break;
    case JG_F16: ((uint16_t *)base)[at] = to_f16(cleaned(from_f16(to_f16(x)), type, flush)); break;
    case JG_BF16: ((uint16_t *)base)[at] = to_bf16(cleaned(float_of((uint32_t)to_bf16(x) << 16), type, flush)); break;
    case JG_S32: ((int32_t *)base)[at] = whole(x, -2147483648.0, 2147483647.0); break;
    case JG_S8: ((int8_t *)base)[at] = (int8_t)whole(x, -128, 127); break;
    case JG_U8: ((uint8_t *)base)[at] = (uint8_t)whole(x, 0, 255); break;
    case JG_E4M3: ((uint8_t *)base)[at] = to_f8(cleaned(from_f8(to_f8(x, 3), 3), type, flush), 3); break;
    case JG_E5M2: ((uint8_t *)base)[at] = to_f8(cleaned(from_f8(to_f8(x, 2), 2), type, flush), 2); break;
    default: break;
    }
}

/* As the public header defines them, in double. */
static float activated(unsigned kind, float value, float low, float high)
{
    const double x = value < -128 ? -128 : value, root = 0.70710678118654752;
    switch (kind) {
    case JG_ACTIVATION_RELU: return value < 0 ? 0 : value;
    case JG_ACTIVATION_RELU6: return value < 0 ? 0 : value > 6 ? 6 : value;
    case JG_ACTIVATION_CLAMP: return value < low ? low : value > high ? high : value;
    case JG_ACTIVATION_GELU_TANH: return (float)(x / (1 + exp(-2 * 0.79788456080286536 * (x + 0.044715 * x * x * x))));
    case JG_ACTIVATION_GELU_ERF: return (float)(x / 2 * erfc(-x * root));
    case JG_ACTIVATION_SILU: return (float)(x / (1 + exp(-x)));
    case JG_ACTIVATION_SIGMOID: return (float)(1 / (1 + exp(-x)));
    default: return value;
    }
}

#endif
