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

// Of these, so many are unrolled, as a stage of 8 x 8 threads in full takes too long to compile.
#define UNROLL (JG_WM * JG_WN * STEPS <= 256 ? STEPS : 256 / (JG_WM * JG_WN))

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

// Copies a tile of OUTER rows, INNER elements of each, WIDTH at a time, of which outer_left and inner_left exist in memory; the
// rest is filled with zeros. LANES neighbouring threads share a row. TO_: elements in shared memory from one to the next.
template <int WIDTH, int LANES, int INNER, int OUTER, int TO_INNER, int TO_OUTER>
__device__ __forceinline__ void copy_tile(u32 shared, const float *global, i64 ld, int inner_left, int outer_left)
{
    const int rows = THREADS / LANES;  // at once
    const u32 inner = threadIdx.x % LANES * WIDTH, outer = threadIdx.x / LANES;
    shared += (inner * TO_INNER + outer * TO_OUTER) * 4;
    global += outer * ld + inner;
    inner_left -= (int)inner;
    outer_left -= (int)outer;
#pragma unroll
    for (int y = 0; y < OUTER; y += rows) {
        if (OUTER % rows != 0 && outer + y >= OUTER) break;
#pragma unroll
        for (int x = 0; x < INNER; x += LANES * WIDTH) {
            const int have = y < outer_left ? inner_left - x : 0;
            const u32 bytes = have <= 0 ? 0 : have < WIDTH ? have * 4 : WIDTH * 4;
            cp_async<WIDTH * 4>(shared + (x * TO_INNER + y * TO_OUTER) * 4, global + y * ld + x, bytes);
        }
    }
}

// One operand's part of a stage: MN x JG_BK elements from `global` on, of which mn_left x k_left exist, into rows along k.
// k_contiguous: neighbours along k are neighbours in memory; then eight threads along k and four along mn fill 32 banks from
// whole sectors. quads: rows along k begin at multiples of 16 bytes.
template <int MN, int ROW>
__device__ __forceinline__ void copy_operand(u32 shared, const float *global, i64 ld, bool k_contiguous, bool quads, int mn_left, int k_left)
{
    if (k_contiguous) copy_tile<1, JG_BK % 8 == 0 ? 8 : 4, JG_BK, MN, ROW, 1>(shared, global, ld, k_left, mn_left);
    else if (quads) copy_tile<4, MN / 4 < THREADS ? MN / 4 : THREADS, MN, JG_BK, 1, ROW>(shared, global, ld, mn_left, k_left);
    else copy_tile<1, MN < THREADS ? MN : THREADS, MN, JG_BK, 1, ROW>(shared, global, ld, mn_left, k_left);
}

#else

#define QUADS_A ((JG_BM * JG_BK / 4 + THREADS - 1) / THREADS)
#define QUADS_B ((JG_BN * JG_BK / 4 + THREADS - 1) / THREADS)

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
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(shared), "r"(bits_of(x[0])), "r"(bits_of(x[1])), "r"(bits_of(x[2])),
                 "r"(bits_of(x[3])) : "memory");
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
        const u32 stages = whole + (DIM_K % JG_BK != 0);
        const u32 last_slot = (JG_STAGES - 1) * STAGE_ELEMENTS;
