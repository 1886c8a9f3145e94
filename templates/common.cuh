// Shared by every kernel family: the launch arguments, and the sizes and choices that are each a launch parameter or a constant
// (in a generic kernel nearly all are launch parameters).
//
// The library renders a kernel as: #define lines + this file + numbers.cuh + elements.cuh + epilogue.cuh + one family's files +
// entry.cuh.
// README.md explains every macro. Nothing may be #included: compile time, and devices without CUDA headers.

typedef unsigned char u8;
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
    u32 flags, fusion;
    const void *residual;
    i64 ld_residual, stride_residual;
    const float *scale, *scale_m, *scale_n;
    const void *bias_m, *bias_n;
    const u16 *group_scales;
    const signed char *group_zeros;
    i64 stride_group;
    float clamp_low, clamp_high, out_scale, out_zero;
};

// Bits of jg_args.flags.
#define JG_FLAG_TRANS_A 1u
#define JG_FLAG_TRANS_B 2u
#define JG_FLAG_VEC_A 4u         // 16-byte loads are legal
#define JG_FLAG_VEC_B 8u
#define JG_FLAG_VEC_C 16u        // four neighbours of C may be stored at once
#define JG_FLAG_SWAPPED 32u      // the caller's m is our n: his first scale and bias are our second

// Bits of jg_args.fusion and of JG_FUSION.
#define JG_FUSE_SCALE 1u
#define JG_FUSE_SCALE_M 2u
#define JG_FUSE_SCALE_N 4u
#define JG_FUSE_BIAS_M 8u
#define JG_FUSE_BIAS_N 16u
#define JG_FUSE_RESIDUAL 32u
#define JG_FUSE_RESIDUAL_AFTER 64u
#define JG_FUSE_REQUANTIZE 128u
#define JG_FUSE_ACTIVATION_SHIFT 8   // three bits, a jg_activation
#define JG_FUSE_ANY 0x7ffu           // any of the above
#define JG_FUSE_TYPE_C_SHIFT 12      // four bits, a JG_TYPE number
#define JG_FUSE_TYPE_BIAS_SHIFT 16   // four bits
#define JG_FUSE_GROUP_SHIFT 20       // two bits: weights in groups of 16 << this, 0: none
#define JG_FUSE_ZERO_POINTS (1u << 22)

#define JG_TYPE_F32 1
#define JG_TYPE_F16 2
#define JG_TYPE_BF16 3
#define JG_TYPE_S8 4
#define JG_TYPE_U8 5
#define JG_TYPE_S4 6
#define JG_TYPE_S32 7
#define JG_TYPE_E4M3 8
#define JG_TYPE_E5M2 9

#define JG_FAMILY_SIMT 1
#define JG_FAMILY_MMA 2
#define JG_FAMILY_TF32 3

#define JG_MODE_DEFAULT 0
#define JG_MODE_TF32 1
#define JG_MODE_3XTF32 2
#define JG_MODE_STRICT 3
#define JG_MODE_F16 4

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

// Whether tiles may stick out of a matrix.
#ifdef JG_M
#define EDGE_M (JG_M % JG_BM != 0)
#else
#define EDGE_M true
#endif
#ifdef JG_N
#define EDGE_N (JG_N % JG_BN != 0)
#else
#define EDGE_N true
#endif
#ifdef JG_K
#define EDGE_K (JG_K % JG_BK != 0)
#else
#define EDGE_K true
#endif

#ifdef JG_TRANS_A
#define TRANS_A (JG_TRANS_A != 0)
#define TRANS_B (JG_TRANS_B != 0)
#else
#define TRANS_A ((args.flags & JG_FLAG_TRANS_A) != 0)
#define TRANS_B ((args.flags & JG_FLAG_TRANS_B) != 0)
#endif

#ifdef JG_VEC_C
#define VECTOR_C (JG_VEC_C != 0)
#else
#define VECTOR_C ((args.flags & JG_FLAG_VEC_C) != 0)
#endif

#ifdef JG_FUSION
#define FUSION ((u32)JG_FUSION)
static const int UNROLL_LONG = 16;  // of loops whose code is long where all is left to the launch; nvcc wants a constant, no macro
static const int UNROLL_PLAIN = JG_FUSION & JG_FUSE_ANY ? 1 : 4;  // of loops whose code is long where much is fused in
#else
#define FUSION args.fusion
static const int UNROLL_LONG = 1;
static const int UNROLL_PLAIN = 1;
#endif
#define TYPE_C (FUSION >> JG_FUSE_TYPE_C_SHIFT & 15u)

// The type that elements are multiplied in.
#define IS_INTEGER(type) ((type) == JG_TYPE_S8 || (type) == JG_TYPE_U8 || (type) == JG_TYPE_S4)
#if JG_TYPE_A == JG_TYPE_F32
#define MULTIPLY JG_TYPE_F32
#elif IS_INTEGER(JG_TYPE_A) && IS_INTEGER(JG_TYPE_B)
#define MULTIPLY JG_TYPE_S8
#elif JG_TYPE_A == JG_TYPE_BF16 || JG_TYPE_B == JG_TYPE_BF16
#define MULTIPLY JG_TYPE_BF16
#else
#define MULTIPLY JG_TYPE_F16
#endif

// Sums: exact integers, or float32 (f16 only inside the mma family, until the epilogue).
#if MULTIPLY == JG_TYPE_S8
typedef int sum_t;
#else
typedef float sum_t;
#endif

// What numbers.cuh is written in.
#define JG_FN __device__ __forceinline__
#define JG_FMA(a, b, c) __fmaf_rn(a, b, c)
#define JG_MUL(a, b) __fmul_rn(a, b)
#define JG_ADD(a, b) __fadd_rn(a, b)
#define JG_DIV(a, b) __fdiv_rn(a, b)
#define JG_BITS(f) __float_as_uint(f)
#define JG_FLOAT(u) __uint_as_float(u)

// How many rows of tiles are walked together: about as many as make a square of the blocks that run together. Chips of these
// numbers have a hundred SMs and more.
#if (__CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000) && JG_BM <= 128
#define ROWS_TOGETHER 16
#else
#define ROWS_TOGETHER 8
#endif

// Tile coordinates of this block. Up to so many rows of tiles are walked column by column, so that blocks that
// run together share panels of A and B in L2.
__device__ __forceinline__ void tile_of_block(const jg_args &args, u32 block, u32 &tile_m, u32 &tile_n)
{
    const u32 rows = (DIM_M + JG_BM - 1) / JG_BM, columns = (DIM_N + JG_BN - 1) / JG_BN;
    if (rows <= ROWS_TOGETHER) {
        tile_n = block / rows;
        tile_m = block - tile_n * rows;
        return;
    }
    const u32 group = ROWS_TOGETHER * columns;
    const u32 first = block / group * ROWS_TOGETHER;
    const u32 height = rows % ROWS_TOGETHER == 0 || rows - first >= ROWS_TOGETHER ? ROWS_TOGETHER : rows - first;
    const u32 within = block % group;
    tile_m = first + within % height;
    tile_n = within / height;
}
