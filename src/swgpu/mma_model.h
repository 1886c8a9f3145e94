/* How tensor cores add up products of f16, bf16, tf32 and fp8. NVIDIA documents none of it; what is here:
 *
 * Products are exact. A group of them and the accumulator are aligned to the largest exponent among them, cut off below
 * `fraction` bits under it (towards zero, each term for itself) and added exactly. The sum is cut to 24 bits towards zero for
 * an f32 accumulator, and rounded to nearest even for an f16 one. An instruction with more products than a group runs the
 * groups one after another, in the order of k. A product counts with the exponent that its factors' exponents add up to,
 * so it may be up to 4 in units of it; denormal factors keep the smallest exponent.
 *
 * fp8 on sm_90: the instruction is made of two for f16, the first of each four neighbours along k taking the lower two and
 * the second the upper two, from 0; C is added last, by an f32 addition.
 *
 * sm_90 is measured on an H200 (driver 580, 2026-11-29). Of 131,072 f16 sums of 16 and of 256 products all bits are those of
 * groups of 16 and 25 bits, and no neighbour's (4 or 8 products, 22 to 28 bits, rounding to nearest each differ in tens of
 * thousands); in the whole list of test products no bit of 74,739,048 f16 and bf16 results differs (`make test-gpu` compares).
 * Single instructions with random operands, denormals and accumulators, 51,200 results each: no bit differs for f16 and bf16
 * (k8, k16), tf32 (k4, k8), e4m3 and e5m2 (k32) with f32 accumulators and f16 (k8, k16) with f16 ones. sm_75 to sm_89
 * (8 products, 24 bits) and those after sm_90 follow published studies (arXiv 2511.10909, 2512.07004) and were not compared
 * with hardware. */
#ifndef SWGPU_MMA_MODEL_H
#define SWGPU_MMA_MODEL_H

#include "mma_layout.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct mma_model {
    unsigned group, fraction; /* group 0: no model; sums round once */
} mma_model;

/* capability: 90 for sm_90; 0: none. What is only known of sm_90 has no model elsewhere. */
static inline mma_model mma_model_of(unsigned capability, int is_tf32, int only_sm90)
{
    if (only_sm90 && capability != 90) return (mma_model){0, 0};
    if (capability >= 90) return (mma_model){is_tf32 ? 8 : 16, 25};
    if (capability >= 75) return (mma_model){is_tf32 ? 4 : 8, 24};
    return (mma_model){0, 0};
}

/* Zero takes part in no alignment. */
#define MMA_ZERO_EXPONENT (-30000)

/* Eight columns at once. */
typedef int32_t mma_ints __attribute__((vector_size(32)));
typedef int64_t mma_longs __attribute__((vector_size(64)));
typedef double mma_doubles __attribute__((vector_size(64)));
typedef float mma_floats __attribute__((vector_size(32)));
#define MMA_INLINE static inline __attribute__((always_inline))

/* Values as significand * 2^(exponent - bits), with exponents of at least `least`. */
MMA_INLINE void mma_split(mma_ints raw, int bits, int least, mma_ints *significand, mma_ints *exponent)
{
    const mma_ints field = raw >> 23 & 255, denormal = field == 0;
    const mma_ints magnitude = (raw & 0x7fffff) | (~denormal & 0x800000);
    const mma_ints e = field - 127 - denormal;
    mma_ints lift = least - e;
    lift &= lift > 0;
    const mma_ints held = lift > 31, shift = (lift & ~held) | (held & 31);
    const mma_ints kept = magnitude >> (23 - bits) >> shift, sign = raw >> 31;
    const mma_ints zero = magnitude == 0;
    *significand = (kept ^ sign) - sign;
    *exponent = ((e + lift) & ~zero) | (zero & MMA_ZERO_EXPONENT);
}

/* sum * 2^(exponent - fraction), exactly: a power of two well inside double's range, whatever the format. */
MMA_INLINE mma_doubles mma_scale(mma_doubles sum, mma_ints exponent, int fraction)
{
    const mma_ints low = exponent < -700;
    const mma_longs bits = __builtin_convertvector(((exponent & ~low) | (low & -700)) - fraction + 1023, mma_longs) << 52;
    return sum * (mma_doubles)bits;
}

