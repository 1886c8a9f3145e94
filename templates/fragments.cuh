// Shared by the families of warp tiles: a warp's sums lie in fragments of 16 x 8, as mma.sync leaves them, and go to C by way of
// shared memory, where the slices' sums are added.

#define WARPS_N (JG_BN / JG_WN)
#define TILE_WARPS ((JG_BM / JG_WM) * WARPS_N)  // of one slice: together they compute the block's tile
#define WARP_THREADS (JG_SLICES * TILE_WARPS * 32)
#define FRAGS_M (JG_WM / 16)
#define FRAGS_N (JG_WN / 8)
#define SLAB_FRAGS (FRAGS_M % 2 == 0 ? 2 : 1)   // rows of fragments in a slab
#define SLAB_BYTES (SLAB_FRAGS * 16 * JG_WN * 4)

// A fragment's registers: 4 sums, or with JG_MODE_F16 two pairs of f16.
#if JG_MODE == JG_MODE_F16
typedef u32 reg_t;
#define REGISTERS 2
#else
typedef sum_t reg_t;
#define REGISTERS 4
#endif
typedef reg_t fragment_row[FRAGS_N][REGISTERS];

// Where rows lie along k, tf32 reads several fragments' operands at once. So of COLUMN_TURNS neighbouring fragments, column c of
// fragment j is column c * COLUMN_TURNS + j of all; and with ROW_TURNS 2, row r of a fragment's upper half is its row 2 * r, of
// the lower half row 2 * r + 1.
#if JG_FAMILY == JG_FAMILY_TF32 && JG_TRANS_B == 0
#define COLUMN_TURNS (JG_WN % 32 == 0 ? 4 : 2)
#else
#define COLUMN_TURNS 1
#endif
#if JG_FAMILY == JG_FAMILY_TF32 && JG_TRANS_A == 1
#define ROW_TURNS 2
#else
#define ROW_TURNS 1
#endif

__device__ __forceinline__ void cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING>
__device__ __forceinline__ void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Two neighbours of a row: the first two of a fragment or, eight rows below, the others.
__device__ __forceinline__ void neighbours(const reg_t (&fragment)[REGISTERS], int half, sum_t &x, sum_t &y)
{
#if JG_MODE == JG_MODE_F16
    x = f16_to_f32(fragment[half] & 0xffffu);
    y = f16_to_f32(fragment[half] >> 16);
#else
    x = fragment[half * 2];
    y = fragment[half * 2 + 1];
#endif
}

// The warp's slice, and its number among the slice's warps.
__device__ __forceinline__ u32 slice_of_warp()
{
    return JG_SLICES > 1 ? (threadIdx.x >> 5) / TILE_WARPS : 0;
}

__device__ __forceinline__ u32 place_of_warp()
{
    return JG_SLICES > 1 ? (threadIdx.x >> 5) % TILE_WARPS : threadIdx.x >> 5;
}

// Byte offset of four neighbours in a slab: XOR-swizzled, so that there are no bank conflicts when half a warp stores pairs to
// four rows, or a quarter fours to two rows, nor when a quarter loads four or eight neighbours each. JG_WN is a power of two.
__device__ __forceinline__ u32 slab_at(u32 row, u32 quad)
{
    const u32 turn = COLUMN_TURNS == 4 ? (row ^ (JG_WN >= 64 ? quad >> 3 : 0)) & 1
                     : JG_WN >= 64 ? (row & 3) * 2 + (quad >> 3 & 1)
                     : JG_WN == 32 ? (row & 3) * 2 + (row & 1)
                     : JG_WN == 16 ? (row >> 1 & 1) * 3
                                   : row >> 2 & 1;
    return row * (JG_WN * 4) + (quad ^ turn) * 16;
}

