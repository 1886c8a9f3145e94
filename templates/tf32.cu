// Family tf32: f32 on tensor cores through mma.sync m16n8k8, sm_80 and up. JG_MODE_TF32 rounds elements to 11 significant bits.
// JG_MODE_3XTF32 splits each into such a part and the rest, rounded likewise, and adds three of the four products: the smallest
// ones, rest by rest, are below float32's last place.
//
// A block computes a JG_BM x JG_BN tile of C; each warp a JG_WM x JG_WN part of it, JG_SLICES warps the same part, each with its
// own steps of k. Tiles of A and B go as they are through JG_STAGES buffers in shared memory, filled by cp.async, and are
// rounded as fragments in registers: of B all of a step, of A a row at a time.
//
// Two shared layouts, by what is contiguous in global memory: "k-major" (rows along m or n, in chunks of 16 bytes,
// XOR-swizzled, read by ldmatrix: four 16-bit pairs of its rows are four f32) and "mn-major" (rows along k, padded, read four or
// two neighbours at a time, which are those of as many fragments, or of a fragment's halves: see fragments.cuh).
//
// The order of additions is ascending k in steps of 8, whatever the tile. Tensor cores cut a sum towards zero whenever they add
// to it, and over hundreds of steps that would cost all that the rests of JG_MODE_3XTF32 have gained. So there they begin anew
// every GROUP steps of a slice, and what they have is added up with rounding to nearest. In a group come rest x part and part x
// rest of each step, which are small, then part x part of each. So its sum is cut GROUP times: on sm_90 by (9 + 4) 2^-25 of it at
// most (9 terms below 25 bits, then the result), before by twice (5 + 2) 2^-24; the documented bound has 8 * 2^-23 for each step.
// Step number t belongs to slice t mod JG_SLICES; the slices' sums are added in their order.

#define THREADS WARP_THREADS
#define STEPS (JG_BK / 8 / JG_SLICES)  // of a stage, for each slice
#define GROUP (JG_MODE == JG_MODE_3XTF32 ? 2 : 1)  // steps after which tensor cores begin anew
#define CHUNKS (JG_BK / 4)             // of a k-major row
#define A_KMAJOR (JG_TRANS_A == 0)
#define B_KMAJOR (JG_TRANS_B != 0)
#define ROW_A (A_KMAJOR ? JG_BK : JG_BM + 8)  // elements; padded so that a fragment's four k and eight rows lie in 32 banks
#define ROW_B (B_KMAJOR ? JG_BK : JG_BN + 8)
#define STAGE_A_BYTES ((A_KMAJOR ? JG_BM : JG_BK) * ROW_A * 4)
#define STAGE_B_BYTES ((B_KMAJOR ? JG_BN : JG_BK) * ROW_B * 4)
#define STAGE_BYTES (STAGE_A_BYTES + STAGE_B_BYTES)

#ifdef JG_VEC_A
#define VECTOR_A (JG_VEC_A == 16)
#define VECTOR_B (JG_VEC_B == 16)
#else
#define VECTOR_A ((args.flags & JG_FLAG_VEC_A) != 0)
#define VECTOR_B ((args.flags & JG_FLAG_VEC_B) != 0)
#endif

#ifdef JG_FUSION
static const int UNROLL_SINGLE = 64;
#define SPLIT_K_TAIL true
#else
static const int UNROLL_SINGLE = 2;  // of copies one by one, in a kernel that holds both ways
#define SPLIT_K_TAIL false
#endif

__device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void ldmatrix(u32 (&r)[4], u32 shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared) : "memory");
}

// COUNT neighbours, 2 or 4.
template <int COUNT>
__device__ __forceinline__ void load_shared(u32 *r, u32 shared)
{
    if (COUNT == 4)
        asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[COUNT - 2]), "=r"(r[COUNT - 1]) : "r"(shared) : "memory");
    else asm volatile("ld.shared.v2.b32 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(shared) : "memory");
}

// Stages whose code is short are unrolled.
static const int UNROLL_STEPS = FRAGS_M * FRAGS_N * STEPS * (JG_MODE == JG_MODE_3XTF32 ? 3 : 1) <= 96 ? 64 : 1;

// Copies UNIT elements, of which the first `have` bytes exist, and zero-fills the rest.
template <int UNIT>
__device__ __forceinline__ void cp_async(u32 shared, const float *global, u32 have)
{
    if (UNIT == 4) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(have) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(global), "r"(have) : "memory");
}

