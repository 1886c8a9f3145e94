// Shared by every kernel family: the launch arguments, the sizes (each a launch parameter or a
// constant; in a generic kernel all are launch parameters), and the way a finished sum becomes an element of C.
//
// The library renders a kernel as: #define lines + this file + one family. README.md explains every
// macro. Nothing may be #included: compile time, and devices without CUDA headers.

typedef unsigned short u16;
typedef unsigned int u32;
typedef long long i64;

// Must match struct launch_args in src/launch.h; KERNEL_ABI in src/kernel.h counts its versions.
struct jg_args {
    const void *a, *b;
    void *c;
    i64 lda, ldb, ldc;
    i64 stride_a, stride_b, stride_c;
    u32 m, n, k, batch;
    float alpha, beta;
    u32 flags;
    u32 reserved;
};

// Bits of jg_args.flags.
#define JG_FLAG_TRANS_A 1u
#define JG_FLAG_TRANS_B 2u
#define JG_FLAG_VEC_A 4u         // 16-byte loads are legal
#define JG_FLAG_VEC_B 8u
#define JG_FLAG_TYPE_C_SHIFT 4   // two bits, a JG_TYPE number
#define JG_FLAG_VEC_C 64u        // four neighbours of C may be stored at once

#define JG_TYPE_F32 1
#define JG_TYPE_F16 2
#define JG_TYPE_BF16 3

// Sizes: each by itself a constant where the renderer gave it, else a launch argument of the same type.
#ifdef JG_M
#define DIM_M ((u32)JG_M)
#else
#define DIM_M args.m
#endif
#ifdef JG_N
#define DIM_N ((u32)JG_N)
#else
#define DIM_N args.n
#endif
#ifdef JG_K
#define DIM_K ((u32)JG_K)
#else
#define DIM_K args.k
#endif
#ifdef JG_LDA
#define LDA ((i64)JG_LDA)
#else
#define LDA args.lda
#endif
#ifdef JG_LDB
#define LDB ((i64)JG_LDB)
#else
#define LDB args.ldb
#endif
#ifdef JG_LDC
#define LDC ((i64)JG_LDC)
#else
#define LDC args.ldc
#endif

#ifdef JG_TRANS_A
#define TRANS_A (JG_TRANS_A != 0)
#define TRANS_B (JG_TRANS_B != 0)
#else
#define TRANS_A ((args.flags & JG_FLAG_TRANS_A) != 0)
#define TRANS_B ((args.flags & JG_FLAG_TRANS_B) != 0)
#endif

#if JG_TYPE == JG_TYPE_F32
#define TYPE_C JG_TYPE_F32
#elif defined(JG_TYPE_C)
#define TYPE_C JG_TYPE_C
#else
#define TYPE_C ((args.flags >> JG_FLAG_TYPE_C_SHIFT) & 3u)
#endif

#ifdef JG_VEC_C
#define VECTOR_C (JG_VEC_C != 0)
#else
#define VECTOR_C ((args.flags & JG_FLAG_VEC_C) != 0)
#endif

__device__ __forceinline__ float f16_to_f32(u16 bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

__device__ __forceinline__ u16 f32_to_f16(float value)
{
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

__device__ __forceinline__ float bf16_to_f32(u16 bits)
{
    return __uint_as_float((u32)bits << 16);
}

// In integers, because sm_75 has no such conversion and all architectures must give the same bits.
__device__ __forceinline__ u16 f32_to_bf16(float value)
{
    u32 bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;  // NaN
    return (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

__device__ __forceinline__ float load_c(const jg_args &args, const void *c, i64 at)
{
    if (TYPE_C == JG_TYPE_F32) return ((const float *)c)[at];
    u16 bits = ((const u16 *)c)[at];
    return TYPE_C == JG_TYPE_F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

__device__ __forceinline__ u16 to_16bit(const jg_args &args, float value)
{
    return TYPE_C == JG_TYPE_F16 ? f32_to_f16(value) : f32_to_bf16(value);
}

// alpha * sum + beta * c, in float32. The fma is explicit and contraction is off (-fmad=false), so
// that alpha and beta as constants or as arguments give the same bits; beta = 0 never reads C.
__device__ __forceinline__ float scaled(const jg_args &args, const void *c, i64 at, float sum)
{
    if (args.beta == 0.0f) return __fmul_rn(args.alpha, sum);
    return __fmaf_rn(args.alpha, sum, __fmul_rn(args.beta, load_c(args, c, at)));
}

// Stores four neighbours of a row of C, those with column < n, in as few accesses as VECTOR_C allows.
__device__ __forceinline__ void store_c(const jg_args &args, void *c, i64 row, u32 column, const float *sums)
{
    const i64 at = row * LDC + column;
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] = column + i < DIM_N ? scaled(args, c, at + i, sums[i]) : 0.0f;
    if (TYPE_C == JG_TYPE_F32) {
        float *p = (float *)c + at;
        if (VECTOR_C && column + 4 <= DIM_N) {
            *(float4 *)p = make_float4(v[0], v[1], v[2], v[3]);
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (column + i < DIM_N) p[i] = v[i];
        }
    } else {
        u16 *p = (u16 *)c + at;
        u16 h[4];
#pragma unroll
        for (int i = 0; i < 4; i++) h[i] = to_16bit(args, v[i]);
        if (VECTOR_C && column + 4 <= DIM_N) {
            *(uint2 *)p = make_uint2(h[0] | (u32)h[1] << 16, h[2] | (u32)h[3] << 16);
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (column + i < DIM_N) p[i] = h[i];
        }
    }
}

// Tile coordinates of this block. Eight rows of tiles are walked column by column, so that blocks that
// run together share panels of A and B in L2.
__device__ __forceinline__ void tile_of_block(const jg_args &args, u32 &tile_m, u32 &tile_n)
{
    const u32 rows = (DIM_M + JG_BM - 1) / JG_BM, columns = (DIM_N + JG_BN - 1) / JG_BN;
    const u32 group = 8 * columns;
    const u32 first = blockIdx.x / group * 8;
    const u32 height = rows - first < 8 ? rows - first : 8;
    const u32 within = blockIdx.x % group;
    tile_m = first + within % height;
    tile_n = within / height;
}

// The items of the batch that this block's tile is computed for.
#ifdef JG_SINGLE
#define FIRST_ITEM 0u
#define ITEMS 1u
#else
#define FIRST_ITEM blockIdx.y
#define ITEMS args.batch
#endif

__device__ __forceinline__ void *item_of_c(const jg_args &args, u32 item)
{
    return (unsigned char *)args.c + args.stride_c * item * (TYPE_C == JG_TYPE_F32 ? 4 : 2);
}
