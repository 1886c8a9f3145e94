/* Runs of elements of every type. What is done to a run but for changing its type (JG_MATH_FLUSH ...) is a pass of its own over
 * the floats, so that products without flags do not pay for it. */
#include "cpu_elements.h"
#include "cpu_numbers.h"
#include "half.h"

/* A function that reads a run, as `out` elements of what `element` (of x, the stored one) says. */
#define READER(name, stored, result, element)                                                    \
    static void name(const void *data, int64_t first, int64_t step, int count, result *out)      \
    {                                                                                            \
        const stored *in = (const stored *)data + first;                                         \
        for (int i = 0; i < count; i++) {                                                        \
            const stored x = in[i * step];                                                       \
            out[i] = element;                                                                    \
        }                                                                                        \
    }

READER(read_f32, float, float, x)
READER(read_f16, uint16_t, float, half_f16_to_f32(x))
READER(read_bf16, uint16_t, float, half_bf16_to_f32(x))
READER(read_s8, int8_t, float, x)
READER(read_u8, uint8_t, float, x)
READER(read_s32, int32_t, float, (float)x)
READER(read_e4m3, uint8_t, float, jg_from_e4m3(x))
READER(read_e5m2, uint8_t, float, jg_from_e5m2(x))
READER(integers_s8, int8_t, int32_t, x)
READER(integers_u8, uint8_t, int32_t, x)
READER(integers_s32, int32_t, int32_t, x)

/* Element `at` of packed s4: the low half of a byte if `at` is even. */
static int s4_at(const void *data, int64_t at)
{
    const int nibble = ((const uint8_t *)data)[at / 2] >> (at % 2 * 4) & 15;
    return (nibble ^ 8) - 8;
}

static void read_s4(const void *data, int64_t first, int64_t step, int count, float *out)
{
    for (int i = 0; i < count; i++) out[i] = (float)s4_at(data, first + i * step);
}

static void integers_s4(const void *data, int64_t first, int64_t step, int count, int32_t *out)
{
    for (int i = 0; i < count; i++) out[i] = s4_at(data, first + i * step);
}

/* A function that writes a run of what `element` makes of x. */
#define WRITER(name, stored, element)                                              \
    static void name(void *data, int64_t first, int count, const float *in)        \
    {                                                                              \
        stored *out = (stored *)data + first;                                      \
        for (int i = 0; i < count; i++) {                                          \
            const float x = in[i];                                                 \
            out[i] = (stored)(element);                                            \
        }                                                                          \
    }

WRITER(write_f32, float, x)
WRITER(write_f16, uint16_t, half_f32_to_f16(x))
WRITER(write_bf16, uint16_t, half_f32_to_bf16(x))
WRITER(write_s8, int8_t, jg_to_s8(x))
WRITER(write_u8, uint8_t, jg_to_u8(x))
WRITER(write_s32, int32_t, jg_to_s32(x))
WRITER(write_e4m3, uint8_t, jg_to_e4m3(x))
WRITER(write_e5m2, uint8_t, jg_to_e5m2(x))

/* By jg_type. smallest: the smallest normal number; 0 for integers. */
static const struct {
    void (*read)(const void *data, int64_t first, int64_t step, int count, float *out);
    void (*write)(void *data, int64_t first, int count, const float *in);
    void (*integers)(const void *data, int64_t first, int64_t step, int count, int32_t *out);
    float smallest;
} element[] = {
    [JG_F32] = {read_f32, write_f32, NULL, 0x1p-126f},   [JG_F16] = {read_f16, write_f16, NULL, 0x1p-14f},
    [JG_BF16] = {read_bf16, write_bf16, NULL, 0x1p-126f}, [JG_S8] = {read_s8, write_s8, integers_s8, 0},
    [JG_U8] = {read_u8, write_u8, integers_u8, 0},       [JG_S4] = {read_s4, NULL, integers_s4, 0},
    [JG_S32] = {read_s32, write_s32, integers_s32, 0},   [JG_E4M3] = {read_e4m3, write_e4m3, NULL, 0x1p-6f},
    [JG_E5M2] = {read_e5m2, write_e5m2, NULL, 0x1p-14f},
};

static void flush(float smallest, float *values, int count)
{
    for (int i = 0; i < count; i++) {
        const u32 bits = cpu_bits(values[i]);
        values[i] = __builtin_fabsf(values[i]) < smallest ? cpu_float(bits & 0x80000000u) : values[i];
    }
}

static void sanitize(float *values, int count)
{
    for (int i = 0; i < count; i++) values[i] = (cpu_bits(values[i]) & 0x7f800000u) == 0x7f800000u ? 0.0f : values[i];
}

void cpu_read(jg_type type, unsigned flags, const void *data, int64_t first, int64_t step, int count, float *out)
{
    element[type].read(data, first, step, count, out);
    if (flags & JG_MATH_SANITIZE) sanitize(out, count);
    if (flags & JG_MATH_FLUSH) flush(element[type].smallest, out, count);
}

void cpu_read_integers(jg_type type, const void *data, int64_t first, int64_t step, int count, int32_t *out)
{
    element[type].integers(data, first, step, count, out);
}

/* Makes zeros of denormals, in place. least: the bits of the smallest normal number. */
#define FLUSHER(stored, sign, least)                                                            \
    for (int i = 0; i < count; i++) {                                                           \
        stored *x = (stored *)data + first + i;                                                 \
        if ((*x & (sign - 1u)) < least) *x &= sign;                                             \
    }

static void flush_written(jg_type type, void *data, int64_t first, int count)
{
    switch (type) {
    case JG_F32: FLUSHER(uint32_t, 0x80000000u, 0x00800000u) break;
    case JG_F16: FLUSHER(uint16_t, 0x8000u, 0x0400u) break;
    case JG_BF16: FLUSHER(uint16_t, 0x8000u, 0x0080u) break;
    case JG_E4M3: FLUSHER(uint8_t, 0x80u, 0x08u) break;
    case JG_E5M2: FLUSHER(uint8_t, 0x80u, 0x04u) break;
    default: break;
    }
}

/* What overflowed, or was infinity, becomes the largest number. */
static void saturate_f16(uint16_t *values, int count)
{
    for (int i = 0; i < count; i++)
        if ((values[i] & 0x7fffu) == 0x7c00u) values[i]--;
}

void cpu_write(jg_type type, unsigned flags, void *data, int64_t first, int count, const float *in)
{
    element[type].write(data, first, count, in);
    if (flags & JG_MATH_FLUSH) flush_written(type, data, first, count);
    if (flags & JG_MATH_SANITIZE && type == JG_F16) saturate_f16((uint16_t *)data + first, count);
}

void cpu_round_to_tf32(float *values, int count)
{
    for (int i = 0; i < count; i++) {
        const u32 bits = cpu_bits(values[i]);
        /* A carry out of the fraction raises the exponent, up to infinity. */
        if ((bits & 0x7fffffffu) <= 0x7f800000u) values[i] = cpu_float((bits + 0x1000u) & ~0x1fffu);
    }
}