/* To float, towards zero; infinite from 2^128 on. */
MMA_INLINE mma_floats mma_cut(mma_doubles value)
{
    const mma_longs tiny = ((mma_longs)value & INT64_MAX) < (mma_longs)((mma_doubles){0} + 0x1p-126);
    mma_doubles cut = (mma_doubles)((mma_longs)value & ~((1ll << 29) - 1)); /* a double's 52 bits less a float's 23 */
    for (unsigned n = 0; n < MMA_N; n++)
        if (tiny[n] && value[n] != 0) cut[n] = trunc(value[n] * 0x1p149) * 0x1p-149;
    return __builtin_convertvector(cut, mma_floats);
}

/* One row of one group, not yet rounded: c + sum of a[p] * b[p]. All values are finite. sa, ea and sb, eb: significands
 * and exponents as from mma_split; product_bits: bits below the point in a product of two significands. */
MMA_INLINE mma_doubles mma_group(mma_floats c, const int32_t *sa, const int32_t *ea, const mma_ints *sb, const mma_ints *eb,
                                 unsigned products, int fraction, int product_bits)
{
    mma_ints sc, ec, sum = {0};
    mma_split((mma_ints)c, 23, -126, &sc, &ec);
    mma_ints top = ec;
    for (unsigned p = 0; p < products; p++) {
        const mma_ints e = ea[p] + eb[p], higher = e > top;
        top = (e & higher) | (top & ~higher);
    }
    /* 16 products below 4 * 2^25 stay within 31 bits; the accumulator is added in double, exactly. */
    for (unsigned p = 0; p < products; p++) {
        const mma_ints product = sa[p] * sb[p], drop = top - (ea[p] + eb[p]), far = drop > 31;
        const mma_ints sign = product >> 31, magnitude = ((product ^ sign) - sign) << (fraction - product_bits);
        const mma_ints kept = magnitude >> ((drop & ~far) | (far & 31));
        sum += (kept ^ sign) - sign;
    }
    const mma_ints drop = top - ec, far = drop > 31, sign = sc >> 31;
    const mma_ints kept = (((sc ^ sign) - sign) << (fraction - 23)) >> ((drop & ~far) | (far & 31));
    const mma_doubles products_sum = __builtin_convertvector(sum, mma_doubles);
    const mma_doubles total = products_sum + __builtin_convertvector((kept ^ sign) - sign, mma_doubles);
    return mma_scale(total, top, fraction);
}

/* A format of A and B: bits of its significand below the point, smallest exponent. */
typedef struct mma_format {
    int bits, least;
} mma_format;

#define MMA_F16 ((mma_format){10, -14}) /* e4m3 and e5m2 are used as f16 */
#define MMA_BF16 ((mma_format){7, -126})
#define MMA_TF32 ((mma_format){10, -126})

typedef float mma_round(double value); /* to the accumulator's type; null: to f32, towards zero */

/* Rows of D, all products: d = c + a b with a[row][k], b[k][n]. All values are finite. d may be c. */
MMA_INLINE void mma_multiply(mma_model model, float *d, const float *c, const float (*a)[MMA_MAX_K], const float (*b)[MMA_N],
                             unsigned rows, unsigned k, mma_format kind, mma_round *round)
{
    const int bits = kind.bits, least = kind.least;
    int32_t sa[MMA_MAX_K], ea[MMA_MAX_K];
    mma_ints sb[MMA_MAX_K], eb[MMA_MAX_K], raw, significand, exponent;
    for (unsigned p = 0; p < k; p++) {
        memcpy(&raw, b[p], sizeof raw);
        mma_split(raw, bits, least, &sb[p], &eb[p]);
    }
    for (unsigned row = 0; row < rows; row++) {
        for (unsigned p = 0; p < k; p += MMA_N) {
            memcpy(&raw, &a[row][p], sizeof raw); /* up to 7 elements beyond k, which nobody looks at */
            mma_split(raw, bits, least, &significand, &exponent);
            memcpy(sa + p, &significand, sizeof significand);
            memcpy(ea + p, &exponent, sizeof exponent);
        }
        mma_floats sum;
        memcpy(&sum, c + row * MMA_N, sizeof sum);
        for (unsigned p = 0; p < k; p += model.group) {
            const unsigned products = k - p < model.group ? k - p : model.group;
            const mma_doubles value = mma_group(sum, sa + p, ea + p, sb + p, eb + p, products, (int)model.fraction, 2 * bits);
            if (!round) sum = mma_cut(value);
            else
                for (unsigned n = 0; n < MMA_N; n++) sum[n] = round(value[n]);
        }
        memcpy(d + row * MMA_N, &sum, sizeof sum);
    }
}

#endif
