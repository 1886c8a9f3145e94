// Family simt: multiply-adds on the CUDA cores, any architecture and any types: f32; also narrower ones, widened as they are
// read, where tensor cores for them are missing (sm_75) or not wanted (JG_MODE_STRICT).
//
// A block computes a JG_BM x JG_BN tile of C, each thread JG_WM x JG_WN of it as groups of 4 x 4. Tiles of A
// and B wait in registers while the previous ones are multiplied, then go to the other of two shared
// buffers. Both are kept with rows along k, so that a thread reads its values as float4.
//
// Each element is the chain fma(a, b, sum) in ascending k from +0, with no padding steps at the end of k: the
// bits are those of the plain loop, whatever the tile.

#define QUADS_A ((JG_BM * JG_BK / 4 + THREADS - 1) / THREADS)
#define QUADS_B ((JG_BN * JG_BK / 4 + THREADS - 1) / THREADS)
#define GROUPS_M (JG_WM / 4)
#define GROUPS_N (JG_WN / 4)
#define ROW_A (JG_BM + 4)  // elements; padded against bank conflicts, still 16-byte aligned
#define ROW_B (JG_BN + 4)
#define BUFFER_ELEMENTS (JG_BK * (ROW_A + ROW_B))

// Steps of k to unroll; more makes the compiler hoist loads until registers spill.
static const int UNROLL = 128 / (JG_WM * JG_WN);

// sum + a * b in this mode.
__device__ __forceinline__ sum_t multiply_add(value_t a, value_t b, sum_t sum)
{
#if MULTIPLY == JG_TYPE_S8
    return a * b + sum;
#elif JG_MODE == JG_MODE_STRICT && defined(JG_FLUSH)
    float product;
    asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(product) : "f"(a), "f"(b));
    asm("add.rn.ftz.f32 %0, %0, %1;" : "+f"(sum) : "f"(product));
    return sum;
#elif JG_MODE == JG_MODE_STRICT
    return __fadd_rn(sum, __fmul_rn(a, b));
#elif defined(JG_FLUSH)
    asm("fma.rn.ftz.f32 %0, %1, %2, %0;" : "+f"(sum) : "f"(a), "f"(b));
    return sum;
#else
    return __fmaf_rn(a, b, sum);
#endif
}

// Adds the products of one k. A thread's groups of four lie a quarter, half ... of the tile apart, so that the
// threads of a warp read neighbouring float4s.
__device__ __forceinline__ void multiply_step(sum_t (&sums)[JG_WM][JG_WN], const value_t *row_a, const value_t *row_b)
{
    value_t a[JG_WM], b[JG_WN];
#pragma unroll
    for (int g = 0; g < GROUPS_M; g++) *(values_t *)&a[g * 4] = *(const values_t *)(row_a + g * (JG_BM / GROUPS_M));
#pragma unroll
    for (int g = 0; g < GROUPS_N; g++) *(values_t *)&b[g * 4] = *(const values_t *)(row_b + g * (JG_BN / GROUPS_N));
#pragma unroll
    for (int i = 0; i < JG_WM; i++)
#pragma unroll
        for (int j = 0; j < JG_WN; j++) sums[i][j] = multiply_add(a[i], b[j], sums[i][j]);
}

// Stores the sums. In the long way the quads take turns in one set of registers.
__device__ __forceinline__ void write_back(const jg_args &args, const output &out, const sum_t (&sums)[JG_WM][JG_WN], u32 m0, u32 n0)
{
    if (PLAIN_EPILOGUE) {
#pragma unroll
        for (int i = 0; i < JG_WM; i++) {
            const u32 row = m0 + i / 4 * (JG_BM / GROUPS_M) + i % 4;
            if (row >= DIM_M) continue;
#pragma unroll
            for (int g = 0; g < GROUPS_N; g++) store_plain(args, out, row, n0 + g * (JG_BN / GROUPS_N), &sums[i][g * 4]);
        }
    } else {
#pragma unroll UNROLL_LONG
        for (u32 at = 0; at < JG_WM * GROUPS_N; at++) {
            const u32 i = at / GROUPS_N, g = at % GROUPS_N, row = m0 + i / 4 * (JG_BM / GROUPS_M) + i % 4;
            sum_t quad[4] = {0, 0, 0, 0};
#pragma unroll
            for (u32 x = 0; x < JG_WM * GROUPS_N; x++)
#pragma unroll
                for (u32 j = 0; j < 4; j++)
                    if (x == at) quad[j] = sums[x / GROUPS_N][x % GROUPS_N * 4 + j];
            if (row < DIM_M) store_fused(args, out, row, n0 + g * (JG_BN / GROUPS_N), quad);
        }
    }
}

// Computes the tile of block `block` of one item.
__device__ __forceinline__ void multiply_item(const jg_args &args, u32 block, u32 item, u8 *buffer)
{
    value_t *shared = (value_t *)buffer;
    u32 tile_m, tile_n;
    tile_of_block(args, block, tile_m, tile_n);
    const u32 m0 = tile_m * JG_BM, n0 = tile_n * JG_BN;
    const u32 thread_m = threadIdx.x / THREADS_N * 4, thread_n = threadIdx.x % THREADS_N * 4;
    const void *a = (const u8 *)args.a + bytes_of<JG_TYPE_A>(args.stride_a * item);
    const void *b = (const u8 *)args.b + bytes_of<JG_TYPE_B>(args.stride_b * item);
    const weights weights_a = weights_of_item(args, item, DIM_M), weights_b = weights_of_item(args, item, DIM_N);

    sum_t sums[JG_WM][JG_WN];
#pragma unroll
    for (int i = 0; i < JG_WM * JG_WN; i++) (&sums[0][0])[i] = 0;

    if (args.alpha != 0.0f && DIM_K > 0) {
        values_t quads_a[QUADS_A], quads_b[QUADS_B];
        auto fetch_both = [&](u32 k0) {
            fetch<JG_TYPE_A, WEIGHTS_A, JG_BM>(quads_a, args, a, weights_a, LDA, !TRANS_A, VECTOR_A, m0, k0, DIM_M, DIM_K);
            fetch<JG_TYPE_B, WEIGHTS_B, JG_BN>(quads_b, args, b, weights_b, LDB, TRANS_B, VECTOR_B, n0, k0, DIM_N, DIM_K);
        };
        auto put_both = [&](value_t *buffer) {
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
            const value_t *row_a = shared + turn * BUFFER_ELEMENTS + thread_m;
            const value_t *row_b = shared + turn * BUFFER_ELEMENTS + JG_BK * ROW_A + thread_n;
            if (DIM_K - k0 >= JG_BK) {
#pragma unroll UNROLL
                for (u32 k = 0; k < JG_BK; k++) multiply_step(sums, row_a + k * ROW_A, row_b + k * ROW_B);
            } else {
#pragma unroll 1
                for (u32 k = 0; k < DIM_K - k0; k++) multiply_step(sums, row_a + k * ROW_A, row_b + k * ROW_B);
            }
            if (more) put_both(shared + (turn ^ 1) * BUFFER_ELEMENTS);
            __syncthreads();
        }
    }
    write_back(args, output_of_item(args, item), sums, m0 + thread_m, n0 + thread_n);
}