// A row of fragments into rows row0 to row0 + 15. With COLUMN_TURNS a lane has four neighbours of a row, in as many fragments.
__device__ __forceinline__ void store_slab(u32 slab, const fragment_row &sums, u32 row0, u32 lane)
{
#if COLUMN_TURNS > 1
#pragma unroll
    for (int i = 0; i < FRAGS_N; i++) {
        const int j = i / COLUMN_TURNS * COLUMN_TURNS, h = i % COLUMN_TURNS, half = COLUMN_TURNS == 4 ? h >> 1 : h;
        const u32 quad = COLUMN_TURNS == 4 ? j * 2 + (lane & 3) * 2 + (h & 1) : j * 2 + (lane & 3);
        const u32 at = slab + slab_at(row0 + half * 8 + (lane >> 2), quad);
        float v[4];
#pragma unroll
        for (int x = 0; x < 4; x++)
            v[x] = COLUMN_TURNS == 4 ? sums[j + x][half * 2 + (h & 1)] : sums[j + x % 2][half * 2 + x / 2];
        asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(at), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]) : "memory");
    }
#else
#pragma unroll
    for (int j = 0; j < FRAGS_N; j++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const u32 at = slab + slab_at(row0 + half * 8 + (lane >> 2), j * 2 + (lane >> 1 & 1)) + (lane & 1) * 8;
            sum_t x, y;
            neighbours(sums[j], half, x, y);
#if MULTIPLY == JG_TYPE_S8
            asm volatile("st.shared.v2.s32 [%0], {%1,%2};" ::"r"(at), "r"(x), "r"(y) : "memory");
#else
            asm volatile("st.shared.v2.f32 [%0], {%1,%2};" ::"r"(at), "f"(x), "f"(y) : "memory");
#endif
        }
#endif
}

__device__ __forceinline__ void load_slab(sum_t *v, u32 at)
{
#if MULTIPLY == JG_TYPE_S8
    asm volatile("ld.shared.v4.s32 {%0,%1,%2,%3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(at) : "memory");
#else
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(at) : "memory");
#endif
}

// Four neighbours' sums. Those of the slices are added in the slices' order: in float32 with JG_MODE_F16 too.
__device__ __forceinline__ void load_sums(sum_t *v, u32 at)
{
    load_slab(v, at);
#pragma unroll
    for (u32 slice = 1; slice < JG_SLICES; slice++) {
        sum_t more[4];
        load_slab(more, at + slice * (TILE_WARPS * SLAB_BYTES));
#pragma unroll
        for (int i = 0; i < 4; i++)
#if MULTIPLY == JG_TYPE_S8
            v[i] += more[i];
#else
            v[i] = __fadd_rn(v[i], more[i]);
#endif
    }
}

// Where it is known that C has 16-bit elements and ends in alpha and beta alone, a thread stores eight neighbours at once, if there
// are as many for each.
#if defined(JG_FUSION) && defined(JG_LDC) && !defined(JG_FLUSH) && !defined(JG_SANITIZE) && MULTIPLY != JG_TYPE_S8 && JG_WN >= 16
#define EIGHT (SLAB_BYTES / 4 >= JG_SLICES * 32 * 8 && (FUSION & JG_FUSE_ANY) == 0 && VECTOR_C && LDC % 8 == 0 && \
               (TYPE_C == JG_TYPE_F16 || TYPE_C == JG_TYPE_BF16))
#else
#define EIGHT false
#endif

// Stores neighbours of a row of C that are finished by alpha alone.
template <int WIDTH>
__device__ __forceinline__ void store_scaled(const jg_args &args, const output &out, u32 row, u32 column, const sum_t (&sums)[8])
{
    const i64 at = row * LDC + column;
    const u32 type = MULTIPLY == JG_TYPE_S8 ? JG_TYPE_S32 : TYPE_C, bytes = type == JG_TYPE_F16 || type == JG_TYPE_BF16 ? 2 : 4;
    u32 bits[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
#if MULTIPLY == JG_TYPE_S8
        bits[i] = (u32)sums[i];
#else
        const float x = __fmul_rn(args.alpha, sums[i]);
        bits[i] = type == JG_TYPE_F32 ? __float_as_uint(x) : type == JG_TYPE_F16 ? f32_to_f16(x) : f32_to_bf16(x);
#endif
    }
    if (WIDTH == 8 && (!EDGE_N || column + 8 <= DIM_N)) {
        *(uint4 *)((u16 *)out.c + at) = make_uint4(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16, bits[WIDTH - 4] | bits[WIDTH - 3] << 16,
                                                   bits[WIDTH - 2] | bits[WIDTH - 1] << 16);
        return;
    }
    write_quad(args, out.c, at, column, bytes, bits);
    if (WIDTH == 8) write_quad(args, out.c, at + 4, column + 4, bytes, bits + WIDTH - 4);
}

