// From elements in memory to what is multiplied: reading each type, widening it, weights with scales and zero points, and what
// JG_FLUSH and JG_SANITIZE do to inputs.

// 16 bytes hold so many bits of an element.
template <int TYPE>
__device__ __forceinline__ i64 bytes_of(i64 elements)
{
    return TYPE == JG_TYPE_F32 || TYPE == JG_TYPE_S32   ? elements * 4
           : TYPE == JG_TYPE_F16 || TYPE == JG_TYPE_BF16 ? elements * 2
           : TYPE == JG_TYPE_S4                          ? elements >> 1
                                                         : elements;
}

// The bits of element `at`, in the low end of a word.
template <int TYPE>
__device__ __forceinline__ u32 read_bits(const void *p, i64 at)
{
    if (TYPE == JG_TYPE_F32 || TYPE == JG_TYPE_S32) return ((const u32 *)p)[at];
    if (TYPE == JG_TYPE_F16 || TYPE == JG_TYPE_BF16) return ((const u16 *)p)[at];
    if (TYPE == JG_TYPE_S4) return ((const u8 *)p)[at >> 1] >> ((u32)at & 1) * 4 & 15u;
    return ((const u8 *)p)[at];
}

__device__ __forceinline__ float f16_to_f32(u32 bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((u16)bits));
    return value;
}

__device__ __forceinline__ u32 f32_to_f16(float value)
{
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

__device__ __forceinline__ float bf16_to_f32(u32 bits)
{
    return __uint_as_float(bits << 16);
}

// In integers, because sm_75 has no such conversion and all architectures must give the same bits.
__device__ __forceinline__ u32 f32_to_bf16(float value)
{
    u32 bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;  // NaN
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

// The integer types' value.
template <int TYPE>
__device__ __forceinline__ int widen_integer(u32 bits)
{
    return TYPE == JG_TYPE_S8 ? (int)(bits << 24) >> 24 : TYPE == JG_TYPE_S4 ? (int)(bits << 28) >> 28 : (int)bits;
}

// Any type's value as float32: exact but for large s32.
template <int TYPE>
__device__ __forceinline__ float widen(u32 bits)
{
    if (TYPE == JG_TYPE_F32) return __uint_as_float(bits);
    if (TYPE == JG_TYPE_F16) return f16_to_f32(bits);
    if (TYPE == JG_TYPE_BF16) return bf16_to_f32(bits);
    if (TYPE == JG_TYPE_E4M3) return jg_from_e4m3(bits);
    if (TYPE == JG_TYPE_E5M2) return jg_from_e5m2(bits);
    if (TYPE == JG_TYPE_S32) return __int2float_rn((int)bits);
    // Put below the leading 1 of 2^23, shifted to be positive, which is taken off again: quicker than the conversion.
    const u32 shift = TYPE == JG_TYPE_S8 ? 128u : TYPE == JG_TYPE_S4 ? 8u : 0u;
    return __fsub_rn(__uint_as_float(0x4b000000u | (bits ^ shift)), (float)(8388608u + shift));
}

// An element as it may be used: NaN and infinity as 0, denormals as 0 with their sign. `smallest`: its type's smallest normal.
__device__ __forceinline__ float clean(float x, float smallest)
{
#ifdef JG_SANITIZE
    if ((__float_as_uint(x) & 0x7f800000u) == 0x7f800000u) x = 0.0f;
#endif
#ifdef JG_FLUSH
    if (fabsf(x) < smallest) x = __uint_as_float(__float_as_uint(x) & 0x80000000u);
#endif
    return x;
}

#if defined(JG_SANITIZE) || defined(JG_FLUSH)
#define CLEANS(type) ((type) != JG_TYPE_S8 && (type) != JG_TYPE_U8 && (type) != JG_TYPE_S4 && (type) != JG_TYPE_S32)
#else
#define CLEANS(type) false
#endif

// 2^-14, 2^-6 or 2^-126.
__device__ __forceinline__ float smallest_normal(u32 type)
{
    return __uint_as_float(type == JG_TYPE_F16 || type == JG_TYPE_E5M2 ? 0x38800000u : type == JG_TYPE_E4M3 ? 0x3c800000u : 0x00800000u);
}

// Rounded to the type that weights are multiplied in.
__device__ __forceinline__ u32 to_multiply_bits(float x)
{
    return MULTIPLY == JG_TYPE_BF16 ? f32_to_bf16(x) : f32_to_f16(x);
}

// Weights: the operand that is s8 or s4 where the other is f16 or bf16. Their groups' scales and zero points lie in rows
// of `count`, a row for each group along k.
#define WEIGHTS_A (IS_INTEGER(JG_TYPE_A) && MULTIPLY != JG_TYPE_S8)
#define WEIGHTS_B (IS_INTEGER(JG_TYPE_B) && MULTIPLY != JG_TYPE_S8)
#define GROUP_CODE (FUSION >> JG_FUSE_GROUP_SHIFT & 3u)

struct weights {
    const u16 *scales;
    const signed char *zeros;
    u32 count;
};

__device__ __forceinline__ weights weights_of_item(const jg_args &args, u32 item, u32 count)
{
    weights w = {args.group_scales + args.stride_group * item, args.group_zeros + args.stride_group * item, count};
    return w;
}

// An element without group as what it is multiplied as, where that holds every value of its type.
template <int TYPE>
__device__ __forceinline__ u32 exact_bits(u32 bits)
{
    if (TYPE == MULTIPLY) return bits;
    if (TYPE == JG_TYPE_E5M2) return bits << 8;  // f16 with fewer bits
    if (TYPE == JG_TYPE_E4M3) {
        // As an f16 it is 2^8 times too small, denormals included.
        u16 value = (u16)((bits & 0x80u) << 8 | (bits & 0x7fu) << 7);
        asm("mul.rn.f16 %0, %0, %1;" : "+h"(value) : "h"((u16)0x5c00));
        return (bits & 0x7fu) == 0x7fu ? 0x7fffu : value;
    }
    const float x = widen<TYPE>(bits);
    return MULTIPLY == JG_TYPE_BF16 ? __float_as_uint(x) >> 16 : f32_to_f16(x);
}

// The scale and the zero point of the weight at (mn, k).
__device__ __forceinline__ void read_group(const jg_args &args, const weights &w, u32 mn, u32 k, float &scale, float &zero)
{
    const i64 at = (i64)(k >> (4 + GROUP_CODE)) * w.count + mn;
    scale = MULTIPLY == JG_TYPE_BF16 ? bf16_to_f32(w.scales[at]) : f16_to_f32(w.scales[at]);
    zero = FUSION & JG_FUSE_ZERO_POINTS ? (float)w.zeros[at] : 0.0f;
}

// (q - zero) * scale is exact in float32, of 9 and 11 bits; it is rounded once.
__device__ __forceinline__ u32 dequantise(float q, float scale, float zero)
{
    return to_multiply_bits(__fmul_rn(__fsub_rn(q, zero), scale));
}
