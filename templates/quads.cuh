// Shared by the families that multiply 32-bit elements: tiles of A and B go through registers, four neighbours at a time, into
// shared memory with rows along k.

#if JG_FAMILY == JG_FAMILY_TF32
#define THREADS ((JG_BM / JG_WM) * (JG_BN / JG_WN) * 32)
#else
#define THREADS_N (JG_BN / JG_WN)
#define THREADS (JG_SLICES * (JG_BM / JG_WM) * THREADS_N)
#endif

// A quad's elements: float32, or int32 as bits.
#if MULTIPLY == JG_TYPE_S8
typedef int value_t;
typedef int4 values_t;
#define MAKE_QUAD make_int4
#else
typedef float value_t;
typedef float4 values_t;
#define MAKE_QUAD make_float4
#endif

// 16-byte loads; narrower elements are always read one by one.
#if JG_TYPE_A != JG_TYPE_F32
#define VECTOR_A false
#define VECTOR_B false
#elif defined(JG_VEC_A)
#define VECTOR_A (JG_VEC_A == 16)
#define VECTOR_B (JG_VEC_B == 16)
#else
#define VECTOR_A ((args.flags & JG_FLAG_VEC_A) != 0)
#define VECTOR_B ((args.flags & JG_FLAG_VEC_B) != 0)
#endif

// The element at `at` in memory, which is (mn, k) of its operand.
template <int TYPE, bool WEIGHTS>
__device__ __forceinline__ value_t read_value(const jg_args &args, const void *p, const weights &w, i64 at, u32 mn, u32 k)
{
    const u32 bits = read_bits<TYPE>(p, at);
#if MULTIPLY == JG_TYPE_S8
    return widen_integer<TYPE>(bits);
#else
    float x = widen<TYPE>(bits);
    if (WEIGHTS && GROUP_CODE) {
        float scale, zero;
        read_group(args, w, mn, k, scale, zero);
        x = widen<MULTIPLY>(dequantise(x, scale, zero));
    }
    return WEIGHTS ? x : clean(x, smallest_normal(TYPE));
#endif
}

// Four neighbours in memory, of which the first `valid` exist; the rest are 0.
template <int TYPE, bool WEIGHTS>
__device__ __forceinline__ values_t read_quad(const jg_args &args, const void *p, const weights &w, i64 at, bool k_contiguous, bool vector,
                                            u32 mn, u32 k, u32 valid)
{
    values_t q = MAKE_QUAD(0, 0, 0, 0);
    if (TYPE == JG_TYPE_F32 && vector && valid == 4) {
        q = *(const values_t *)((const u32 *)p + at);
        q.x = clean(q.x, smallest_normal(TYPE));
        q.y = clean(q.y, smallest_normal(TYPE));
        q.z = clean(q.z, smallest_normal(TYPE));
        q.w = clean(q.w, smallest_normal(TYPE));
        return q;
    }
    const u32 step_k = k_contiguous ? 1 : 0, step_mn = k_contiguous ? 0 : 1;
    if (valid > 0) q.x = read_value<TYPE, WEIGHTS>(args, p, w, at, mn, k);
    if (valid > 1) q.y = read_value<TYPE, WEIGHTS>(args, p, w, at + 1, mn + step_mn, k + step_k);
    if (valid > 2) q.z = read_value<TYPE, WEIGHTS>(args, p, w, at + 2, mn + 2 * step_mn, k + 2 * step_k);
    if (valid > 3) q.w = read_value<TYPE, WEIGHTS>(args, p, w, at + 3, mn + 3 * step_mn, k + 3 * step_k);
    return q;
}

__device__ __forceinline__ u32 quad_valid(u32 at, u32 limit)
{
    return at >= limit ? 0 : limit - at < 4 ? limit - at : 4;
}

// Reads this thread's share of MN x JG_BK elements from (mn0, k0) into registers.
// k_contiguous: neighbours along k are neighbours in memory, so quads lie along k; else along mn.
template <int TYPE, bool WEIGHTS, int MN, int QUADS>
__device__ __forceinline__ void fetch(values_t (&quads)[QUADS], const jg_args &args, const void *global, const weights &w, i64 ld,
                                      bool k_contiguous, bool vector, u32 mn0, u32 k0, u32 mn_limit, u32 k_limit)
{
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        const u32 i = q * THREADS + threadIdx.x;
        if (MN * JG_BK / 4 % THREADS != 0 && i >= MN * JG_BK / 4) break;
        if (k_contiguous) {
            const u32 mn = mn0 + i / (JG_BK / 4), k = k0 + i % (JG_BK / 4) * 4;
            const u32 valid = mn < mn_limit ? quad_valid(k, k_limit) : 0;
            quads[q] = read_quad<TYPE, WEIGHTS>(args, global, w, valid ? mn * ld + k : 0, true, vector, mn, k, valid);
        } else {
            const u32 k = k0 + i / (MN / 4), mn = mn0 + i % (MN / 4) * 4;
            const u32 valid = k < k_limit ? quad_valid(mn, mn_limit) : 0;
            quads[q] = read_quad<TYPE, WEIGHTS>(args, global, w, valid ? k * ld + mn : 0, false, vector, mn, k, valid);
        }
    }
}

// Puts what fetch read into shared memory, rows along k, ROW elements apart.
template <int MN, int ROW, int QUADS>
__device__ __forceinline__ void put(value_t *shared, const values_t (&quads)[QUADS], bool k_contiguous)
{
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        const u32 i = q * THREADS + threadIdx.x;
        if (MN * JG_BK / 4 % THREADS != 0 && i >= MN * JG_BK / 4) break;
        if (k_contiguous) {
            value_t *p = shared + i % (JG_BK / 4) * 4 * ROW + i / (JG_BK / 4);
            p[0] = quads[q].x;
            p[ROW] = quads[q].y;
            p[2 * ROW] = quads[q].z;
            p[3 * ROW] = quads[q].w;
        } else {
            *(values_t *)(shared + i / (MN / 4) * ROW + i % (MN / 4) * 4) = quads[q];
        }
    }
}
