// From a finished sum to an element of C: alpha, beta, whatever is fused in, and the conversion to C's type. The order of the
// steps is the public header's (JG_EPILOGUE_SCALE ...); each is one or two float32 operations, with no contraction, so that
// constants or arguments give the same bits.

// What an item's epilogue reads and writes.
struct output {
    void *c;
    const void *residual;
};

__device__ __forceinline__ u32 type_c_bytes(const jg_args &args)
{
    return TYPE_C == JG_TYPE_F32 || TYPE_C == JG_TYPE_S32 ? 4 : TYPE_C == JG_TYPE_F16 || TYPE_C == JG_TYPE_BF16 ? 2 : 1;
}

__device__ __forceinline__ output output_of_item(const jg_args &args, u32 item)
{
    const i64 bytes = type_c_bytes(args);
    output out;
    out.c = (u8 *)args.c + args.stride_c * item * bytes;
    out.residual = (const u8 *)args.residual + args.stride_residual * item * bytes;
    return out;
}

// An element of a matrix of C's type.
__device__ __forceinline__ float read_c(const jg_args &args, const void *p, i64 at)
{
    float x;
    if (TYPE_C == JG_TYPE_F32) x = ((const float *)p)[at];
    else if (TYPE_C == JG_TYPE_F16) x = f16_to_f32(((const u16 *)p)[at]);
    else if (TYPE_C == JG_TYPE_BF16) x = bf16_to_f32(((const u16 *)p)[at]);
    else if (TYPE_C == JG_TYPE_S32) x = __int2float_rn(((const int *)p)[at]);
    else if (TYPE_C == JG_TYPE_S8) x = ((const signed char *)p)[at];
    else if (TYPE_C == JG_TYPE_U8) x = ((const u8 *)p)[at];
    else if (TYPE_C == JG_TYPE_E4M3) x = jg_from_e4m3(((const u8 *)p)[at]);
    else x = jg_from_e5m2(((const u8 *)p)[at]);
    return clean(x, smallest_normal(TYPE_C));
}

// C's bits of a value.
__device__ __forceinline__ u32 to_c(const jg_args &args, float x)
{
    const u32 type = TYPE_C;
    if (type == JG_TYPE_S32) return (u32)jg_to_s32(x);
    if (type == JG_TYPE_S8) return (u32)jg_to_s8(x) & 255u;
    if (type == JG_TYPE_U8) return (u32)jg_to_u8(x);
#ifdef JG_SANITIZE
    if (type == JG_TYPE_F16 && fabsf(x) > 65504.0f) x = x < 0.0f ? -65504.0f : 65504.0f;
#endif
    const u32 bits = type == JG_TYPE_F32    ? __float_as_uint(x)
                     : type == JG_TYPE_F16  ? f32_to_f16(x)
                     : type == JG_TYPE_BF16 ? f32_to_bf16(x)
                     : type == JG_TYPE_E4M3 ? jg_to_e4m3(x)
                                            : jg_to_e5m2(x);
#ifdef JG_FLUSH
    const u32 exponent = type == JG_TYPE_F32    ? 0x7f800000u
                         : type == JG_TYPE_F16  ? 0x7c00u
                         : type == JG_TYPE_BF16 ? 0x7f80u
                         : type == JG_TYPE_E4M3 ? 0x78u
                                                : 0x7cu;
    const u32 sign = type == JG_TYPE_F32 ? 0x80000000u : type == JG_TYPE_F16 || type == JG_TYPE_BF16 ? 0x8000u : 0x80u;
    if (!(bits & exponent)) return bits & sign;
#endif
    return bits;
}

// factor * sum + beta * c. beta = 0 never reads C.
__device__ __forceinline__ float scaled(const jg_args &args, const void *c, i64 at, float factor, float sum)
{
    if (args.beta == 0.0f) return __fmul_rn(factor, sum);
    const float rest = __fmul_rn(args.beta, read_c(args, c, at));
#if JG_MODE == JG_MODE_STRICT
    return __fadd_rn(__fmul_rn(factor, sum), rest);
#else
    return __fmaf_rn(factor, sum, rest);
#endif
}