// By how much the chunks of a k-major row have changed places, so that ldmatrix finds eight rows in different banks.
__device__ __forceinline__ constexpr u32 turn_of(u32 row)
{
    return CHUNKS >= 8 ? row & 7 : CHUNKS == 4 ? row >> 1 & 3 : row >> 2 & 1;
}

// How a tile of one operand is copied into shared memory, UNIT elements at a time: LANES neighbouring threads copy neighbours of
// a row, 128 bytes if there are as many, and then those 128 bytes on, which takes no other address; in PASSES of PASS_ROWS each.
template <int MN, bool KMAJOR, int UNIT>
struct copies {
    static const u32 ROWS = KMAJOR ? MN : JG_BK, ROW_ELEMENTS = KMAJOR ? JG_BK : MN, PITCH = (KMAJOR ? JG_BK : MN + 8) * 4;
    static const u32 LANES = (ROW_ELEMENTS % 32 == 0 ? 32 : ROW_ELEMENTS % 16 == 0 ? 16 : 8) / UNIT;
    static const u32 REPEATS = ROW_ELEMENTS / (LANES * UNIT), PASS_ROWS = THREADS / LANES;
    static const u32 PASSES = (ROWS + PASS_ROWS - 1) / PASS_ROWS;
};

// Where a thread's first copy begins, from the tile's first element on.
template <int MN, bool KMAJOR, int UNIT>
__device__ __forceinline__ i64 first_copy(i64 ld)
{
    typedef copies<MN, KMAJOR, UNIT> c;
    return threadIdx.x / c::LANES * ld + threadIdx.x % c::LANES * UNIT;
}

// from: this thread's first copy. Of the tile's rows outer_left exist, of their elements inner_left.
template <int MN, bool KMAJOR, int UNIT, bool WHOLE_OUTER, bool WHOLE_INNER, int UNROLL>
__device__ __forceinline__ void copy_tile(u32 shared, const float *from, i64 ld, u32 outer_left, u32 inner_left)
{
    typedef copies<MN, KMAJOR, UNIT> c;
    const u32 row0 = threadIdx.x / c::LANES, column0 = threadIdx.x % c::LANES * UNIT, pass_rows = c::PASS_ROWS, rows = c::ROWS;
    const u32 to0 = row0 * c::PITCH + (KMAJOR ? (column0 / 4 ^ turn_of(row0)) * 16 + column0 % 4 * 4 : column0 * 4);
#pragma unroll UNROLL
    for (u32 n = 0; n < c::PASSES; n++) {
        const u32 step = n * pass_rows, row = row0 + step;
        if (rows % pass_rows != 0 && row >= rows) break;
        // row0 and step have no bit in common.
        const u32 to = shared + (KMAJOR ? to0 ^ turn_of(step) * 16 : to0) + step * c::PITCH;
        const float *const from_row = from + step * ld;
#pragma unroll
        for (u32 x = 0; x < c::REPEATS; x++) {
            const u32 column = column0 + x * 32;
            u32 have = UNIT * 4;
            if (!WHOLE_INNER) have = column >= inner_left ? 0 : inner_left - column < UNIT ? (inner_left - column) * 4 : UNIT * 4;
            if (!WHOLE_OUTER && row >= outer_left) have = 0;
            cp_async<UNIT>(to + x * 128, from_row + x * 32, have);
        }
    }
}

__device__ __forceinline__ u32 left(u32 limit, u32 at)
{
    return limit > at ? limit - at : 0;
}

template <int MN, bool KMAJOR>
__device__ __forceinline__ const float *first_tile(const float *global, i64 ld, bool vector, u32 mn0)
{
    return global + (KMAJOR ? mn0 * ld : mn0) + (vector ? first_copy<MN, KMAJOR, 4>(ld) : first_copy<MN, KMAJOR, 1>(ld));
}

// To the next tile along k. The pointer is kept, or its parts would be put together again for each tile.
template <bool KMAJOR>
__device__ __forceinline__ void advance(const float *&from, i64 ld)
{
    from += KMAJOR ? JG_BK : JG_BK * ld;
    asm volatile("" : "+l"(from));
}

