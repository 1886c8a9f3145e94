// Shared by the families of warp tiles: a warp's sums lie in fragments of 16 x 8, as mma.sync leaves them, and go to C by way of
// shared memory.

#define WARPS_N (JG_BN / JG_WN)
#define WARP_THREADS ((JG_BM / JG_WM) * WARPS_N * 32)
#define FRAGS_M (JG_WM / 16)
#define FRAGS_N (JG_WN / 8)
#define SLAB_ROW (JG_WN + 4)  // elements; padded against bank conflicts
#define SLAB_BYTES (16 * SLAB_ROW * 4)

// A fragment's registers: 4 sums, or with JG_MODE_F16 two pairs of f16.
#if JG_MODE == JG_MODE_F16
typedef u32 reg_t;
#define REGISTERS 2
#else
typedef sum_t reg_t;
#define REGISTERS 4
#endif
typedef reg_t fragment_row[FRAGS_N][REGISTERS];

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

__device__ __forceinline__ void store_slab(u32 slab, const fragment_row &sums, u32 lane)
{
#pragma unroll
    for (int j = 0; j < FRAGS_N; j++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const u32 at = slab + ((half * 8 + (lane >> 2)) * SLAB_ROW + j * 8 + (lane & 3) * 2) * 4;
            sum_t x, y;
            neighbours(sums[j], half, x, y);
#if MULTIPLY == JG_TYPE_S8
            asm volatile("st.shared.v2.s32 [%0], {%1,%2};" ::"r"(at), "r"(x), "r"(y) : "memory");
#else
            asm volatile("st.shared.v2.f32 [%0], {%1,%2};" ::"r"(at), "f"(x), "f"(y) : "memory");
#endif
        }
}

__device__ __forceinline__ void load_slab(sum_t (&v)[4], u32 at)
{
#if MULTIPLY == JG_TYPE_S8
    asm volatile("ld.shared.v4.s32 {%0,%1,%2,%3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(at) : "memory");
#else
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(at) : "memory");
#endif
}

// The rows of a slab to C.
__device__ __forceinline__ void store_rows(const jg_args &args, const output &out, u32 row0, u32 column0, u32 slab, u32 lane)
{
    const bool plain = PLAIN_EPILOGUE;
#pragma unroll 1
    for (u32 quad = lane; quad < 16 * JG_WN / 4; quad += 32) {
        const u32 row = quad / (JG_WN / 4), column = quad % (JG_WN / 4) * 4;
        sum_t v[4];
        load_slab(v, slab + (row * SLAB_ROW + column) * 4);
        if (row0 + row >= DIM_M) continue;
        if (plain) store_plain(args, out, row0 + row, column0 + column, v);
        else store_fused(args, out, row0 + row, column0 + column, v);
    }
}

// Writes a warp's sums to C, 16 rows at a time: so a row's neighbours are stored together, and the many cases of an element's
// way to C are compiled once a slab, not once a fragment. Where all cases are left to the launch they are compiled once: the
// slabs take turns in one set of registers.
__device__ __forceinline__ void write_back(const jg_args &args, const output &out, const fragment_row (&sums)[FRAGS_M], u32 row0,
                                           u32 column0, u32 slab, u32 lane)
{
    __syncthreads();  // the slabs lie where other warps may still read tiles
#pragma unroll UNROLL_LONG
    for (u32 i = 0; i < FRAGS_M; i++) {
        fragment_row turn;
#pragma unroll
        for (u32 x = 0; x < FRAGS_M; x++)
#pragma unroll
            for (u32 j = 0; j < FRAGS_N * REGISTERS; j++)
                if (x == i) turn[j / REGISTERS][j % REGISTERS] = sums[x][j / REGISTERS][j % REGISTERS];
        store_slab(slab, turn, lane);
        __syncwarp();
        store_rows(args, out, row0 + i * 16, column0, slab, lane);
        __syncwarp();
    }
}
