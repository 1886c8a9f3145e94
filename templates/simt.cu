// Family simt: multiply-adds on the CUDA cores, any architecture and any types: f32; also narrower ones, widened as they are
// read, where tensor cores for them are missing (sm_75) or not wanted (JG_MODE_STRICT).
//
// A block computes a JG_BM x JG_BN tile of C. Its threads form JG_SLICES groups, each of which computes all of the tile, but
// takes only every JG_SLICES-th k; each thread has JG_WM x JG_WN elements as groups of 4 x 4. Tiles of A and B go through
// JG_STAGES buffers in shared memory, both with rows along k, so that a thread reads its values as float4. f32 as it is comes
// there by cp.async: 16 bytes at a time where rows along k in memory are aligned, else element by element, which any address
// allows and which transposes on the way. What must be converted waits in registers while a tile is multiplied.
//
// Each slice's sum is the chain fma(a, b, sum) in ascending k from +0, with no padding steps at the end of k; the slices are
// added up in their order. With one slice the bits are those of the plain loop; they never depend on the tile.

#define THREADS_M (JG_BM / JG_WM)
#define SLICE_THREADS (THREADS_M * THREADS_N)
#define GROUPS_M (JG_WM / 4)
#define GROUPS_N (JG_WN / 4)
// Elements of a row of shared memory: padded so that elements one below the other, four wide, lie in different banks, and
// still aligned to 16 bytes.
#define ROW_A (JG_BM % 8 == 0 ? JG_BM + 4 : JG_BM)
#define ROW_B (JG_BN % 8 == 0 ? JG_BN + 4 : JG_BN)
#define STAGE_ELEMENTS (JG_BK * (ROW_A + ROW_B))
#define STEPS (JG_BK / JG_SLICES)  // of k, of a slice in a stage

// Of these, so many are unrolled: all of a stage, as a rule, so that copies and multiply-adds are one stretch of code; of 1024
// multiply-adds at most, which a compiler takes a while for.
#define UNROLL (JG_WM * JG_WN * STEPS <= 1024 ? STEPS : 1024 / (JG_WM * JG_WN))

#if STEPS % UNROLL != 0 || UNROLL % 2 != 0
#error "fragments of two k take turns, so a slice has an even number of k in a stage"
#endif

#if JG_TYPE_A == JG_TYPE_F32 && !defined(JG_FLUSH) && !defined(JG_SANITIZE) && __CUDA_ARCH__ >= 800
#define COPIES 1
#else
#define COPIES 0
#endif

#if COPIES

template <int BYTES>
__device__ __forceinline__ void cp_async(u32 shared, const void *global, u32 valid_bytes)
{
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(valid_bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(global), "r"(valid_bytes) : "memory");
}

// A thread's share of an operand's copies of a stage: where its first element comes from, where that goes, and how many elements
// exist from there on.
struct share {
    const float *global;
    u32 shared, outer;
    int mn_left, k_left;
};

// The copies of a tile of MN x JG_BK elements into rows along k, ROW apart: WIDTH neighbours in memory at a time, LANES
// neighbouring threads in a row of it. What depends on the thread is worked out once: copies run between multiply-adds and must
// cost little.
template <int MN, int ROW, bool K_CONTIGUOUS, int WIDTH, int LANES, bool EDGE_MN>
struct copies {
    static const int INNER = K_CONTIGUOUS ? JG_BK : MN, OUTER = K_CONTIGUOUS ? MN : JG_BK;
    static const int ROWS = THREADS / LANES;  // at once

    __device__ __forceinline__ static void aim(share &s, i64 ld)
    {
        const u32 inner = threadIdx.x % LANES * WIDTH, outer = threadIdx.x / LANES;
        s.shared += (K_CONTIGUOUS ? inner * ROW + outer : inner + outer * ROW) * 4;
        s.global += outer * ld + inner;
        s.outer = outer;
        s.mn_left -= K_CONTIGUOUS ? outer : inner;
        if (EDGE_K) s.k_left -= K_CONTIGUOUS ? inner : outer;
    }

    // One of `parts` parts of a stage's. What does not exist is filled with zeros.
    __device__ __forceinline__ static void copy(const share &s, i64 ld, int part, int parts)
    {
        int n = 0;
#pragma unroll
        for (int y = 0; y < OUTER; y += ROWS) {
#pragma unroll
            for (int x = 0; x < INNER; x += LANES * WIDTH) {
                if (n++ % parts != part) continue;
                if (OUTER % ROWS != 0 && s.outer + y >= OUTER) continue;
                const int mn = K_CONTIGUOUS ? y : x, k = K_CONTIGUOUS ? x : y;
                const int have = EDGE_MN ? s.mn_left - mn : WIDTH;
                u32 bytes = have <= 0 ? 0 : have < WIDTH ? have * 4 : WIDTH * 4;
                if ((EDGE_K ? s.k_left - k : s.k_left) <= 0) bytes = 0;
                cp_async<WIDTH * 4>(s.shared + (k * ROW + mn) * 4, s.global + y * ld + x, bytes);
            }
        }
    }
};

