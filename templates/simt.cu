// Family simt: float32 fused multiply-adds on the CUDA cores, any architecture. f32 in; also f16 and bf16,
// converted as they are read, where tensor cores for them are missing (sm_75).
//
// A block computes a JG_BM x JG_BN tile of C, each thread JG_WM x JG_WN of it as groups of 4 x 4. Tiles of A
// and B wait in registers while the previous ones are multiplied, then go to the other of two shared
// buffers. Both are kept with rows along k, so that a thread reads its values as float4.
//
// Each element is the chain fma(a, b, sum) in ascending k from +0, with no padding steps at the end of k: the
// bits are those of the plain loop, whatever the tile.

#define THREADS_N (JG_BN / JG_WN)
#define THREADS ((JG_BM / JG_WM) * THREADS_N)
#define GROUPS_M (JG_WM / 4)
#define GROUPS_N (JG_WN / 4)
#define ROW_A (JG_BM + 4)  // floats; padded against bank conflicts, still 16-byte aligned
#define ROW_B (JG_BN + 4)
#define BUFFER_FLOATS (JG_BK * (ROW_A + ROW_B))
#define QUADS_A ((JG_BM * JG_BK / 4 + THREADS - 1) / THREADS)
#define QUADS_B ((JG_BN * JG_BK / 4 + THREADS - 1) / THREADS)

// Steps of k to unroll; more makes the compiler hoist loads until registers spill.
static const int UNROLL = 128 / (JG_WM * JG_WN);

#if JG_TYPE == JG_TYPE_F32
typedef float element;
__device__ __forceinline__ float to_f32(float value) { return value; }
#elif JG_TYPE == JG_TYPE_F16
typedef u16 element;
__device__ __forceinline__ float to_f32(u16 bits) { return f16_to_f32(bits); }
#else
typedef u16 element;
__device__ __forceinline__ float to_f32(u16 bits) { return bf16_to_f32(bits); }
#endif

// 16-byte loads; 16-bit elements are always read one by one.
#if JG_TYPE != JG_TYPE_F32
#define VECTOR_A false
#define VECTOR_B false
#elif defined(JG_VEC_A)
#define VECTOR_A (JG_VEC_A == 16)
#define VECTOR_B (JG_VEC_B == 16)
#else
#define VECTOR_A ((args.flags & JG_FLAG_VEC_A) != 0)
#define VECTOR_B ((args.flags & JG_FLAG_VEC_B) != 0)
#endif

// Four neighbours in memory, of which the first `valid` exist; the rest are 0.
__device__ __forceinline__ float4 read_quad(const element *p, u32 valid, bool vector)
{
#if JG_TYPE == JG_TYPE_F32
    if (vector && valid == 4) return *(const float4 *)p;
#endif
    float4 q = make_float4(0, 0, 0, 0);
    if (valid > 0) q.x = to_f32(p[0]);
    if (valid > 1) q.y = to_f32(p[1]);
    if (valid > 2) q.z = to_f32(p[2]);
    if (valid > 3) q.w = to_f32(p[3]);
    return q;
}

__device__ __forceinline__ u32 valid_of(u32 at, u32 limit)
{
    return at >= limit ? 0 : limit - at < 4 ? limit - at : 4;
}

// Reads this thread's share of MN x JG_BK elements from (mn0, k0) into registers.
// k_contiguous: neighbours along k are neighbours in memory, so quads lie along k; else along mn.
template <int MN, int QUADS>
__device__ __forceinline__ void fetch(float4 (&quads)[QUADS], const element *global, i64 ld, bool k_contiguous, bool vector,
                                      u32 mn0, u32 k0, u32 mn_limit, u32 k_limit)
{
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        const u32 i = q * THREADS + threadIdx.x;
        if (MN * JG_BK / 4 % THREADS != 0 && i >= MN * JG_BK / 4) break;
        if (k_contiguous) {
            const u32 mn = mn0 + i / (JG_BK / 4), k = k0 + i % (JG_BK / 4) * 4;
            const u32 valid = mn < mn_limit ? valid_of(k, k_limit) : 0;
            quads[q] = read_quad(global + (valid ? mn * ld + k : 0), valid, vector);
        } else {
            const u32 k = k0 + i / (MN / 4), mn = mn0 + i % (MN / 4) * 4;
            const u32 valid = k < k_limit ? valid_of(mn, mn_limit) : 0;
            quads[q] = read_quad(global + (valid ? k * ld + mn : 0), valid, vector);
        }
    }
}

