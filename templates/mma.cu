// Family mma: tensor cores through mma.sync m16n8k16, f16 or bf16 in, float32 accumulate. sm_80 and up.
//
// A block computes a JG_BM x JG_BN tile of C; each warp a JG_WM x JG_WN part of it. Tiles of A and B go
// through JG_STAGES buffers in shared memory, filled by cp.async, and from there by ldmatrix into
// registers. Shared memory is kept in chunks of 8 elements (16 bytes), XOR-swizzled so that the eight rows
// an ldmatrix reads lie in different banks.
//
// Two shared layouts, by what is contiguous in global memory: "k-major" (rows along m or n, k contiguous)
// and "mn-major" (rows along k). Operands whose rows are not even 4-byte aligned are read element by
// element, by any strides, into the k-major layout; there the transposition can be a launch argument.
//
// The order of additions is ascending k in steps of 16, whatever the tile: all kernels of this family give the same bits.

#define WARPS_N (JG_BN / JG_WN)
#define THREADS ((JG_BM / JG_WM) * WARPS_N * 32)
#define FRAGS_M (JG_WM / 16)
#define FRAGS_N (JG_WN / 8)
#define STAGE_A_BYTES (JG_BM * JG_BK * 2)
#define STAGE_B_BYTES (JG_BN * JG_BK * 2)
#define STAGE_BYTES (STAGE_A_BYTES + STAGE_B_BYTES)
#define SLAB_ROW (JG_WN + 4)  // floats; padded against bank conflicts
#define SLAB_BYTES (16 * SLAB_ROW * 4)

// A vector width of 2 bytes means element-wise loads.
#if JG_VEC_A == 2
#define A_KMAJOR true
#else
#define A_KMAJOR (JG_TRANS_A == 0)
#endif
#if JG_VEC_B == 2
#define B_KMAJOR true
#else
#define B_KMAJOR (JG_TRANS_B != 0)
#endif

template <int BYTES>
__device__ __forceinline__ void cp_async(u32 shared, const void *global, u32 valid_bytes)
{
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(valid_bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(global), "n"(BYTES), "r"(valid_bytes) : "memory");
}

__device__ __forceinline__ void cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING>
__device__ __forceinline__ void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

__device__ __forceinline__ void ldmatrix(u32 (&r)[4], u32 shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared) : "memory");
}

__device__ __forceinline__ void ldmatrix_trans(u32 (&r)[4], u32 shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared) : "memory");
}

__device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
#if JG_TYPE == JG_TYPE_F16
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#endif
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Byte offset of a chunk in a shared tile of CHUNKS chunks a row.
template <int CHUNKS>
__device__ __forceinline__ u32 chunk_at(u32 row, u32 chunk)
{
    const u32 turn = CHUNKS >= 8 ? row & 7 : CHUNKS == 4 ? row >> 1 & 3 : row >> 2 & 1;
    return (row * CHUNKS + (chunk ^ turn)) * 16;
}

// Copies one chunk, of which the first `valid` elements exist, and zero-fills the rest.
template <int VEC>
__device__ __forceinline__ void copy_chunk(u32 shared, const u16 *global, u32 valid)
{
    const u32 per = VEC / 2;
#pragma unroll
    for (u32 i = 0; i < 16 / VEC; i++) {
        u32 have = valid <= i * per ? 0 : valid - i * per < per ? valid - i * per : per;
        cp_async<VEC>(shared + i * VEC, have ? global + i * per : global, have * 2);
    }
}

// The same, element by element, `step` elements apart in global memory.
__device__ __forceinline__ void gather_chunk(u32 shared, const u16 *global, i64 step, u32 valid)
{
    u32 v[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) v[i] = i < valid ? global[i * step] : 0;
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(shared), "r"(v[0] | v[1] << 16), "r"(v[2] | v[3] << 16),
                 "r"(v[4] | v[5] << 16), "r"(v[6] | v[7] << 16) : "memory");
}

__device__ __forceinline__ u32 valid_of(u32 at, u32 limit)
{
    return at >= limit ? 0 : limit - at < 8 ? limit - at : 8;
}