// Part `part` of a slab to C, which is so many neighbours. SCALED: they are finished by alpha alone.
template <int WIDTH, bool SCALED>
__device__ __forceinline__ void store_part(const jg_args &args, const output &out, u32 row0, u32 column0, u32 slab, u32 part, bool plain)
{
    const u32 place = part / (JG_WN / WIDTH), column = part % (JG_WN / WIDTH) * WIDTH;
    const u32 row = ROW_TURNS == 2 ? (place & 16) + (place & 7) * 2 + (place >> 3 & 1) : place;
    sum_t v[8];
#pragma unroll
    for (u32 i = 0; i < WIDTH; i += 4) load_sums(v + i, slab + slab_at(place, (column + i) / 4));
    if (EDGE_M && row0 + row >= DIM_M) return;
    if (SCALED) store_scaled<WIDTH>(args, out, row0 + row, column0 + column, v);
    else if (plain) store_plain(args, out, row0 + row, column0 + column, v);
    else store_fused(args, out, row0 + row, column0 + column, v);
}

// The rows of a slab to C, by the warps of all slices that have one for this place. slab: that of the first slice; thread: among
// those warps' threads. What most products need is code by itself, unrolled.
__device__ __forceinline__ void store_rows(const jg_args &args, const output &out, u32 row0, u32 column0, u32 slab, u32 thread)
{
    const u32 threads = JG_SLICES * 32, width = EIGHT ? 8 : 4, parts = SLAB_BYTES / 4 / width, quads = SLAB_BYTES / 16;
    const bool plain = PLAIN_EPILOGUE;
    if (plain && args.beta == 0.0f && (!EIGHT || ((i64)out.c & 15) == 0)) {
#pragma unroll UNROLL_PLAIN
        for (u32 base = 0; base < parts; base += threads) {
            if (parts % threads != 0 && base + thread >= parts) break;
            store_part<width, true>(args, out, row0, column0, slab, base + thread, true);
        }
        return;
    }
#pragma unroll 1
    for (u32 base = 0; base < quads; base += threads) {
        if (quads % threads != 0 && base + thread >= quads) break;
        store_part<4, false>(args, out, row0, column0, slab, base + thread, plain && (PLAIN_BETA || MULTIPLY == JG_TYPE_S8));
    }
}

// Between a slab's writing and its reading: by the same warp, or with slices by others.
__device__ __forceinline__ void sync_slabs()
{
    if (JG_SLICES > 1) __syncthreads();
    else __syncwarp();
}

// Writes a warp's sums to C, one or two rows of fragments at a time: so a row's neighbours are stored together, and the many
// cases of an element's way to C are compiled once a slab, not once a fragment. Where all cases are left to the launch they are
// compiled once: the slabs take turns in one set of registers. slab: this warp's, SLAB_BYTES after that of the warp before.
// APART: the slabs do not lie where other warps may still read tiles.
template <bool APART = false>
__device__ __forceinline__ void write_back(const jg_args &args, const output &out, const fragment_row (&sums)[FRAGS_M], u32 row0,
                                           u32 column0, u32 slab, u32 lane)
{
    const u32 slice = slice_of_warp();
    if (!APART) __syncthreads();  // the slabs
#pragma unroll UNROLL_LONG
    for (u32 i = 0; i < FRAGS_M / SLAB_FRAGS; i++) {
        if (i > 0) sync_slabs();
#pragma unroll
        for (u32 part = 0; part < SLAB_FRAGS; part++) {
            fragment_row turn;
#pragma unroll
            for (u32 x = 0; x < FRAGS_M / SLAB_FRAGS; x++)
#pragma unroll
                for (u32 j = 0; j < FRAGS_N * REGISTERS; j++)
                    if (x == i) turn[j / REGISTERS][j % REGISTERS] = sums[x * SLAB_FRAGS + part][j / REGISTERS][j % REGISTERS];
            store_slab(slab, turn, part * 16, lane);
        }
        sync_slabs();
        store_rows(args, out, row0 + i * SLAB_FRAGS * 16, column0, slab - slice * (TILE_WARPS * SLAB_BYTES), slice * 32 + lane);
    }
}
