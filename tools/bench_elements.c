/* Element types on the host: see bench_elements.h. */
#include "bench_elements.h"

#include "half.h"

#include <math.h>
#include <string.h>

/* How a type is made. Of floats: explicit digits of the significand and the bias of the exponent. */
typedef struct traits {
    int digits, bias;
    double most;       /* saturates there; infinite: it does not */
    double least;      /* of integers */
} traits;

static traits traits_of(jg_type type)
{
    switch (type) {
    case JG_F16: return (traits){10, 15, INFINITY, -INFINITY};
    case JG_BF16: return (traits){7, 127, INFINITY, -INFINITY};
    case JG_E4M3: return (traits){3, 7, 448, -448};
    case JG_E5M2: return (traits){2, 15, 57344, -57344};
    case JG_S8: return (traits){0, 0, 127, -128};
    case JG_U8: return (traits){0, 0, 255, 0};
    case JG_S4: return (traits){0, 0, 7, -8};
    case JG_S32: return (traits){0, 0, INT32_MAX, INT32_MIN};
    default: return (traits){23, 127, INFINITY, -INFINITY};
    }
}

/* ---- 8-bit floats ---- */

static float byte_to_float(unsigned bits, jg_type type)
{
    const traits t = traits_of(type);
    const unsigned magnitude = bits & 0x7f, exponent = magnitude >> t.digits, one = 1u << t.digits;
    const int is_special = type == JG_E4M3 ? magnitude == 0x7f : exponent == 31;
    float value = exponent ? ldexpf((float)(magnitude % one + one), (int)exponent - t.bias - t.digits)
                           : ldexpf((float)magnitude, 1 - t.bias - t.digits);
    if (is_special) value = type == JG_E5M2 && magnitude % one == 0 ? INFINITY : NAN;
    return bits & 0x80 ? -value : value;
}

static unsigned float_to_byte(float value, jg_type type)
{
    const traits t = traits_of(type);
    const unsigned sign = signbit(value) ? 0x80 : 0;
    const float magnitude = fabsf(value) < (float)t.most ? fabsf(value) : (float)t.most;
    int exponent;
    if (isnan(value)) return sign | 0x7f;
    frexpf(magnitude, &exponent);
    exponent--;
    if (magnitude == 0 || exponent < 1 - t.bias) exponent = 1 - t.bias;
    /* A significand that is rounded up to the next power of two carries into the exponent. */
    const unsigned significand = (unsigned)nearbyintf(ldexpf(magnitude, t.digits - exponent));
    return sign | (((unsigned)(exponent + t.bias - 1) << t.digits) + significand);
}

/* ---- in memory ---- */

float bench_element_get(const void *data, size_t index, jg_type type)
{
    const uint8_t *bytes = data;
    switch (type) {
    case JG_F16: return half_f16_to_f32(((const uint16_t *)data)[index]);
    case JG_BF16: return half_bf16_to_f32(((const uint16_t *)data)[index]);
    case JG_S8: return (float)(int8_t)bytes[index];
    case JG_U8: return (float)bytes[index];
    case JG_S4: return (float)(((bytes[index / 2] >> 4 * (index % 2)) & 0xf) ^ 8) - 8;
    case JG_S32: return (float)((const int32_t *)data)[index];
    case JG_E4M3: case JG_E5M2: return byte_to_float(bytes[index], type);
    default: return ((const float *)data)[index];
    }
}

/* 2^31 is no int32_t, but the float next to the largest one. */
static int32_t to_integer(float value, jg_type type)
{
    const traits t = traits_of(type);
    if (isnan(value)) return 0;
    if ((double)value >= t.most) return (int32_t)t.most;
    return (double)value <= t.least ? (int32_t)t.least : (int32_t)nearbyintf(value);
}

void bench_element_put(void *data, size_t index, jg_type type, float value)
{
    uint8_t *bytes = data;
    switch (type) {
    case JG_F16: ((uint16_t *)data)[index] = half_f32_to_f16(value); return;
    case JG_BF16: ((uint16_t *)data)[index] = half_f32_to_bf16(value); return;
    case JG_S8: case JG_U8: bytes[index] = (uint8_t)to_integer(value, type); return;
    case JG_S4: {
        const unsigned shift = 4 * (unsigned)(index % 2), bits = (unsigned)to_integer(value, type) & 0xf;
        bytes[index / 2] = (uint8_t)((bytes[index / 2] & ~(0xfu << shift)) | bits << shift);
        return;
    }
    case JG_S32: ((int32_t *)data)[index] = to_integer(value, type); return;
    case JG_E4M3: case JG_E5M2: bytes[index] = (uint8_t)float_to_byte(value, type); return;
    default: ((float *)data)[index] = value;
    }
}

float bench_element_rounded(float value, jg_type type)
{
    uint32_t memory = 0;
    bench_element_put(&memory, 0, type, value);
    return bench_element_get(&memory, 0, type);
}

/* ---- how coarse, how large ---- */

double bench_element_rounding(double value, jg_type type)
{
    const traits t = traits_of(type);
    if (type_is_integer(type)) return 0.5;
    const double smallest = type == JG_F32 || type == JG_BF16 ? 0 : ldexp(1, -t.bias - t.digits);
    return fabs(value) * ldexp(1, -1 - t.digits) + smallest;
}

double bench_element_least(jg_type type)
{
    return traits_of(type).least;
}

double bench_element_most(jg_type type)
{
    return traits_of(type).most;
}

double bench_element_normal(jg_type type)
{
    return type_is_integer(type) ? 0 : ldexp(1, 1 - traits_of(type).bias);
}

/* ---- random ones ---- */

double bench_element_mean(jg_type type)
{
    const traits t = traits_of(type);
    return type_is_integer(type) ? (t.most + t.least) / 2 : 0;
}

double bench_element_rms(jg_type type)
{
    const traits t = traits_of(type);
    const double mean = bench_element_mean(type), width = type_is_integer(type) ? t.most - t.least + 1 : 2;
    return sqrt(width * width / 12 + mean * mean);
}

float bench_element_draw(double uniform, jg_type type)
{
    const traits t = traits_of(type);
    if (type_is_integer(type)) return (float)(floor(uniform * (t.most - t.least + 1)) + t.least);
    return bench_element_rounded((float)(2 * uniform - 1), type);
}
