// Family tf32: f32 on tensor cores through mma.sync m16n8k8, sm_80 and up. JG_MODE_TF32 rounds elements to 11 significant bits.
// JG_MODE_3XTF32 splits each into such a part and the rest, rounded likewise, and adds three of the four products: the smallest
// ones, rest by rest, are below float32's last place.
//
// A block computes a JG_BM x JG_BN tile of C; each warp a JG_WM x JG_WN part of it. Tiles wait in registers while the
// previous ones are multiplied, then go to the other of two shared buffers, both with rows along k (quads.cuh).
//
// The order of additions is ascending k in steps of 8, whatever the tile; in each step of JG_MODE_3XTF32 rest x part, part x
// rest, part x part. Tensor cores cut a sum towards zero whenever they add to it, and over hundreds of steps that would cost all
// that the rests have gained. So JG_MODE_3XTF32 has them begin anew in each step, and adds up the steps with rounding to nearest.

#define QUADS_A ((JG_BM * JG_BK / 4 + THREADS - 1) / THREADS)
#define QUADS_B ((JG_BN * JG_BK / 4 + THREADS - 1) / THREADS)
#define ROW_A (JG_BM + 8)  // elements; so that the four k and eight rows of a fragment lie in 32 banks
#define ROW_B (JG_BN + 8)
#define BUFFER_ELEMENTS (JG_BK * (ROW_A + ROW_B))

__device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ u32 to_tf32(float x)
{
    u32 bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return x != x ? 0x7fffe000u : bits;  // a NaN of low bits alone would come out as infinity (seen on an H200)
}

// x as the sum of two of 11 bits. What would be rounded to infinity is cut instead; of an infinity or NaN there is no rest.
__device__ __forceinline__ void split(float x, u32 &part, u32 &rest)
{
    const u32 infinity = 0x7f800000u, bits = __float_as_uint(x);
    part = to_tf32(x);
    const bool finite = (bits & infinity) != infinity;
    if (finite && (part & infinity) == infinity) part = bits & 0xffffe000u;
    rest = finite ? to_tf32(__fsub_rn(x, __uint_as_float(part))) : 0u;
}

// The elements of a fragment, `count` of them, and in JG_MODE_3XTF32 their rests.
template <int COUNT>
__device__ __forceinline__ void split_all(const float (&x)[COUNT], u32 (&part)[COUNT], u32 (&rest)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
#if JG_MODE == JG_MODE_3XTF32
        split(x[i], part[i], rest[i]);
#else
        part[i] = to_tf32(x[i]);
#endif
    }
}

// Adds the products of eight k. shared_a, shared_b: this lane's first elements.
__device__ __forceinline__ void multiply_step(fragment_row (&sums)[FRAGS_M], const float *shared_a, const float *shared_b)
{
    u32 a[FRAGS_M][4], rest_a[FRAGS_M][4], b[FRAGS_N][2], rest_b[FRAGS_N][2];
#pragma unroll
    for (int i = 0; i < FRAGS_M; i++) {
        const float *p = shared_a + i * 16;
        const float x[4] = {p[0], p[8], p[4 * ROW_A], p[4 * ROW_A + 8]};
        split_all<4>(x, a[i], rest_a[i]);
    }
#pragma unroll
    for (int j = 0; j < FRAGS_N; j++) {
        const float *p = shared_b + j * 8;
        const float x[2] = {p[0], p[4 * ROW_B]};
        split_all<2>(x, b[j], rest_b[j]);
    }
#pragma unroll
    for (int i = 0; i < FRAGS_M; i++)
#pragma unroll
        for (int j = 0; j < FRAGS_N; j++) {
#if JG_MODE == JG_MODE_3XTF32
            float step[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            mma(step, rest_a[i], b[j]);
            mma(step, a[i], rest_b[j]);
            mma(step, a[i], b[j]);
#pragma unroll
            for (int x = 0; x < 4; x++) sums[i][j][x] = __fadd_rn(sums[i][j][x], step[x]);
#else
            mma(sums[i][j], a[i], b[j]);
#endif
        }
}

// Computes the tile of block `block` of one item.
__device__ __forceinline__ void multiply_item(const jg_args &args, u32 block, u32 item, u8 *buffer)
{
    float *shared = (float *)buffer;
    u32 tile_m, tile_n;
    tile_of_block(args, block, tile_m, tile_n);
    const u32 m0 = tile_m * JG_BM, n0 = tile_n * JG_BN;
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u32 warp_m = warp / WARPS_N * JG_WM, warp_n = warp % WARPS_N * JG_WN;
    const float *a = (const float *)args.a + args.stride_a * item, *b = (const float *)args.b + args.stride_b * item;
    const weights none = {nullptr, nullptr, 0};

    fragment_row sums[FRAGS_M];
#pragma unroll
    for (int i = 0; i < FRAGS_M * FRAGS_N * 4; i++) (&sums[0][0][0])[i] = 0.0f;

    if (args.alpha != 0.0f && DIM_K > 0) {
        values_t quads_a[QUADS_A], quads_b[QUADS_B];
        auto fetch_both = [&](u32 k0) {
            fetch<JG_TYPE_A, false, JG_BM>(quads_a, args, a, none, LDA, !TRANS_A, VECTOR_A, m0, k0, DIM_M, DIM_K);
            fetch<JG_TYPE_B, false, JG_BN>(quads_b, args, b, none, LDB, TRANS_B, VECTOR_B, n0, k0, DIM_N, DIM_K);
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
            const float *tile_a = shared + turn * BUFFER_ELEMENTS + (lane & 3) * ROW_A + warp_m + (lane >> 2);
            const float *tile_b = shared + turn * BUFFER_ELEMENTS + JG_BK * ROW_A + (lane & 3) * ROW_B + warp_n + (lane >> 2);
#pragma unroll
            for (u32 k = 0; k < JG_BK; k += 8) multiply_step(sums, tile_a + k * ROW_A, tile_b + k * ROW_B);
            if (more) put_both(shared + (turn ^ 1) * BUFFER_ELEMENTS);
            __syncthreads();
        }
    }
    const u32 slab = (u32)__cvta_generic_to_shared(shared) + warp * SLAB_BYTES;
    write_back(args, output_of_item(args, item), sums, m0 + warp_m, n0 + warp_n, slab, lane);
}