__device__ __forceinline__ float read_bias(const jg_args &args, const void *p, u32 at)
{
    const u32 type = FUSION >> JG_FUSE_TYPE_BIAS_SHIFT & 15u;
    if (type == JG_TYPE_F32) return ((const float *)p)[at];
    const u32 bits = ((const u16 *)p)[at];
    return type == JG_TYPE_F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

// Everything that may be fused in, for the element at (row, column).
__device__ __forceinline__ float fused(const jg_args &args, const output &out, u32 row, u32 column, float sum)
{
    const u32 fusion = FUSION;
    const bool swapped = (args.flags & JG_FLAG_SWAPPED) != 0;
    float factor = args.alpha;
    if (fusion & JG_FUSE_SCALE) factor = __fmul_rn(factor, args.scale[0]);
    const float scale_m = fusion & JG_FUSE_SCALE_M ? args.scale_m[row] : 1.0f, scale_n = fusion & JG_FUSE_SCALE_N ? args.scale_n[column] : 1.0f;
    factor = swapped ? __fmul_rn(__fmul_rn(factor, scale_n), scale_m) : __fmul_rn(__fmul_rn(factor, scale_m), scale_n);
    float x = scaled(args, out.c, row * LDC + column, factor, sum);
    // Adding -0 changes nothing.
    const float bias_m = fusion & JG_FUSE_BIAS_M ? read_bias(args, args.bias_m, row) : -0.0f;
    const float bias_n = fusion & JG_FUSE_BIAS_N ? read_bias(args, args.bias_n, column) : -0.0f;
    x = swapped ? __fadd_rn(__fadd_rn(x, bias_n), bias_m) : __fadd_rn(__fadd_rn(x, bias_m), bias_n);
    float residual = 0.0f;
    if (fusion & (JG_FUSE_RESIDUAL | JG_FUSE_RESIDUAL_AFTER)) residual = read_c(args, out.residual, row * args.ld_residual + column);
    if (fusion & JG_FUSE_RESIDUAL) x = __fadd_rn(x, residual);
    x = jg_activate(fusion >> JG_FUSE_ACTIVATION_SHIFT & 7u, x, args.clamp_low, args.clamp_high);
    if (fusion & JG_FUSE_RESIDUAL_AFTER) x = __fadd_rn(x, residual);
    if (fusion & JG_FUSE_REQUANTIZE) x = __fadd_rn(__fmul_rn(x, args.out_scale), args.out_zero);
    return x;
}

// Puts four neighbours of a row of C in place, those with column < n, in as few accesses as VECTOR_C allows.
__device__ __forceinline__ void write_quad(const jg_args &args, void *c, i64 at, u32 column, u32 bytes, const u32 *bits)
{
    const bool whole = VECTOR_C && (!EDGE_N || column + 4 <= DIM_N);
    if (bytes == 4) {
        u32 *p = (u32 *)c + at;
        if (whole) {
            // The compiler cuts some stores of a uint4 in four.
            asm volatile("st.global.v4.b32 [%0], {%1,%2,%3,%4};" ::"l"(__cvta_generic_to_global(p)), "r"(bits[0]), "r"(bits[1]),
                         "r"(bits[2]), "r"(bits[3]) : "memory");
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (column + i < DIM_N) p[i] = bits[i];
        }
    } else if (bytes == 2) {
        u16 *p = (u16 *)c + at;
        if (whole) {
            *(uint2 *)p = make_uint2(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16);
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (column + i < DIM_N) p[i] = (u16)bits[i];
        }
    } else {
        u8 *p = (u8 *)c + at;
        if (whole) {
            *(u32 *)p = bits[0] | bits[1] << 8 | bits[2] << 16 | bits[3] << 24;
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (column + i < DIM_N) p[i] = (u8)bits[i];
        }
    }
}

// Whether a product is finished by alpha and beta alone: then there is a short way. A generic kernel's leaves beta to the
// long way, and simt's, which is unrolled many times, takes but one type of C: that spares a third of their compile time.
#ifdef JG_FUSION
#define PLAIN_BETA true
#else
#define PLAIN_BETA false
#endif
#if JG_FAMILY == JG_FAMILY_SIMT && !defined(JG_FUSION) && MULTIPLY != JG_TYPE_S8
#define PLAIN_TYPE MULTIPLY
#else
#define PLAIN_TYPE TYPE_C
#endif
#if MULTIPLY == JG_TYPE_S8
// Integers stay integers where that is exact.
#define PLAIN_EPILOGUE \
    ((FUSION & JG_FUSE_ANY) == 0 && TYPE_C == JG_TYPE_S32 && (args.alpha == 0.0f || args.alpha == 1.0f) && \
     (args.beta == 0.0f || args.beta == 1.0f))
#elif defined(JG_FLUSH) || defined(JG_SANITIZE)
#define PLAIN_EPILOGUE false
#else
#define PLAIN_EPILOGUE \
    ((FUSION & JG_FUSE_ANY) == 0 && TYPE_C <= JG_TYPE_BF16 && TYPE_C == PLAIN_TYPE && (PLAIN_BETA || args.beta == 0.0f))
#endif

// Stores four neighbours of a row of C by the short way: one branch for the four, and sums beyond the row's end are not told
// apart until they are stored.
__device__ __forceinline__ void store_plain(const jg_args &args, const output &out, u32 row, u32 column, const sum_t *sums)
{
    const i64 at = row * LDC + column;
    const u32 type = PLAIN_TYPE, bytes = MULTIPLY == JG_TYPE_S8 || type == JG_TYPE_F32 ? 4 : 2;
    u32 bits[4];
#if MULTIPLY == JG_TYPE_S8
#pragma unroll
    for (int i = 0; i < 4; i++) bits[i] = (u32)sums[i];
    if (args.beta != 0.0f) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (!EDGE_N || column + i < DIM_N) bits[i] += ((const u32 *)out.c)[at + i];
    }
#else
    float x[4];
    if (!PLAIN_BETA || args.beta == 0.0f) {
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = __fmul_rn(args.alpha, sums[i]);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = !EDGE_N || column + i < DIM_N ? scaled(args, out.c, at + i, args.alpha, sums[i]) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        bits[i] = type == JG_TYPE_F32 ? __float_as_uint(x[i]) : type == JG_TYPE_F16 ? f32_to_f16(x[i]) : f32_to_bf16(x[i]);
#endif
    write_quad(args, out.c, at, column, bytes, bits);
}

// The same by the long way. The four take turns in the first place, so that a loop that is not unrolled keeps them in registers.
__device__ __forceinline__ void store_fused(const jg_args &args, const output &out, u32 row, u32 column, const sum_t *sums)
{
    u32 turn[4];
#pragma unroll
    for (int i = 0; i < 4; i++) turn[i] = __float_as_uint((float)sums[i]);
#pragma unroll UNROLL_LONG
    for (u32 i = 0; i < 4; i++) {
        u32 bits = 0;
        if (column + i < DIM_N) bits = to_c(args, fused(args, out, row, column + i, __uint_as_float(turn[0])));
        turn[0] = turn[1];
        turn[1] = turn[2];
        turn[2] = turn[3];
        turn[3] = bits;
    }
    write_quad(args, out.c, row * LDC + column, column, type_c_bytes(args), turn);
}