// A stage's tile. Where all of its k are there, as in all stages but the last, k is not checked.
template <int MN, bool KMAJOR, int UNIT, bool WHOLE_MN>
__device__ __forceinline__ void copy_stage(u32 shared, const float *from, i64 ld, u32 mn_left, u32 k_left)
{
    const int UNROLL = UNIT == 4 ? 64 : UNROLL_SINGLE;
    const u32 outer = KMAJOR ? mn_left : k_left, inner = KMAJOR ? k_left : mn_left;
    if (!EDGE_K || SPLIT_K_TAIL && k_left >= JG_BK)
        copy_tile<MN, KMAJOR, UNIT, !KMAJOR || WHOLE_MN, KMAJOR || WHOLE_MN, UNROLL>(shared, from, ld, outer, inner);
    else
        copy_tile<MN, KMAJOR, UNIT, KMAJOR && WHOLE_MN, !KMAJOR && WHOLE_MN, SPLIT_K_TAIL ? 2 : UNROLL>(shared, from, ld, outer,
                                                                                                        inner);
}

template <int MN, bool KMAJOR, bool WHOLE_MN>
__device__ __forceinline__ void copy_operand(u32 shared, const float *from, i64 ld, bool vector, u32 mn0, u32 k0, u32 mn, u32 k)
{
    if (vector) copy_stage<MN, KMAJOR, 4, WHOLE_MN>(shared, from, ld, left(mn, mn0), left(k, k0));
    else copy_stage<MN, KMAJOR, 1, WHOLE_MN>(shared, from, ld, left(mn, mn0), left(k, k0));
}

// One step's fragments. Of A a lane's registers hold row lane / 4 and that 8 below, at k lane % 4, then the same at k + 4; of B
// column lane / 4 likewise: as fragments.cuh orders rows and columns.
struct fragments {
    u32 a[FRAGS_M][4], b[FRAGS_N][2];
};

// This lane's offsets in a stage, of its slice's first step.
struct places {
    u32 a, b;
};

__device__ __forceinline__ places places_of(u32 warp_m, u32 warp_n, u32 slice, u32 lane)
{
    // Lanes 0-7 and 8-15 address the upper and lower rows of A's first chunk, lanes 16-31 those of the second. Of B, lanes 0-15
    // address both chunks of the first eight columns.
    const u32 row_a = warp_m + (lane & 15), row_b = warp_n + (lane & 7) + (lane >> 4) * 8;
    const u32 chunk_a = slice * 2 + (lane >> 4), chunk_b = slice * 2 + (lane >> 3 & 1), k = slice * 8 + (lane & 3);
    places p;
    p.a = A_KMAJOR ? row_a * ROW_A * 4 + (chunk_a ^ turn_of(row_a)) * 16 : (k * ROW_A + warp_m + (lane >> 2) * ROW_TURNS) * 4;
    p.b = B_KMAJOR ? row_b * ROW_B * 4 + (chunk_b ^ turn_of(row_b)) * 16 : (k * ROW_B + warp_n + (lane >> 2) * COLUMN_TURNS) * 4;
    return p;
}

// Reads this slice's fragments, `step` steps on: row i of A's, all of B's. JG_SLICES is a power of two, so that steps on are
// other bits of the offset.
__device__ __forceinline__ void load_a(fragments &x, u32 i, u32 stage, places p, u32 step)
{
    if (A_KMAJOR) {
        ldmatrix(x.a[i], stage + (p.a ^ step * 32) + i * 16 * ROW_A * 4);
    } else {
#pragma unroll
        for (u32 r = 0; r < 4; r += 2) load_shared<2>(x.a[i] + r, stage + p.a + ((step * 8 + r * 2) * ROW_A + i * 16) * 4);
    }
}

__device__ __forceinline__ void load_b(fragments &x, u32 stage, places p, u32 step)
{
    stage += STAGE_A_BYTES;
    if (B_KMAJOR) {
#pragma unroll
        for (u32 j = 0; j < FRAGS_N; j += 2) {
            u32 two[4];
            ldmatrix(two, stage + (p.b ^ step * 32) + j * 8 * ROW_B * 4);
#pragma unroll
            for (u32 r = 0; r < 4; r++) x.b[j + r / 2][r % 2] = two[r];
        }
    } else {
#pragma unroll
        for (u32 j = 0; j < FRAGS_N; j += COLUMN_TURNS)
#pragma unroll
            for (u32 r = 0; r < 2; r++) {
                u32 all[COLUMN_TURNS];
                load_shared<COLUMN_TURNS>(all, stage + p.b + ((step * 8 + r * 4) * ROW_B + j * 8) * 4);
#pragma unroll
                for (u32 n = 0; n < COLUMN_TURNS; n++) x.b[j + n][r] = all[n];
            }
    }
}

