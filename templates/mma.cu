// Family mma: tensor cores through mma.sync, sm_80 and up: m16n8k16 of f16 or bf16 into float32 (or f16: JG_MODE_F16), and
// m16n8k32 of s8 or u8 into int32. Narrower elements are widened on their way into shared memory: 8-bit floats and weights to f16
// or bf16, s4 to s8.
//
// A block computes a JG_BM x JG_BN tile of C; each warp a JG_WM x JG_WN part of it. Tiles of A and B go
// through JG_STAGES buffers in shared memory, filled by cp.async, and from there by ldmatrix into
// registers. Shared memory is kept in chunks of 16 bytes, XOR-swizzled so that the eight rows
// an ldmatrix reads lie in different banks.
//
// Two shared layouts, by what is contiguous in global memory: "k-major" (rows along m or n, k contiguous)
// and, of 16-bit elements only, "mn-major" (rows along k). Operands that must be converted are gathered: read through registers,
// by any strides, into the k-major layout; there the transposition can be a launch argument. Those whose rows are not 16-byte
// aligned come in pieces, and 8-bit ones not contiguous along k are turned (realign.cuh).
//
// The order of additions is ascending k in steps of 16 (32 of integers), whatever the tile: all kernels of this family and of as
// many slices give the same bits. With JG_SLICES = S, step t from the start of k is for slice t mod S.
//
// While a warp multiplies a step's fragments it reads the next step's, one at a time between the mma, and then, likewise, begins
// the copies of a stage: a burst would fill the queue to shared memory, and the mma behind it would wait. (Between a read and a
// copy ptxas puts idle instructions, so they do not take turns.) The barrier between stages is amid a stage's last step, for the
// tensor cores have work then while the warps meet.

#define THREADS WARP_THREADS
#define ELEMENT_BYTES (MULTIPLY == JG_TYPE_S8 ? 1 : 2)  // in shared memory
#define CHUNK (16 / ELEMENT_BYTES)                     // elements in 16 bytes
#define STEP (2 * CHUNK)                               // k of one mma
#define STAGE_A_BYTES (JG_BM * JG_BK * ELEMENT_BYTES)
#define STAGE_B_BYTES (JG_BN * JG_BK * ELEMENT_BYTES)
#define STAGE_BYTES (STAGE_A_BYTES + STAGE_B_BYTES)

// Widths of 2 and 3 bytes mean to gather; of 3 several elements at a time, which a generic kernel is told by a flag. A width of 1
// means to realign.
#define GATHERS(vec) ((vec) == 2 || (vec) == 3)
#if GATHERS(JG_VEC_A) || MULTIPLY == JG_TYPE_S8
#define A_KMAJOR true
#else
#define A_KMAJOR (JG_TRANS_A == 0)
#endif
#if GATHERS(JG_VEC_A)
#define TURNED_A false
#define K_CONTIGUOUS_A true
#else
#define K_CONTIGUOUS_A (JG_TRANS_A == 0)
#define TURNED_A (MULTIPLY == JG_TYPE_S8 && !K_CONTIGUOUS_A)
#endif
#if GATHERS(JG_VEC_B) || MULTIPLY == JG_TYPE_S8
#define B_KMAJOR true
#else
#define B_KMAJOR (JG_TRANS_B != 0)
#endif
#if GATHERS(JG_VEC_B)
#define TURNED_B false
#define K_CONTIGUOUS_B true
#else
#define K_CONTIGUOUS_B (JG_TRANS_B != 0)
#define TURNED_B (MULTIPLY == JG_TYPE_S8 && !K_CONTIGUOUS_B)
#endif
#define TURNED (TURNED_A || TURNED_B)
// Whether an operand comes in pieces (realign.cuh).
#define IN_PIECES_A (!TURNED_A && (JG_VEC_A == 1 || JG_VEC_A == 4 || JG_VEC_A == 8))
#define IN_PIECES_B (!TURNED_B && (JG_VEC_B == 1 || JG_VEC_B == 4 || JG_VEC_B == 8))
#ifdef JG_LDA
#define ODD_A (JG_LDA % 2 != 0)
#else
#define ODD_A false
#endif
#ifdef JG_LDB
#define ODD_B (JG_LDB % 2 != 0)
#else
#define ODD_B false
#endif