// Brings one stage of one operand, MN x JG_BK elements from (mn0, k0), into shared memory.
// k_contiguous: neighbours along k are neighbours in memory.
template <int MN, int VEC, bool KMAJOR>
__device__ __forceinline__ void load_operand(u32 shared, const u16 *global, i64 ld, bool k_contiguous,
                                             u32 mn0, u32 k0, u32 mn_limit, u32 k_limit)
{
    const u32 chunks = MN * JG_BK / 8;
#pragma unroll
    for (u32 base = 0; base < chunks; base += THREADS) {
        const u32 i = base + threadIdx.x;
        if (chunks % THREADS != 0 && i >= chunks) break;
        if (VEC == 2) {
            // Threads of a warp walk along what is contiguous.
            const u32 row = k_contiguous ? i / (JG_BK / 8) : i % MN;
            const u32 chunk = k_contiguous ? i % (JG_BK / 8) : i / MN;
            const u32 mn = mn0 + row, k = k0 + chunk * 8;
            const u32 valid = mn < mn_limit ? valid_of(k, k_limit) : 0;
            const i64 at = k_contiguous ? mn * ld + k : k * ld + mn;
            gather_chunk(shared + chunk_at<JG_BK / 8>(row, chunk), valid ? global + at : global, k_contiguous ? 1 : ld, valid);
        } else {
            const u32 per_row = KMAJOR ? JG_BK / 8 : MN / 8;
            const u32 row = i / per_row, chunk = i % per_row;
            const u32 outer = (KMAJOR ? mn0 : k0) + row, inner = (KMAJOR ? k0 : mn0) + chunk * 8;
            const u32 valid = outer < (KMAJOR ? mn_limit : k_limit) ? valid_of(inner, KMAJOR ? k_limit : mn_limit) : 0;
            copy_chunk<VEC == 2 ? 4 : VEC>(shared + chunk_at<per_row>(row, chunk), valid ? global + outer * ld + inner : global, valid);
        }
    }
}

// A's fragment for rows row0 .. row0+15 and the 16 values of k at step: lanes 0-7 and 8-15 address the upper and
// lower rows of the first eight k, lanes 16-31 those of the second.
__device__ __forceinline__ void load_fragment_a(u32 (&r)[4], u32 shared, u32 row0, u32 step, u32 lane)
{
    if (A_KMAJOR) ldmatrix(r, shared + chunk_at<JG_BK / 8>(row0 + (lane & 15), step * 2 + (lane >> 4)));
    else ldmatrix_trans(r, shared + chunk_at<JG_BM / 8>(step * 16 + (lane & 7) + (lane >> 4) * 8, row0 / 8 + (lane >> 3 & 1)));
}

// B's fragments for columns column0 .. +15: r[0], r[1] for the first eight, r[2], r[3] for the others.
__device__ __forceinline__ void load_fragment_b(u32 (&r)[4], u32 shared, u32 column0, u32 step, u32 lane)
{
    if (B_KMAJOR) ldmatrix(r, shared + chunk_at<JG_BK / 8>(column0 + (lane & 7) + (lane >> 4) * 8, step * 2 + (lane >> 3 & 1)));
    else ldmatrix_trans(r, shared + chunk_at<JG_BN / 8>(step * 16 + (lane & 15), column0 / 8 + (lane >> 4)));
}