#define INFINITY_BITS 0x7f800000u
#define NAN_BITS 0x7fffe000u     // a NaN of tf32
#define TF32_BITS 0xffffe000u    // what tensor cores look at

// To 11 significant bits, halves away from zero: adds half a unit of the last of them to the magnitude, and tensor cores do not
// look at the bits below. What becomes too large is infinity, and infinity stays, but NaN may become infinity or 0.
__device__ __forceinline__ u32 rounded(u32 bits)
{
    return bits + 0x1000u;
}

__device__ __forceinline__ bool is_nan(u32 bits)
{
    return (bits & 0x7fffffffu) > INFINITY_BITS;
}

// x as the sum of two of 11 bits, but for its last bit: of a rest of 12 bits tensor cores cut one, which is no more than rounding
// would change. If x is not a number, or rounded to infinity, `signal` becomes infinite or NaN.
__device__ __forceinline__ void split_number(u32 bits, u32 &part, u32 &rest, float &signal)
{
    part = rounded(bits) & TF32_BITS;
    signal = __fsub_rn(__uint_as_float(bits), __uint_as_float(part));
    rest = __float_as_uint(signal);
}

// The same for any x. What would be rounded to infinity is cut instead; of an infinity or NaN there is no rest.
__device__ __forceinline__ void split_any(u32 bits, u32 &part, u32 &rest)
{
    const bool finite = (bits & INFINITY_BITS) != INFINITY_BITS;
    part = is_nan(bits) ? NAN_BITS : rounded(bits) & TF32_BITS;
    if (finite && (part & INFINITY_BITS) == INFINITY_BITS) part = bits & TF32_BITS;
    rest = finite ? __float_as_uint(__fsub_rn(__uint_as_float(bits), __uint_as_float(part))) : 0u;
}

// From elements to what is multiplied: parts and, in JG_MODE_3XTF32, rests. ANY: of any elements. Without, only of numbers that
// are not rounded to infinity; then `alarm` gathers whether all were: once an element was not, it stays infinite or NaN, and NaN
// after a NaN. It may be so for no reason too, as ANY is right for all.
template <bool ANY, int COUNT>
__device__ __forceinline__ void split(u32 *parts, u32 *rests, const u32 *all, float &alarm)
{
#pragma unroll
    for (int i = 0; i < COUNT; i += 2) {
        float signal[2];
#pragma unroll
        for (int n = i; n < i + 2; n++) {
            u32 bits = all[n];
            if (CLEANS(JG_TYPE_F32)) bits = __float_as_uint(clean(__uint_as_float(bits), smallest_normal(JG_TYPE_F32)));
            signal[n - i] = __uint_as_float(bits);
            if (JG_MODE == JG_MODE_TF32) parts[n] = ANY && is_nan(bits) ? NAN_BITS : rounded(bits);
            else if (ANY) split_any(bits, parts[n], rests[n]);
            else split_number(bits, parts[n], rests[n], signal[n - i]);
        }
        if (!ANY) alarm = __fmaf_rn(signal[0], signal[1], alarm);
    }
}

// What a group's steps multiply: a row of A's fragments, and all of B's.
struct operand_a {
    u32 part[GROUP][4], rest[GROUP][4];
};
struct operand_b {
    u32 part[GROUP][FRAGS_N][2], rest[GROUP][FRAGS_N][2];
};

template <bool ANY>
__device__ __forceinline__ void split_a(operand_a &a, const fragments (&x)[GROUP], u32 i, float &alarm)
{
#pragma unroll
    for (u32 g = 0; g < GROUP; g++) split<ANY, 4>(a.part[g], a.rest[g], x[g].a[i], alarm);
}

template <bool ANY>
__device__ __forceinline__ void split_b(operand_b &b, const fragments (&x)[GROUP], float &alarm)
{
#pragma unroll
    for (u32 g = 0; g < GROUP; g++) split<ANY, FRAGS_N * 2>(b.part[g][0], b.rest[g][0], x[g].b[0], alarm);
}