#if COPIES
        const u32 address = (u32)__cvta_generic_to_shared(shared);
        const float *next_a = (const float *)a + (TRANS_A ? (i64)m0 : m0 * LDA), *next_b = (const float *)b + (TRANS_B ? n0 * LDB : (i64)n0);
        // What exists from the tile's corner on; where tiles are known to divide a size, so is this.
        const int m_left = DIM_M % JG_BM == 0 ? JG_BM : (int)(DIM_M - m0), n_left = DIM_N % JG_BN == 0 ? JG_BN : (int)(DIM_N - n0);
        auto begin_stage = [&](u32 stage, u32 slot) {
            if (stage < stages) {
                const int k_left = DIM_K % JG_BK == 0 ? JG_BK : (int)(DIM_K - stage * JG_BK);
                const u32 to = address + slot * 4;
                copy_operand<JG_BM, ROW_A>(to, next_a, LDA, !TRANS_A, VECTOR_A, m_left, k_left);
                copy_operand<JG_BN, ROW_B>(to + JG_BK * ROW_A * 4, next_b, LDB, TRANS_B, VECTOR_B, n_left, k_left);
                next_a += TRANS_A ? JG_BK * LDA : JG_BK;
                next_b += TRANS_B ? JG_BK : JG_BK * LDB;
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
        };
        auto end_stage = [](u32, u32) {};
        auto wait_for_stage = [] { asm volatile("cp.async.wait_group %0;" ::"n"(JG_STAGES - 2) : "memory"); };
#else
        const weights weights_a = weights_of_item(args, item, DIM_M), weights_b = weights_of_item(args, item, DIM_N);
        values_t quads_a[QUADS_A], quads_b[QUADS_B];
        auto begin_stage = [&](u32 stage, u32) {
            if (stage >= stages) return;
            fetch<JG_TYPE_A, WEIGHTS_A, JG_BM>(quads_a, args, a, weights_a, LDA, !TRANS_A, VECTOR_A, m0, stage * JG_BK, DIM_M, DIM_K);
            fetch<JG_TYPE_B, WEIGHTS_B, JG_BN>(quads_b, args, b, weights_b, LDB, TRANS_B, VECTOR_B, n0, stage * JG_BK, DIM_N, DIM_K);
        };
        auto end_stage = [&](u32 stage, u32 slot) {
            if (stage >= stages) return;
            put<JG_BM, ROW_A>(shared + slot, quads_a, !TRANS_A);
            put<JG_BN, ROW_B>(shared + slot + JG_BK * ROW_A, quads_b, TRANS_B);
        };
        auto wait_for_stage = [] {};
#endif
#pragma unroll 1
        for (u32 i = 0; i < JG_STAGES - 1; i++) {
            begin_stage(i, i * STAGE_ELEMENTS);
            end_stage(i, i * STAGE_ELEMENTS);
        }
        wait_for_stage();
        __syncthreads();

        const value_t *first_a = shared + slice * ROW_A + thread_m, *first_b = shared + JG_BK * ROW_A + slice * ROW_B + thread_n;
        const value_t *row_a = first_a, *row_b = first_b;
        fragment f[2];
        u32 slot = 0;  // in elements
        if (whole > 0) read_fragment(f[0], row_a, row_b);
#pragma unroll 1
        for (u32 stage = 0; stage < whole; stage++) {
            const u32 free_slot = slot == 0 ? last_slot : slot - STAGE_ELEMENTS;  // that of the stage before
            begin_stage(stage + JG_STAGES - 1, free_slot);
#pragma unroll 1
            for (u32 step = 0; step < STEPS; step += UNROLL) {
#pragma unroll
                for (u32 i = 0; i < UNROLL - 1; i++) {
                    row_a += JG_SLICES * ROW_A;
                    row_b += JG_SLICES * ROW_B;
                    read_fragment(f[(i + 1) % 2], row_a, row_b);
                    multiply(sums, f[i % 2]);
                }
                row_a += JG_SLICES * ROW_A;
                row_b += JG_SLICES * ROW_B;
                if (step + UNROLL == STEPS) {
                    end_stage(stage + JG_STAGES - 1, free_slot);
                    wait_for_stage();
                    __syncthreads();
                    // After the last whole stage its own first fragment is read once more, in vain: cheaper than a branch.
                    if (stage + 1 < whole) slot = slot == last_slot ? 0 : slot + STAGE_ELEMENTS;
                    row_a = first_a + slot;
                    row_b = first_b + slot;
                }
                read_fragment(f[0], row_a, row_b);
                multiply(sums, f[1]);
            }
        }
        if (whole > 0) slot = slot == last_slot ? 0 : slot + STAGE_ELEMENTS;
        row_a = first_a + slot;
        row_b = first_b + slot;
#pragma unroll 1
        for (u32 k = slice; k < DIM_K - whole * JG_BK; k += JG_SLICES) {
            read_fragment(f[0], row_a, row_b);
            multiply(sums, f[0]);
            row_a += JG_SLICES * ROW_A;
            row_b += JG_SLICES * ROW_B;
        }
    }
    write_back(args, output_of_item(args, item), sums, shared, slice, thread_m, thread_n, m0, n0);
}