__device__ __forceinline__ void multiply_stage(float (&sums)[FRAGS_M][FRAGS_N][4], u32 shared_a, u32 shared_b,
                                               u32 warp_m, u32 warp_n, u32 lane)
{
#pragma unroll
    for (u32 step = 0; step < JG_BK / 16; step++) {
        u32 a[FRAGS_M][4], b[FRAGS_N / 2][4];
#pragma unroll
        for (int i = 0; i < FRAGS_M; i++) load_fragment_a(a[i], shared_a, warp_m + i * 16, step, lane);
#pragma unroll
        for (int j = 0; j < FRAGS_N / 2; j++) load_fragment_b(b[j], shared_b, warp_n + j * 16, step, lane);
#pragma unroll
        for (int i = 0; i < FRAGS_M; i++)
#pragma unroll
            for (int j = 0; j < FRAGS_N; j++) mma(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
}

// Writes a warp's sums to C by way of shared memory, 16 rows at a time: so a row's neighbours are stored together,
// and the many cases of an element's way to C are compiled once a slab, not once a fragment.
__device__ __forceinline__ void write_back(const jg_args &args, const float (&sums)[FRAGS_M][FRAGS_N][4], void *c,
                                           u32 row0, u32 column0, u32 slab, u32 lane)
{
    __syncthreads();  // the slabs lie where other warps may still read tiles
#pragma unroll
    for (int i = 0; i < FRAGS_M; i++) {
        // A thread holds two neighbours of a row, and two more eight rows below.
#pragma unroll
        for (int j = 0; j < FRAGS_N; j++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const u32 at = slab + ((half * 8 + (lane >> 2)) * SLAB_ROW + j * 8 + (lane & 3) * 2) * 4;
                asm volatile("st.shared.v2.f32 [%0], {%1,%2};" ::"r"(at), "f"(sums[i][j][half * 2]), "f"(sums[i][j][half * 2 + 1]) : "memory");
            }
        __syncwarp();
#pragma unroll 1
        for (u32 quad = lane; quad < 16 * JG_WN / 4; quad += 32) {
            const u32 row = quad / (JG_WN / 4), column = quad % (JG_WN / 4) * 4;
            float v[4];
            asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                         : "r"(slab + (row * SLAB_ROW + column) * 4) : "memory");
            if (row0 + i * 16 + row < DIM_M) store_c(args, c, row0 + i * 16 + row, column0 + column, v);
        }
        __syncwarp();
    }
}

__device__ __forceinline__ void multiply_item(const jg_args &args, const u16 *a, const u16 *b, void *c, u32 shared)
{
    u32 tile_m, tile_n;
    tile_of_block(args, tile_m, tile_n);
    const u32 m0 = tile_m * JG_BM, n0 = tile_n * JG_BN;
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u32 warp_m = warp / WARPS_N * JG_WM, warp_n = warp % WARPS_N * JG_WN;

    float sums[FRAGS_M][FRAGS_N][4];
#pragma unroll
    for (int i = 0; i < FRAGS_M * FRAGS_N * 4; i++) (&sums[0][0][0])[i] = 0.0f;

    if (args.alpha != 0.0f) {
        const u32 steps = (DIM_K + JG_BK - 1) / JG_BK;
        auto load = [&](u32 step) {
            const u32 stage = shared + step % JG_STAGES * STAGE_BYTES;
            if (step < steps) {
                load_operand<JG_BM, JG_VEC_A, A_KMAJOR>(stage, a, LDA, !TRANS_A, m0, step * JG_BK, DIM_M, DIM_K);
                load_operand<JG_BN, JG_VEC_B, B_KMAJOR>(stage + STAGE_A_BYTES, b, LDB, TRANS_B, n0, step * JG_BK, DIM_N, DIM_K);
            }
            cp_async_commit();
        };
        for (u32 step = 0; step < JG_STAGES - 1; step++) load(step);
#pragma unroll 1
        for (u32 step = 0; step < steps; step++) {
            cp_async_wait<JG_STAGES - 2>();
            __syncthreads();
            load(step + JG_STAGES - 1);
            const u32 stage = shared + step % JG_STAGES * STAGE_BYTES;
            multiply_stage(sums, stage, stage + STAGE_A_BYTES, warp_m, warp_n, lane);
        }
        cp_async_wait<0>();
    }

    write_back(args, sums, c, m0 + warp_m, n0 + warp_n, shared + warp * SLAB_BYTES, lane);
}

extern "C" __global__ void __launch_bounds__(THREADS, JG_MIN_BLOCKS) JG_KERNEL(const jg_args args)
{
    extern __shared__ __align__(128) unsigned char buffer[];
    const u32 shared = (u32)__cvta_generic_to_shared(buffer);
    for (u32 item = FIRST_ITEM; item < ITEMS; item += gridDim.y) {
        multiply_item(args, (const u16 *)args.a + args.stride_a * item, (const u16 *)args.b + args.stride_b * item,
                      item_of_c(args, item), shared);
        __syncthreads();  // the next item reuses the buffers
    }
}