// Adds the products of a group of steps to a row of sums.
__device__ __forceinline__ void multiply(fragment_row &sums, const operand_a &a, const operand_b &b)
{
#if JG_MODE == JG_MODE_3XTF32
    float group[FRAGS_N][4];
#pragma unroll
    for (int j = 0; j < FRAGS_N * 4; j++) group[j / 4][j % 4] = 0.0f;
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
#pragma unroll
        for (int j = 0; j < FRAGS_N; j++) mma(group[j], a.rest[g], b.part[g][j]);
#pragma unroll
        for (int j = 0; j < FRAGS_N; j++) mma(group[j], a.part[g], b.rest[g][j]);
    }
#pragma unroll
    for (int g = 0; g < GROUP; g++)
#pragma unroll
        for (int j = 0; j < FRAGS_N; j++) mma(group[j], a.part[g], b.part[g][j]);
#pragma unroll
    for (int j = 0; j < FRAGS_N * 4; j++) sums[j / 4][j % 4] = __fadd_rn(sums[j / 4][j % 4], group[j / 4][j % 4]);
#else
#pragma unroll
    for (int j = 0; j < FRAGS_N; j++) mma(sums[j], a.part[0], b.part[0][j]);
#endif
}

__device__ __forceinline__ void clear(fragment_row (&sums)[FRAGS_M])
{
#pragma unroll
    for (int i = 0; i < FRAGS_M * FRAGS_N * 4; i++) (&sums[0][0][0])[i] = 0.0f;
}

// The element of row or column mn at k. Beyond the last row or column it is any, as what comes of it is never stored.
__device__ __forceinline__ u32 element(const float *p, i64 ld, bool kmajor, u32 mn, u32 k, u32 mn_limit, u32 k_limit)
{
    const i64 outer = mn < mn_limit ? mn : mn_limit - 1, inner = k < k_limit ? k : k_limit - 1;
    const u32 bits = __float_as_uint(p[kmajor ? outer * ld + inner : inner * ld + outer]);
    return k < k_limit ? bits : 0u;
}

// Computes a warp's sums by themselves, straight from global memory and whatever the elements are: seldom, and little code.
__device__ __forceinline__ void multiply_any(const jg_args &args, fragment_row (&sums)[FRAGS_M], const float *a, const float *b,
                                             u32 row0, u32 column0, u32 slice, u32 lane)
{
    clear(sums);
#pragma unroll 1
    for (u32 k = slice * 8 + (lane & 3); k - (lane & 3) < DIM_K; k += GROUP * JG_SLICES * 8) {
        fragments x[GROUP];
        operand_a part_a;
        operand_b part_b;
        float alarm;
        u32 row = row0 + (lane >> 2) * ROW_TURNS, column = column0 + (lane >> 2) * COLUMN_TURNS;
        asm volatile("" : "+r"(row), "+r"(column));  // or the addresses of all rows would be kept in registers
#pragma unroll
        for (u32 g = 0; g < GROUP; g++) {
            const u32 k_step = k + g * JG_SLICES * 8;
#pragma unroll
            for (u32 i = 0; i < FRAGS_M * 4; i++)
                x[g].a[i / 4][i % 4] = element(a, LDA, A_KMAJOR, row + i / 4 * 16 + i % 2 * (ROW_TURNS == 2 ? 1 : 8),
                                               k_step + i % 4 / 2 * 4, DIM_M, DIM_K);
#pragma unroll
            for (u32 j = 0; j < FRAGS_N * 2; j++)
                x[g].b[j / 2][j % 2] = element(b, LDB, B_KMAJOR,
                                               column + j / 2 / COLUMN_TURNS * COLUMN_TURNS * 8 + j / 2 % COLUMN_TURNS,
                                               k_step + j % 2 * 4, DIM_N, DIM_K);
        }
        split_b<true>(part_b, x, alarm);
#pragma unroll
        for (u32 i = 0; i < FRAGS_M; i++) {
            split_a<true>(part_a, x, i, alarm);
            multiply(sums[i], part_a, part_b);
        }
    }
}