// Puts what fetch read into shared memory, rows along k, ROW floats apart.
template <int MN, int ROW, int QUADS>
__device__ __forceinline__ void put(float *shared, const float4 (&quads)[QUADS], bool k_contiguous)
{
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        const u32 i = q * THREADS + threadIdx.x;
        if (MN * JG_BK / 4 % THREADS != 0 && i >= MN * JG_BK / 4) break;
        if (k_contiguous) {
            float *p = shared + i % (JG_BK / 4) * 4 * ROW + i / (JG_BK / 4);
            p[0] = quads[q].x;
            p[ROW] = quads[q].y;
            p[2 * ROW] = quads[q].z;
            p[3 * ROW] = quads[q].w;
        } else {
            *(float4 *)(shared + i / (MN / 4) * ROW + i % (MN / 4) * 4) = quads[q];
        }
    }
}

// Adds the products of one k. A thread's groups of four lie a quarter, half ... of the tile apart, so that the
// threads of a warp read neighbouring float4s.
__device__ __forceinline__ void multiply_step(float (&sums)[JG_WM][JG_WN], const float *row_a, const float *row_b)
{
    float a[JG_WM], b[JG_WN];
#pragma unroll
    for (int g = 0; g < GROUPS_M; g++) *(float4 *)&a[g * 4] = *(const float4 *)(row_a + g * (JG_BM / GROUPS_M));
#pragma unroll
    for (int g = 0; g < GROUPS_N; g++) *(float4 *)&b[g * 4] = *(const float4 *)(row_b + g * (JG_BN / GROUPS_N));
#pragma unroll
    for (int i = 0; i < JG_WM; i++)
#pragma unroll
        for (int j = 0; j < JG_WN; j++) sums[i][j] = __fmaf_rn(a[i], b[j], sums[i][j]);
}

__device__ __forceinline__ void multiply_item(const jg_args &args, const element *a, const element *b, void *c, float *shared)
{
    u32 tile_m, tile_n;
    tile_of_block(args, tile_m, tile_n);
    const u32 m0 = tile_m * JG_BM, n0 = tile_n * JG_BN;
    const u32 thread_m = threadIdx.x / THREADS_N * 4, thread_n = threadIdx.x % THREADS_N * 4;

    float sums[JG_WM][JG_WN];
#pragma unroll
    for (int i = 0; i < JG_WM * JG_WN; i++) (&sums[0][0])[i] = 0.0f;

    if (args.alpha != 0.0f && DIM_K > 0) {
        float4 quads_a[QUADS_A], quads_b[QUADS_B];
        auto fetch_both = [&](u32 k0) {
            fetch<JG_BM>(quads_a, a, LDA, !TRANS_A, VECTOR_A, m0, k0, DIM_M, DIM_K);
            fetch<JG_BN>(quads_b, b, LDB, TRANS_B, VECTOR_B, n0, k0, DIM_N, DIM_K);
        };
        auto put_both = [&](float *buffer) {
            put<JG_BM, ROW_A>(buffer, quads_a, !TRANS_A);
            put<JG_BN, ROW_B>(buffer + JG_BK * ROW_A, quads_b, TRANS_B);
        };
        fetch_both(0);
        put_both(shared);
        __syncthreads();
#pragma unroll 1
        for (u32 k0 = 0, turn = 0; k0 < DIM_K; k0 += JG_BK, turn ^= 1) {
            const bool more = DIM_K - k0 > JG_BK;
            if (more) fetch_both(k0 + JG_BK);
            const float *row_a = shared + turn * BUFFER_FLOATS + thread_m;
            const float *row_b = shared + turn * BUFFER_FLOATS + JG_BK * ROW_A + thread_n;
            if (DIM_K - k0 >= JG_BK) {
#pragma unroll UNROLL
                for (u32 k = 0; k < JG_BK; k++) multiply_step(sums, row_a + k * ROW_A, row_b + k * ROW_B);
            } else {
#pragma unroll 1
                for (u32 k = 0; k < DIM_K - k0; k++) multiply_step(sums, row_a + k * ROW_A, row_b + k * ROW_B);
            }
            if (more) put_both(shared + (turn ^ 1) * BUFFER_FLOATS);
            __syncthreads();
        }
    }

#pragma unroll
    for (int i = 0; i < JG_WM; i++) {
        const u32 row = m0 + i / 4 * (JG_BM / GROUPS_M) + thread_m + i % 4;
        if (row >= DIM_M) continue;
#pragma unroll
        for (int g = 0; g < GROUPS_N; g++)
            store_c(args, c, row, n0 + g * (JG_BN / GROUPS_N) + thread_n, &sums[i][g * 4]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, JG_MIN_BLOCKS) JG_KERNEL(const jg_args args)
{
    extern __shared__ __align__(128) float buffer[];
    for (u32 item = FIRST_ITEM; item < ITEMS; item += gridDim.y) {
        multiply_item(args, (const element *)args.a + args.stride_a * item, (const element *)args.b + args.stride_b * item,
                      item_of_c(args, item), buffer);
        __syncthreads();  // the next item reuses the buffers
    }
}