// Eight threads along k and four along mn fill 32 banks from whole sectors; more along k where a short tile would leave threads
// idle.
#define LANES_K(MN) (THREADS > 8 * MN && JG_BK * MN % THREADS == 0 && THREADS % MN == 0 ? THREADS / MN : JG_BK % 8 == 0 ? 8 : 4)

// For one operand, calls `copies` that fit it. k_contiguous: neighbours along k are neighbours in memory. quads: rows along k
// begin at multiples of 16 bytes.
#define WITH_COPIES(MN, ROW, k_contiguous, quads, edge, call)                                       \
    do {                                                                                            \
        if (k_contiguous) copies<MN, ROW, true, 1, LANES_K(MN), edge>::call;                        \
        else if (quads) copies<MN, ROW, false, 4, MN / 4 < THREADS ? MN / 4 : THREADS, edge>::call; \
        else copies<MN, ROW, false, 1, MN < THREADS ? MN : THREADS, edge>::call;                    \
    } while (0)

// So many parts a stage's copies are dealt out in, among its first steps: a burst would keep reads of shared memory waiting, but
// ptxas puts three empty reads before each part. A kernel that does not know which copies fit would hold them all in each
// part.
#if defined(JG_TRANS_A) && defined(JG_VEC_A)
#define PARTS (UNROLL != STEPS || STEPS < 4 ? 1 : STEPS < 8 || (JG_VEC_A == 16 && JG_VEC_B == 16) ? 2 : 4)
#else
#define PARTS 1
#endif

#else

#define QUADS_A ((JG_BM * JG_BK / 4 + THREADS - 1) / THREADS)
#define QUADS_B ((JG_BN * JG_BK / 4 + THREADS - 1) / THREADS)
#define PARTS 1

#endif

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

__device__ __forceinline__ u32 bits_of(sum_t x)
{
#if MULTIPLY == JG_TYPE_S8
    return (u32)x;
#else
    return __float_as_uint(x);
#endif
}

// Adds in this mode.
__device__ __forceinline__ sum_t add(sum_t x, sum_t y)
{
#if MULTIPLY == JG_TYPE_S8
    return x + y;
#elif defined(JG_FLUSH)
    asm("add.rn.ftz.f32 %0, %0, %1;" : "+f"(x) : "f"(y));
    return x;
#else
    return __fadd_rn(x, y);
#endif
}

// What a thread multiplies of one k.
struct fragment {
    value_t a[JG_WM], b[JG_WN];
};

// A thread's groups of four lie a half, a quarter ... of the tile apart, so that the threads of a warp read neighbouring float4s.
__device__ __forceinline__ void read_fragment(fragment &f, const value_t *row_a, const value_t *row_b)
{
#pragma unroll
    for (int g = 0; g < GROUPS_M; g++) *(values_t *)&f.a[g * 4] = *(const values_t *)(row_a + g * (JG_BM / GROUPS_M));
#pragma unroll
    for (int g = 0; g < GROUPS_N; g++) *(values_t *)&f.b[g * 4] = *(const values_t *)(row_b + g * (JG_BN / GROUPS_N));
}

__device__ __forceinline__ void multiply(sum_t (&sums)[JG_WM][JG_WN], const fragment &f)
{
#pragma unroll
    for (int i = 0; i < JG_WM; i++)
#pragma unroll
        for (int j = 0; j < JG_WN; j++) sums[i][j] = multiply_add(f.a[i], f.b[j], sums[i][j]);
}

// Where in the tile a thread's first group lies. Warps are blocks of four by eight threads, if there are as many, in which
// threads next to each other differ in m, and pairs of them in n: two halves of a warp that each read at most eight different
// float4s, in pairs, are served in two cycles.
__device__ __forceinline__ void place_thread(u32 thread, u32 &m, u32 &n)
{
    const u32 lanes_m = THREADS_M % 4 == 0 ? 4 : THREADS_M % 2 == 0 ? 2 : 1;
    const u32 lanes_n = THREADS_N % 8 == 0 ? 8 : THREADS_N % 4 == 0 ? 4 : THREADS_N % 2 == 0 ? 2 : 1;
    const u32 pair = lanes_m < 2 ? 1 : 2, blocks_n = THREADS_N / lanes_n;
    const u32 block = thread / (lanes_m * lanes_n), lane = thread % (lanes_m * lanes_n);
    m = (block / blocks_n * lanes_m + lane % pair + lane / (pair * lanes_n) * pair) * 4;
    n = (block % blocks_n * lanes_n + lane / pair % lanes_n) * 4;
}