#define STEPS (JG_BK / STEP / JG_SLICES)               // of a stage, that a slice multiplies
#define MMAS (FRAGS_M * FRAGS_N)                       // of a step, that a warp makes
// A step's fragments have registers beside those of the step before it. But where so many blocks are to share an SM that there is
// no room for them, those of the operand that has more of them take turns: the next step's first one is fetched when the mma of
// this step's first one are done.
#define ROOM (65536 / (THREADS * JG_MIN_BLOCKS))
#define IN_TURNS (MMAS >= 16 && MMAS * REGISTERS + 8 * (FRAGS_M + FRAGS_N / 2) + 40 > ROOM)
#define TURNS_A (IN_TURNS && FRAGS_M >= FRAGS_N / 2)
#define TURNS_B (IN_TURNS && !TURNS_A)
#define TURNS (TURNS_A ? FRAGS_M : TURNS_B ? FRAGS_N / 2 : 0)
#define TURN_MMAS(mmas, i) ((mmas) * (i) / (TURNS > 0 ? TURNS : 1))  // of so many, those before turn i
#define BESIDE (FRAGS_M + FRAGS_N / 2 - TURNS)         // fragments that are fetched beside the step before them
#define MOST_BESIDE ((BESIDE - 1) / (MMAS / 2) + 1)    // before one mma
// Where k is known to be of fewer steps than there are stages, all are under way at once. The memory of the other
// stages is not asked for, but where it holds the slabs, which then need not wait for the last stage to be read.
#ifdef JG_K
#define STEPS_OF_K ((JG_K + JG_BK - 1) / JG_BK)
#define ALL_AT_ONCE (STEPS_OF_K < JG_STAGES && !TURNED)
#else
#define STEPS_OF_K 0
#define ALL_AT_ONCE false
#endif
#define STAGES (ALL_AT_ONCE ? STEPS_OF_K + 1 : JG_STAGES)  // in use, or in turn the next one
#ifdef JG_SINGLE
#define SLABS_APART (ALL_AT_ONCE && (JG_STAGES - STEPS_OF_K) * STAGE_BYTES >= JG_SLICES * TILE_WARPS * SLAB_BYTES)
#else
#define SLABS_APART false  // many blocks share an SM's memory
#endif
#define SLABS_AT (SLABS_APART ? STEPS_OF_K * STAGE_BYTES : 0)
#define RING_BYTES (STAGES * STAGE_BYTES)
// A loop over few stages with few mma each goes without jumps.
#define STRAIGHT (ALL_AT_ONCE && (STEPS_OF_K == 1 || STEPS_OF_K * STEPS * MMAS <= 64))
static const int UNROLL_STAGES = STRAIGHT ? 16 : 1;
// What comes in pieces takes many copies.
static const int UNROLL_LOADS = IN_PIECES_A || IN_PIECES_B ? 1 : UNROLL_LONG;

// What follows in an asm statement is done if its first operand is not 0: a predicate that the compiler makes no branch of.
#define IF_GO "{ .reg .pred p; setp.ne.u32 p, %0, 0; @p "

// WHOLE: all the bytes are there. go: whether to copy at all.
template <int BYTES, bool WHOLE>
__device__ __forceinline__ void cp_async(u32 to, const void *from, u32 valid, u32 go)
{
    if (BYTES == 16 && WHOLE)
        asm volatile(IF_GO "cp.async.cg.shared.global.L2::128B [%1], [%2], 16; }" ::"r"(go), "r"(to), "l"(from) : "memory");
    else if (BYTES == 16)
        asm volatile(IF_GO "cp.async.cg.shared.global.L2::128B [%1], [%2], 16, %3; }"
                     ::"r"(go), "r"(to), "l"(from), "r"(valid) : "memory");  // cp.async
    else
        asm volatile(IF_GO "cp.async.ca.shared.global [%1], [%2], %3, %4; }"
                     ::"r"(go), "r"(to), "l"(from), "n"(BYTES), "r"(valid) : "memory");  // cp.async
}

// Four 8x8 matrices of 16-bit elements. go: whether at all, the same of all lanes; always: that is known.
template <bool TRANSPOSED>
__device__ __forceinline__ void ldmatrix(u32 (&r)[4], u32 shared, bool always, u32 go)
{
    if (always && TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared) : "memory");
    else if (always)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared) : "memory");
    else if (TRANSPOSED)
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0; "
                     "@p ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4]; }"
                     : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]) : "r"(shared), "r"(go) : "memory");
    else
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0; @p ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4]; }"
                     : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]) : "r"(shared), "r"(go) : "memory");
}