// Computes the tile of block `block` of one item.
__device__ __forceinline__ void multiply_item(const jg_args &args, u32 block, u32 item, u8 *buffer)
{
    const u32 shared = (u32)__cvta_generic_to_shared(buffer);
    u32 tile_m, tile_n;
    tile_of_block(args, block, tile_m, tile_n);
    const u32 m0 = tile_m * JG_BM, n0 = tile_n * JG_BN;
    const u32 lane = threadIdx.x & 31, warp = place_of_warp(), slice = slice_of_warp();
    const u32 warp_m = warp / WARPS_N * JG_WM, warp_n = warp % WARPS_N * JG_WN;
    const float *a = (const float *)args.a + args.stride_a * item, *b = (const float *)args.b + args.stride_b * item;

    fragment_row sums[FRAGS_M];
    clear(sums);
    if (args.alpha != 0.0f && DIM_K > 0) {
        const u32 stages = (DIM_K + JG_BK - 1) / JG_BK;
        const float *from_a = first_tile<JG_BM, A_KMAJOR>(a, LDA, VECTOR_A, m0);
        const float *from_b = first_tile<JG_BN, B_KMAJOR>(b, LDB, VECTOR_B, n0);
        auto copy = [&](u32 n, u32 stage) {
            if (n < stages) {
                copy_operand<JG_BM, A_KMAJOR, !EDGE_M>(stage, from_a, LDA, VECTOR_A, m0, n * JG_BK, DIM_M, DIM_K);
                copy_operand<JG_BN, B_KMAJOR, !EDGE_N>(stage + STAGE_A_BYTES, from_b, LDB, VECTOR_B, n0, n * JG_BK, DIM_N, DIM_K);
            }
            cp_async_commit();
            advance<A_KMAJOR>(from_a, LDA);
            advance<B_KMAJOR>(from_b, LDB);
        };
#pragma unroll 1
        for (u32 n = 0; n < JG_STAGES; n++) copy(n, shared + n * STAGE_BYTES);
        places p = places_of(warp_m, warp_n, slice, lane);
        asm volatile("" : "+r"(p.a), "+r"(p.b));
        // Steps beyond k would make +0 of a sum of -0.
        auto is_left = [&](u32 n, u32 step) { return !EDGE_K || n * JG_BK + (step * JG_SLICES + slice) * 8 < DIM_K; };
        fragments x[GROUP];
        operand_a part_a;
        operand_b part_b;
        float alarm = 0.0f;
        u32 stage = shared;
        cp_async_wait<JG_STAGES - 1>();
        __syncthreads();
#pragma unroll
        for (u32 g = 0; g < GROUP; g++) {
#pragma unroll
            for (u32 i = 0; i < FRAGS_M; i++) load_a(x[g], i, stage, p, g * JG_SLICES);
            load_b(x[g], stage, p, g * JG_SLICES);
        }
#pragma unroll 1
        for (u32 n = 0; n < stages; n++) {
#pragma unroll UNROLL_STEPS
            for (u32 step = 0; step < STEPS; step += GROUP) {
                // While a group is multiplied, the fragments of the next one are on their way. After the last one those of its
                // stage's first group are read again, and not used: a condition would cost more.
                const u32 next_step = step + GROUP < STEPS ? step + GROUP : 0;
                if (step + GROUP == STEPS) {
                    cp_async_wait<JG_STAGES - 2>();
                    __syncthreads();
                    copy(n + JG_STAGES, stage);
                    const u32 next = stage == shared + (JG_STAGES - 1) * STAGE_BYTES ? shared : stage + STAGE_BYTES;
                    stage = n + 1 < stages ? next : stage;
                }
                if (!is_left(n, step)) continue;  // nor is any step after it
                split_b<false>(part_b, x, alarm);
#pragma unroll
                for (u32 g = 0; g < GROUP; g++) load_b(x[g], stage, p, (next_step + g) * JG_SLICES);
#pragma unroll
                for (u32 i = 0; i < FRAGS_M; i++) {
                    split_a<false>(part_a, x, i, alarm);
#pragma unroll
                    for (u32 g = 0; g < GROUP; g++) load_a(x[g], i, stage, p, (next_step + g) * JG_SLICES);
                    multiply(sums[i], part_a, part_b);
                }
            }
        }
        const bool numbers = JG_MODE == JG_MODE_TF32 ? alarm == alarm : fabsf(alarm) < __uint_as_float(INFINITY_BITS);
        if (__any_sync(0xffffffffu, !numbers)) multiply_any(args, sums, a, b, m0 + warp_m, n0 + warp_n, slice, lane);
    }
    write_back(args, output_of_item(args, item), sums, m0 + warp_m, n0 + warp_n, shared + threadIdx.x / 32 * SLAB_BYTES, lane);
}