// Quads of C that a thread stores in a row, unrolled where the code is short.
#if defined(JG_FUSION) && (JG_FUSION & JG_FUSE_ANY) == 0
static const int UNROLL_QUADS = 2;
#else
static const int UNROLL_QUADS = 1;
#endif

#define PART_ROWS (JG_BM / GROUPS_M)
#define PART_ROW (JG_BN + 4)  // elements
#define PART_ELEMENTS (PART_ROWS * PART_ROW)

// Four sums to shared memory, in one store whatever the compiler knows of the address.
__device__ __forceinline__ void put_quad(u32 shared, const sum_t *x)
{
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(shared), "r"(bits_of(x[0])), "r"(bits_of(x[1])),
                 "r"(bits_of(x[2])), "r"(bits_of(x[3])) : "memory");
}

// Adds up the slices and stores C, by as many rows of the tile as one group of four a thread makes: each slice puts its sums into
// shared memory, then all threads add and store whole rows. The groups take turns in the first one's registers.
__device__ __forceinline__ void write_back(const jg_args &args, const output &out, sum_t (&sums)[JG_WM][JG_WN], sum_t *shared,
                                           u32 slice, u32 thread_m, u32 thread_n, u32 m0, u32 n0)
{
    const u32 mine = (u32)__cvta_generic_to_shared(shared + slice * PART_ELEMENTS + thread_m * PART_ROW + thread_n);
#pragma unroll 1
    for (u32 part = 0; part < GROUPS_M; part++) {
        __syncthreads();  // stages, or the part before, are read
#pragma unroll
        for (u32 i = 0; i < 4; i++)
#pragma unroll
            for (u32 g = 0; g < GROUPS_N; g++) put_quad(mine + (i * PART_ROW + g * (JG_BN / GROUPS_N)) * 4, &sums[i][g * 4]);
#pragma unroll
        for (u32 i = 4; i < JG_WM; i++)
#pragma unroll
            for (u32 j = 0; j < JG_WN; j++) sums[i - 4][j] = sums[i][j];
        __syncthreads();
#pragma unroll UNROLL_QUADS
        for (u32 at = threadIdx.x; at < PART_ROWS * JG_BN / 4; at += THREADS) {
            const u32 i = at / (JG_BN / 4), column = at % (JG_BN / 4) * 4, row = m0 + part * PART_ROWS + i;
            const sum_t *from = shared + i * PART_ROW + column;
            sum_t quad[4];
            *(values_t *)quad = *(const values_t *)from;
#pragma unroll
            for (u32 s = 1; s < JG_SLICES; s++) {
                sum_t other[4];
                *(values_t *)other = *(const values_t *)(from + s * PART_ELEMENTS);
#pragma unroll
                for (u32 x = 0; x < 4; x++) quad[x] = add(quad[x], other[x]);
            }
            if (row >= DIM_M || n0 + column >= DIM_N) continue;
            if (PLAIN_EPILOGUE) store_plain(args, out, row, n0 + column, quad);
            else store_fused(args, out, row, n0 + column, quad);
        }
    }
}