#if MULTIPLY == JG_TYPE_S8
#if JG_TYPE_A == JG_TYPE_U8 && JG_TYPE_B == JG_TYPE_U8
#define MMA "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32"
#elif JG_TYPE_A == JG_TYPE_U8
#define MMA "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32"
#elif JG_TYPE_B == JG_TYPE_U8
#define MMA "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32"
#else
#define MMA "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
#endif
#elif MULTIPLY == JG_TYPE_BF16
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#elif JG_MODE == JG_MODE_F16
#define MMA "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
#else
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#endif

__device__ __forceinline__ void mma(reg_t (&d)[REGISTERS], const u32 (&a)[4], u32 b0, u32 b1)
{
#if JG_MODE == JG_MODE_F16
    asm(MMA " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};" : "+r"(d[0]), "+r"(d[1])
#elif MULTIPLY == JG_TYPE_S8
    asm(MMA " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
#else
    asm(MMA " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#endif
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The swizzle: what the numbers of a row's chunks are XORed with. Every 16 rows it is the same again.
template <int CHUNKS>
__device__ __forceinline__ u32 turn_of(u32 row)
{
    return CHUNKS >= 8 ? row & 7 : CHUNKS == 4 ? row >> 1 & 3 : row >> 2 & 1;
}

// Byte offset of a chunk in a shared tile of CHUNKS chunks a row.
template <int CHUNKS>
__device__ __forceinline__ u32 chunk_at(u32 row, u32 chunk)
{
    return (row * CHUNKS + (chunk ^ turn_of<CHUNKS>(row))) * 16;
}

// Copies one chunk, of which the first `valid` elements exist, and zero-fills the rest. What does not exist is not read, so
// `global` may lie outside the operand then.
template <int VEC, bool WHOLE>
__device__ __forceinline__ void copy_chunk(u32 shared, const u8 *global, u32 valid, u32 go)
{
    const u32 bytes = valid * ELEMENT_BYTES;
#pragma unroll
    for (u32 i = 0; i < 16; i += VEC) {
        const u32 have = bytes <= i ? 0 : bytes - i < VEC ? bytes - i : VEC;
        cp_async<VEC, WHOLE>(shared + i, global + i, have, go);
    }
}

// What an element becomes in shared memory.
template <int TYPE, bool WEIGHTS>
__device__ __forceinline__ u32 converted(u32 bits, bool grouped, float scale, float zero)
{
    if (MULTIPLY == JG_TYPE_S8) return TYPE == JG_TYPE_S4 ? (u32)widen_integer<TYPE>(bits) & 255u : bits;
    if (WEIGHTS) return grouped ? dequantise(widen<TYPE>(bits), scale, zero) : exact_bits<TYPE>(bits);
    return CLEANS(TYPE) ? to_multiply_bits(clean(widen<TYPE>(bits), smallest_normal(TYPE))) : exact_bits<TYPE>(bits);
}

// All of a chunk's elements at once: they lie side by side, from a multiple of their size in bytes on.
template <int TYPE>
__device__ __forceinline__ void read_wide(u32 (&v)[CHUNK], const void *global, i64 at)
{
    const u8 *p = (const u8 *)global + bytes_of<TYPE>(at);
    const u32 bits = TYPE == JG_TYPE_S4 ? 4 : TYPE == JG_TYPE_F16 || TYPE == JG_TYPE_BF16 ? 16 : 8;
    u32 words[CHUNK * bits / 32];
    if (CHUNK * bits == 128) *(uint4 *)words = *(const uint4 *)p;
    else if (CHUNK * bits == 64) *(uint2 *)words = *(const uint2 *)p;
    else words[0] = *(const u32 *)p;
#pragma unroll
    for (u32 i = 0; i < CHUNK; i++) v[i] = words[i * bits / 32] >> i * bits % 32 & ((1u << bits) - 1);
}

// Reads a chunk along k by any strides, of which the first `valid` elements exist, converts it, and fills up with zeros.
template <int TYPE, bool WEIGHTS>
__device__ __forceinline__ void gather_chunk(const jg_args &args, u32 shared, const void *global, const weights &w, i64 at, i64 step,
                                             bool wide, u32 mn, u32 k, u32 valid)
{
    u32 v[CHUNK];
    // What needs no conversion is copied where it could be read wide.
    if ((TYPE != MULTIPLY || CLEANS(TYPE)) && wide && valid == CHUNK) {
        read_wide<TYPE>(v, global, at);
    } else {
#pragma unroll
        for (u32 i = 0; i < CHUNK; i++) v[i] = i < valid ? read_bits<TYPE>(global, at + i * step) : 0;
    }
    // A group is made of whole chunks. Zero bits are a 0 of every type, but not of a weight with a zero point.
    float scale = 0.0f, zero = 0.0f;
    const bool grouped = WEIGHTS && GROUP_CODE != 0;
    if (grouped && valid) read_group(args, w, mn, k, scale, zero);
    u32 words[4] = {0, 0, 0, 0};
#pragma unroll
    for (u32 i = 0; i < CHUNK; i++)
        if (!WEIGHTS || i < valid) words[i * ELEMENT_BYTES / 4] |= converted<TYPE, WEIGHTS>(v[i], grouped, scale, zero) << i * ELEMENT_BYTES % 4 * 8;
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(shared), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
}

__device__ __forceinline__ u32 valid_of(u32 at, u32 limit)
{
    return at >= limit ? 0 : limit - at < CHUNK ? limit - at : CHUNK;
}

// Copied operands. A stage has so many chunks a row, and a thread copies every THREADS-th chunk of it: always the same chunk
// of a row, of rows ROWS_APART apart. (Sizes of tiles and THREADS are powers of two.)
#define PER_ROW (KMAJOR ? JG_BK / CHUNK : MN / CHUNK)
#define ROWS_APART (THREADS / PER_ROW)

// A thread's first chunk of a stage: where it comes from, and its byte offset in the tile in shared memory.
struct copy_source {
    const u8 *from;
    u32 at;
};

template <int MN, bool KMAJOR>
__device__ __forceinline__ copy_source first_chunk(const u8 *global, i64 ld, u32 mn0)
{
    const u32 row = threadIdx.x / PER_ROW, chunk = threadIdx.x % PER_ROW, inner = chunk * CHUNK;
    copy_source s;
    s.from = global + (KMAJOR ? (mn0 + row) * ld + inner : row * ld + mn0 + inner) * ELEMENT_BYTES;
    s.at = chunk_at<PER_ROW>(row, chunk);
    return s;
}

// How many chunks of a stage a thread copies; what is gathered comes at one go.
template <int MN, int VEC, bool KMAJOR>
__device__ __forceinline__ constexpr u32 count_copies()
{
    return VEC <= 3 ? 1 : ((KMAJOR ? MN : JG_BK) + ROWS_APART - 1) / ROWS_APART;
}

// Copies a thread's i-th chunk of a stage. mn_left, k_left: what there is of the operand from the stage's corner on.
template <int MN, int VEC, bool KMAJOR, bool EDGE_MN>
__device__ __forceinline__ void copy_operand(u32 shared, const copy_source &source, i64 ld, u32 mn_left, u32 k_left, u32 i,
                                             u32 go)
{
    const u32 rows = KMAJOR ? MN : JG_BK;
    const bool edge_outer = KMAJOR ? EDGE_MN : EDGE_K, edge_inner = KMAJOR ? EDGE_K : EDGE_MN;
    const u32 row0 = threadIdx.x / PER_ROW, chunk = threadIdx.x % PER_ROW;
    const u32 inner = edge_inner ? valid_of(chunk * CHUNK, KMAJOR ? k_left : mn_left) : CHUNK;
    const u32 row = row0 + i * ROWS_APART;
    if (rows % ROWS_APART != 0) go = go && row < rows;
    const u32 valid = !edge_outer || row < (KMAJOR ? mn_left : k_left) ? inner : 0;
    // The swizzle comes round every eight rows.
    const u32 at = ROWS_APART % 8 == 0 ? source.at + i * ROWS_APART * PER_ROW * 16 : chunk_at<PER_ROW>(row, chunk);
    const u8 *from = source.from + i * ROWS_APART * ld * ELEMENT_BYTES;
    copy_chunk<VEC <= 3 ? 4 : VEC, !edge_outer && !edge_inner>(shared + at, from, valid, go);
}

// Brings one stage of one operand, MN x JG_BK elements from (mn0, k0), into shared memory: of a copied one the thread's i-th
// chunk, from `source`. k_contiguous: neighbours along k are neighbours in memory. go: whether the stage is there.
template <int TYPE, bool WEIGHTS, int MN, int VEC, bool KMAJOR, bool EDGE_MN>
__device__ __forceinline__ void load_operand(const jg_args &args, u32 shared, const u8 *global, const copy_source &source,
                                             const weights &w, i64 ld, bool k_contiguous, bool wide, u32 mn0, u32 k0,
                                             u32 mn_limit, u32 k_limit, u32 i, bool go)
{
    if (VEC > 3) {
        copy_operand<MN, VEC, KMAJOR, EDGE_MN>(shared, source, ld, mn_limit - mn0, k_limit - k0, i, go);
        return;
    }
    if (!go) return;
    const u32 chunks = MN * JG_BK / CHUNK;
#pragma unroll
    for (u32 base = 0; base < chunks; base += THREADS) {
        const u32 at_chunk = base + threadIdx.x;
        if (chunks % THREADS != 0 && at_chunk >= chunks) break;
        // Threads of a warp walk along what is contiguous.
        const u32 row = k_contiguous ? at_chunk / (JG_BK / CHUNK) : at_chunk % MN;
        const u32 chunk = k_contiguous ? at_chunk % (JG_BK / CHUNK) : at_chunk / MN;
        const u32 mn = mn0 + row, k = k0 + chunk * CHUNK;
        const u32 valid = mn < mn_limit ? valid_of(k, k_limit) : 0;
        const i64 at = k_contiguous ? mn * ld + k : k * ld + mn;
        gather_chunk<TYPE, WEIGHTS>(args, shared + chunk_at<JG_BK / CHUNK>(row, chunk), global, w, valid ? at : 0,
                                    k_contiguous ? 1 : ld, wide && k_contiguous, mn, k, valid);
    }
}

// Where a lane reads its operand's fragments for ldmatrix, as byte offsets in a stage: for a k-major tile one offset for each
// step, 16 rows on being the next fragment, for an mn-major one (of 16-bit elements, read transposed) one for each fragment, a
// step's rows on being the next step.
#define SOURCES (KMAJOR ? STEPS : WMN / 16)

// Of A: lanes 0-7 and 8-15 address the upper and lower rows of the first chunk of k, lanes 16-31 those of the second. Of B: two
// chunks of k for the first eight columns, two for the others. Where tiles are mn-major, rows and chunks change places.
template <int MN, int WMN, bool KMAJOR, bool OPERAND_B>
__device__ __forceinline__ void find_fragments(u32 (&at)[SOURCES], u32 mn0, u32 slice, u32 lane)
{
    const bool across = KMAJOR == OPERAND_B;
    const u32 row = across ? (lane & 7) + (lane >> 4) * 8 : lane & 15, chunk = across ? lane >> 3 & 1 : lane >> 4;
    const u32 row0 = KMAJOR ? mn0 : slice * 16, chunk0 = KMAJOR ? slice * 2 : mn0 / 8;
#pragma unroll
    for (u32 i = 0; i < SOURCES; i++) {
        const u32 turn = turn_of<PER_ROW>(row) ^ (KMAJOR ? i * JG_SLICES * 2 : i * 2);
        at[i] = ((row0 + row) * PER_ROW + ((chunk0 + chunk) ^ turn)) * 16;
    }
}

// Fragment i of a warp, of the slice's step `step` of a stage. Of B: r[0], r[1] for the first eight columns, r[2], r[3] for the
// others.
template <int MN, int WMN, bool KMAJOR>
__device__ __forceinline__ void load_fragment(u32 (&r)[4], u32 shared, const u32 (&at)[SOURCES], u32 i, u32 step, bool always,
                                              bool go)
{
    if (KMAJOR) ldmatrix<false>(r, shared + at[step] + i * 16 * PER_ROW * 16, always, go);
    else ldmatrix<true>(r, shared + at[i] + step * JG_SLICES * 16 * PER_ROW * 16, always, go);
}

// Does slot `slot`'s of `count` things that are dealt out evenly among so many slots: at most MOST.
template <int MOST, typename DO>
__device__ __forceinline__ void deal(u32 count, u32 slot, u32 slots, DO &&what)
{
    const u32 from = count * slot / slots, to = count * (slot + 1) / slots;
#pragma unroll
    for (u32 i = 0; i < MOST; i++)
        if (slot < slots && from + i < to) what(from + i);
}

// Computes the tile of block `block` of one item.
__device__ __forceinline__ void multiply_item(const jg_args &args, u32 block, u32 item, u8 *buffer)
{
    const u32 shared = (u32)__cvta_generic_to_shared(buffer);
    u32 tile_m, tile_n;
    tile_of_block(args, block, tile_m, tile_n);
    const u32 m0 = tile_m * JG_BM, n0 = tile_n * JG_BN;
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u32 warp_m = place_of_warp() / WARPS_N * JG_WM, warp_n = place_of_warp() % WARPS_N * JG_WN;
    const u8 *a = (const u8 *)args.a + bytes_of<JG_TYPE_A>(args.stride_a * item);
    const u8 *b = (const u8 *)args.b + bytes_of<JG_TYPE_B>(args.stride_b * item);
    const weights weights_a = weights_of_item(args, item, DIM_M), weights_b = weights_of_item(args, item, DIM_N);
#ifdef JG_FUSION
    const bool wide_a = JG_VEC_A == 3, wide_b = JG_VEC_B == 3;
#else
    const bool wide_a = (args.flags & JG_FLAG_VEC_A) != 0, wide_b = (args.flags & JG_FLAG_VEC_B) != 0;
#endif

    fragment_row sums[FRAGS_M];
#pragma unroll
    for (int i = 0; i < FRAGS_M * FRAGS_N * REGISTERS; i++) (&sums[0][0][0])[i] = 0;

    if (args.alpha != 0.0f) {
        const u32 steps = (DIM_K + JG_BK - 1) / JG_BK;
        copy_source copy_a = first_chunk<JG_BM, A_KMAJOR>(a, LDA, m0), copy_b = first_chunk<JG_BN, B_KMAJOR>(b, LDB, n0);
        u32 filling = shared;
        // What comes in pieces; what there is of it from a stage's corner on.
        typedef pieces_of<IN_PIECES_A, A_KMAJOR, JG_BM, THREADS, JG_VEC_A, ODD_A, EDGE_M>::type type_a;
        typedef pieces_of<IN_PIECES_B, B_KMAJOR, JG_BN, THREADS, JG_VEC_B, ODD_B, EDGE_N>::type type_b;
        type_a pieces_a;
        type_b pieces_b;
        pieces_a.begin_at(a, LDA, A_KMAJOR ? m0 : 0, A_KMAJOR ? 0 : m0, A_KMAJOR ? DIM_M : DIM_K, A_KMAJOR ? DIM_K : DIM_M);
        pieces_b.begin_at(b, LDB, B_KMAJOR ? n0 : 0, B_KMAJOR ? 0 : n0, B_KMAJOR ? DIM_N : DIM_K, B_KMAJOR ? DIM_K : DIM_N);
        auto outer_a = [&](u32 k0) { return A_KMAJOR ? DIM_M - m0 : DIM_K - k0; };
        auto inner_a = [&](u32 k0) { return A_KMAJOR ? DIM_K - k0 : DIM_M - m0; };
        auto outer_b = [&](u32 k0) { return B_KMAJOR ? DIM_N - n0 : DIM_K - k0; };
        auto inner_b = [&](u32 k0) { return B_KMAJOR ? DIM_K - k0 : DIM_N - n0; };
        // Stages are filled one after the other, by so many copies each.
        constexpr u32 copies_b = TURNED_B ? 0 : IN_PIECES_B ? type_b::COUNT : count_copies<JG_BN, JG_VEC_B, B_KMAJOR>();
        constexpr u32 copies = copies_b + (TURNED_A ? 0 : IN_PIECES_A ? type_a::COUNT : count_copies<JG_BM, JG_VEC_A, A_KMAJOR>());
        auto copy = [&](u32 step, u32 i) {
            const u32 k0 = step * JG_BK;
            if (i < copies_b && IN_PIECES_B)
                pieces_b.copy(filling + STAGE_A_BYTES, LDB, i, outer_b(k0), inner_b(k0), step < steps);
            else if (i >= copies_b && IN_PIECES_A)
                pieces_a.copy(filling, LDA, i - copies_b, outer_a(k0), inner_a(k0), step < steps);
            else if (i < copies_b)
                load_operand<JG_TYPE_B, WEIGHTS_B, JG_BN, JG_VEC_B, B_KMAJOR, EDGE_N>(
                    args, filling + STAGE_A_BYTES, b, copy_b, weights_b, LDB, TRANS_B, wide_b, n0, step * JG_BK, DIM_N, DIM_K, i,
                    step < steps);
            else
                load_operand<JG_TYPE_A, WEIGHTS_A, JG_BM, JG_VEC_A, A_KMAJOR, EDGE_M>(
                    args, filling, a, copy_a, weights_a, LDA, !TRANS_A, wide_a, m0, step * JG_BK, DIM_M, DIM_K, i - copies_b,
                    step < steps);
        };
        auto commit_stage = [&]() {
            const u32 stage = filling;
            cp_async_commit();
            copy_a.from += A_KMAJOR ? JG_BK * ELEMENT_BYTES : LDA * (JG_BK * ELEMENT_BYTES);
            copy_b.from += B_KMAJOR ? JG_BK * ELEMENT_BYTES : LDB * (JG_BK * ELEMENT_BYTES);
            pieces_a.next_stage(LDA);
            pieces_b.next_stage(LDB);
            filling = stage + STAGE_BYTES == shared + RING_BYTES ? shared : stage + STAGE_BYTES;
        };
        auto load = [&](u32 step) {
#pragma unroll
            for (u32 i = 0; i < copies; i++) copy(step, i);
            commit_stage();
        };
        typename either<TURNED_A, turned_rows<JG_BM, THREADS, JG_VEC_A >= 4>, no_turned_rows>::type words_a;
        typename either<TURNED_B, turned_rows<JG_BN, THREADS, JG_VEC_B >= 4>, no_turned_rows>::type words_b;
        auto fetch_words = [&](u32 step) {
            if (step >= steps) return;
            words_a.fetch(a, LDA, step * JG_BK, m0, DIM_K, DIM_M);
            words_b.fetch(b, LDB, step * JG_BK, n0, DIM_K, DIM_N);
        };
        auto put_words = [&](u32 step) {
            const u32 stage = shared + step % STAGES * STAGE_BYTES, k0 = step * JG_BK;
            if (step >= steps) return;
            words_a.put(stage);
            words_b.put(stage + STAGE_A_BYTES);
            if (!words_a.has_edges_at(m0, DIM_M) && !words_b.has_edges_at(n0, DIM_N)) return;
            __syncthreads();
            words_a.put_edges_of(stage, a, LDA, k0, m0, DIM_K, DIM_M);
            words_b.put_edges_of(stage + STAGE_A_BYTES, b, LDB, k0, n0, DIM_K, DIM_N);
        };
        // What is turned is fetched one step ahead: the first step, in a turn of the loop before it.
        const u32 first = TURNED ? ~0u : 0;
#pragma unroll UNROLL_LOADS
        for (u32 step = 0; step != first + STAGES - 1; step++) load(step);

        u32 at_a[A_KMAJOR ? STEPS : FRAGS_M], at_b[B_KMAJOR ? STEPS : FRAGS_N / 2];
        find_fragments<JG_BM, JG_WM, A_KMAJOR, false>(at_a, warp_m, slice_of_warp(), lane);
        find_fragments<JG_BN, JG_WN, B_KMAJOR, true>(at_b, warp_n, slice_of_warp(), lane);
        u32 fragments_a[2][FRAGS_M][4], fragments_b[2][FRAGS_N / 2][4];
        u32 stage = shared;
        // Fragments of step `t`, from one of two sets of registers or the one. always, go: as of ldmatrix.
        auto fetch_a = [&](u32 t, u32 i, bool always, bool go) {
            load_fragment<JG_BM, JG_WM, A_KMAJOR>(fragments_a[TURNS_A ? 0 : t % 2][i], stage, at_a, i, t % STEPS, always, go);
        };
        auto fetch_b = [&](u32 t, u32 i, bool always, bool go) {
            u32 (&r)[4] = fragments_b[TURNS_B ? 0 : t % 2][i];
            load_fragment<JG_BN, JG_WN, B_KMAJOR>(r, stage + STAGE_A_BYTES, at_b, i, t % STEPS, always, go);
        };
        auto fetch_turn = [&](u32 t, u32 i, bool always, bool go) {
            if (TURNS_A) fetch_a(t, i, always, go);
            else fetch_b(t, i, always, go);
        };
        // In the order in which the mma need them.
        auto fetch_beside = [&](u32 t, u32 i, bool always, bool go) {
            if (TURNS_A) fetch_b(t, i, always, go);
            else if (TURNS_B || i == 0) fetch_a(t, i, always, go);
            else if (i <= FRAGS_N / 2) fetch_b(t, i - 1, always, go);
            else fetch_a(t, i - FRAGS_N / 2, always, go);
        };
        auto fetch = [&](u32 t) {
#pragma unroll
            for (u32 i = 0; i < BESIDE; i++) fetch_beside(t, i, true, true);
#pragma unroll
            for (int i = 0; i < TURNS; i++) fetch_turn(t, i, true, true);
        };
        // What is fetched of step t before mma q of the step before it, if that begins at mma `from`.
        auto fetch_before = [&](u32 t, u32 q, u32 from, bool always, bool go) {
            if (q < MMAS) deal<MOST_BESIDE>(BESIDE, q - from, MMAS / 2, [&](u32 i) { fetch_beside(t, i, always, go); });
#pragma unroll
            for (int i = 0; i < TURNS; i++)
                if (q == from + TURN_MMAS(MMAS - from, i + 1)) fetch_turn(t, i, always, go);
        };
        auto multiply_one = [&](u32 t, u32 q) {
            const u32 (&x)[FRAGS_M][4] = fragments_a[TURNS_A ? 0 : t % 2];
            const u32 (&y)[FRAGS_N / 2][4] = fragments_b[TURNS_B ? 0 : t % 2];
            const u32 i = TURNS_B ? q % FRAGS_M : q / FRAGS_N, j = TURNS_B ? q / FRAGS_M : q % FRAGS_N;
            mma(sums[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
        };
        // there: whether there is a stage, which is shifted then.
        auto await_stage = [&](bool there) {
            cp_async_wait<STAGES - 2>();
            if (pieces_a.FIXES || pieces_b.FIXES) {
                __syncwarp();
                if (there) {
                    pieces_a.fix(stage, LDA, DIM_K);
                    pieces_b.fix(stage + STAGE_A_BYTES, LDB, DIM_K);
                }
            }
            __syncthreads();
        };
        auto next_stage = [&]() { stage = stage + STAGE_BYTES == shared + RING_BYTES ? shared : stage + STAGE_BYTES; };
#pragma unroll 1
        for (u32 step = first; TURNED && step != steps; step++) {
            await_stage(step < steps);
            load(step + STAGES - 1);
            fetch_words(step + 1);
            if (step < steps) {
                fetch(0);
#pragma unroll
                for (u32 t = 0; t < STEPS; t++)
#pragma unroll
                    for (u32 q = 0; q <= MMAS; q++) {
                        if (t + 1 < STEPS) fetch_before(t + 1, q, 0, true, true);
                        if (q < MMAS) multiply_one(t, q);
                    }
                next_stage();
            }
            put_words(step + 1);
        }
        if (!TURNED) {
            await_stage(true);
            fetch(0);
        }
#pragma unroll UNROLL_STAGES
        for (u32 step = 0; !TURNED && step < steps; step++) {
            const bool more = step + 1 < steps;
#pragma unroll
            for (u32 t = 0; t < STEPS; t++) {
                // In the first half of a step's mma the next step's fragments are fetched, of the last step in the second, after
                // the warps have met. In the other half of the first step the copies begin.
                const bool last = t + 1 == STEPS;
                const u32 half = MMAS / 2, fetching = last ? half : 0, copying = half - fetching;
#pragma unroll
                for (u32 q = 0; q <= MMAS; q++) {
                    if (last && q == half && (!STRAIGHT || more)) {
                        next_stage();
                        await_stage(more);
                    }
                    if (!last || !STRAIGHT || more) fetch_before(t + 1, q, fetching, !last || STRAIGHT, more);
                    if (t == 0 && !ALL_AT_ONCE)
                        deal<(copies + MMAS / 2 - 1) / (MMAS / 2)>(copies, q - copying, half, [&](u32 i) { copy(step + STAGES - 1, i); });
                    if (t == 0 && q == copying + half - 1) commit_stage();
                    if (q < MMAS) multiply_one(t, q);
                }
            }
#pragma unroll
            for (u32 i = 0; STEPS % 2 != 0 && i < FRAGS_M * 4; i++) fragments_a[0][i / 4][i % 4] = fragments_a[1][i / 4][i % 4];
#pragma unroll
            for (u32 i = 0; STEPS % 2 != 0 && i < FRAGS_N * 2; i++) fragments_b[0][i / 4][i % 4] = fragments_b[1][i / 4][i % 4];
        }
    }

    // After the last barrier of a loop with jumps nothing is read from the stages.
    write_back<SLABS_APART || (!TURNED && !STRAIGHT)>(args, output_of_item(args, item), sums, m0 + warp_m, n0 + warp_n,
                                                        shared + SLABS_AT + warp * SLAB_BYTES, lane);
}