// Computes the tile of block `block` of one item.
__device__ __forceinline__ void multiply_item(const jg_args &args, u32 block, u32 item, u8 *buffer)
{
    value_t *shared = (value_t *)buffer;
    u32 tile_m, tile_n, thread_m, thread_n;
    tile_of_block(args, block, tile_m, tile_n);
    place_thread(threadIdx.x % SLICE_THREADS, thread_m, thread_n);
    const u32 m0 = tile_m * JG_BM, n0 = tile_n * JG_BN, slice = threadIdx.x / SLICE_THREADS;
    const void *a = (const u8 *)args.a + bytes_of<JG_TYPE_A>(args.stride_a * item);
    const void *b = (const u8 *)args.b + bytes_of<JG_TYPE_B>(args.stride_b * item);

    sum_t sums[JG_WM][JG_WN];
#pragma unroll
    for (int i = 0; i < JG_WM * JG_WN; i++) (&sums[0][0])[i] = 0;

    if (args.alpha != 0.0f && DIM_K > 0) {
        const u32 whole = DIM_K / JG_BK;  // stages of JG_BK
        const int last_slot = (JG_STAGES - 1) * STAGE_ELEMENTS;
#if COPIES
        const u32 address = (u32)__cvta_generic_to_shared(shared);
        const float *const corner_a = (const float *)a + (TRANS_A ? (i64)m0 : m0 * LDA);
        const float *const corner_b = (const float *)b + (TRANS_B ? n0 * LDB : (i64)n0);
        share share_a = {corner_a, address, 0, (int)(DIM_M - m0), (int)DIM_K};
        share share_b = {corner_b, address + JG_BK * ROW_A * 4, 0, (int)(DIM_N - n0), (int)DIM_K};
        WITH_COPIES(JG_BM, ROW_A, !TRANS_A, VECTOR_A, EDGE_M, aim(share_a, LDA));
        WITH_COPIES(JG_BN, ROW_B, TRANS_B, VECTOR_B, EDGE_N, aim(share_b, LDB));
        // Also of stages past the end, which are zeros: that costs less than to ask.
        auto begin_stage = [&](u32, u32 part, u32 parts) {
            WITH_COPIES(JG_BN, ROW_B, TRANS_B, VECTOR_B, EDGE_N, copy(share_b, LDB, part, parts));
            WITH_COPIES(JG_BM, ROW_A, !TRANS_A, VECTOR_A, EDGE_M, copy(share_a, LDA, part, parts));
        };
        auto end_stage = [&](int forward) {
            asm volatile("cp.async.commit_group;" ::: "memory");
            share_a.shared += forward * 4;
            share_b.shared += forward * 4;
            share_a.global += TRANS_A ? JG_BK * LDA : JG_BK;
            share_b.global += TRANS_B ? JG_BK : JG_BK * LDB;
            share_a.k_left -= JG_BK;
            share_b.k_left -= JG_BK;
        };
        auto wait_for_stage = [] { asm volatile("cp.async.wait_group %0;" ::"n"(JG_STAGES - 2) : "memory"); };
        auto wait_for_all = [] { asm volatile("cp.async.wait_all;" ::: "memory"); };
#else
        const weights weights_a = weights_of_item(args, item, DIM_M), weights_b = weights_of_item(args, item, DIM_N);
        values_t quads_a[QUADS_A], quads_b[QUADS_B];
        value_t *free_a = shared;
        auto begin_stage = [&](u32 stage, u32, u32) {
            const u32 k0 = stage * JG_BK;
            fetch<JG_TYPE_A, WEIGHTS_A, JG_BM>(quads_a, args, a, weights_a, LDA, !TRANS_A, VECTOR_A, m0, k0, DIM_M, DIM_K);
            fetch<JG_TYPE_B, WEIGHTS_B, JG_BN>(quads_b, args, b, weights_b, LDB, TRANS_B, VECTOR_B, n0, k0, DIM_N, DIM_K);
        };
        auto end_stage = [&](int forward) {
            put<JG_BM, ROW_A>(free_a, quads_a, !TRANS_A);
            put<JG_BN, ROW_B>(free_a + JG_BK * ROW_A, quads_b, TRANS_B);
            free_a += forward;
        };
        auto wait_for_all = [] {};
        auto wait_for_stage = [] {};
#endif
#pragma unroll 1
        for (u32 i = 0; i < JG_STAGES - 1; i++) {
            begin_stage(i, 0, 1);
            end_stage(STAGE_ELEMENTS);
        }
        wait_for_stage();
        __syncthreads();

        const value_t *row_a = shared + slice * ROW_A + thread_m, *row_b = shared + JG_BK * ROW_A + slice * ROW_B + thread_n;
        fragment f[2];
        read_fragment(f[0], row_a, row_b);
        // In elements: the slot that is read, and how far it is from the one that is filled, which was read before, to the next.
        int slot = 0, fill_forward = -last_slot;
#pragma unroll 1
        for (u32 stage = 0; stage < whole; stage++) {
            const int forward = slot == last_slot ? -last_slot : STAGE_ELEMENTS;
#pragma unroll 1
            for (u32 step = 0; step < STEPS; step += UNROLL) {
#pragma unroll
                for (u32 i = 0; i < UNROLL; i++) {
                    row_a += JG_SLICES * ROW_A;
                    row_b += JG_SLICES * ROW_B;
                    if (i == UNROLL - 1 && step + UNROLL == STEPS) {
                        end_stage(fill_forward);
                        wait_for_stage();
                        __syncthreads();
                        slot += forward;
                        fill_forward = forward;
                        row_a += forward - JG_BK * ROW_A;
                        row_b += forward - JG_BK * ROW_B;
                    }
                    read_fragment(f[(i + 1) % 2], row_a, row_b);
                    // All parts come before the last step, with which the stage ends.
                    if (i < PARTS && step == 0) begin_stage(stage + JG_STAGES - 1, i, PARTS);
                    multiply(sums, f[i % 2]);
                }
            }
        }
#pragma unroll 1
        for (u32 k = slice; k < DIM_K - whole * JG_BK; k += JG_SLICES) {
            read_fragment(f[0], row_a, row_b);
            multiply(sums, f[0]);
            row_a += JG_SLICES * ROW_A;
            row_b += JG_SLICES * ROW_B;
        }
        wait_for_all();  // sums take the stages' place
    }
    write_back(args, output_of_item(args, item), sums, shared, slice, thread_m, thread_n, m0, n0);
}
