// Family mma: operands that cp.async cannot bring to where ldmatrix wants them. Their rows begin anywhere (at any multiple of 2
// bytes, of 8-bit integers at any byte), or they are 8-bit integers contiguous along m or n, which ldmatrix cannot transpose.
//
// They go through registers: what the next stage needs is fetched before a stage is multiplied, and put into shared memory
// afterwards, so that the multiplication hides how long memory takes to answer. Neighbouring lanes take neighbouring words of 4
// bytes, so a warp reads and writes 128 bytes in a row. Nothing is read but elements of the operand.

#define WORD (MULTIPLY == JG_TYPE_S8 ? 4 : 2)  // elements in 4 bytes

template <int CHUNKS>
__device__ __forceinline__ u32 chunk_at(u32 row, u32 chunk);

__device__ __forceinline__ void load_word(u32 &word, const u8 *p)
{
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(word) : "l"(p) : "memory");
}

__device__ __forceinline__ void load_half(u32 &half, const u8 *p)
{
    asm volatile("ld.global.u16 %0, [%1];" : "=r"(half) : "l"(p) : "memory");
}

// Loads where `count` is above `q`: predicates that the compiler makes no branches of.
__device__ __forceinline__ void load_word_if(u32 &word, const u8 *p, u32 count, u32 q)
{
    asm volatile("{ .reg .pred p; setp.gt.u32 p, %2, %3; @p ld.global.u32 %0, [%1]; }"
                 : "+r"(word) : "l"(p), "r"(count), "r"(q) : "memory");
}

__device__ __forceinline__ void load_half_if(u32 &half, const u8 *p, u32 count, u32 q)
{
    asm volatile("{ .reg .pred p; setp.gt.u32 p, %2, %3; @p ld.global.u16 %0, [%1]; }"
                 : "+r"(half) : "l"(p), "r"(count), "r"(q) : "memory");
}

__device__ __forceinline__ void store_word(u32 shared, u32 word)
{
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared), "r"(word) : "memory");
}

__device__ __forceinline__ u32 left_of(u32 at, u32 limit)
{
    return at < limit ? limit - at : 0;
}

// 8-bit integers: a word that is not aligned is read as the two words that it lies in. Where those may reach out of the row, in
// its first word and in the last two, nothing is read ahead; put_edges brings them.
__device__ __forceinline__ bool is_inner(u32 column, u32 column_limit)
{
    return column > 0 && left_of(column, column_limit) >= 8;
}

// Whether a stage has such words: rows of COLUMNS elements from column0.
template <int COLUMNS>
__device__ __forceinline__ bool has_edges(u32 column0, u32 column_limit)
{
    return MULTIPLY == JG_TYPE_S8 && (column0 == 0 || column0 + COLUMNS + 4 > column_limit);
}

// Reads them byte by byte. TURNED: neighbours along a row are put into different rows, of JG_BK elements.
template <int ROWS, int COLUMNS, int NT, bool TURNED>
__device__ __forceinline__ void put_edges(u32 shared, const u8 *global, i64 ld, u32 row0, u32 column0, u32 row_limit,
                                          u32 column_limit)
{
#pragma unroll 1
    for (u32 i = threadIdx.x; i < ROWS * 3; i += NT) {
        const u32 row = i % ROWS, edge = i / ROWS;  // the first word, the last, the last but one
        const u32 column = edge == 0 ? 0 : ((column_limit - 1) / 4 + 1 - edge) * 4, at = column - column0;
        if (column < column0 || at >= COLUMNS || (edge > 0 && (column == 0 || is_inner(column, column_limit)))) continue;
        const u32 left = row0 + row < row_limit ? left_of(column, column_limit) : 0;
        const u8 *p = global + (row0 + row) * ld + column;
        u32 bytes[4];
#pragma unroll
        for (u32 j = 0; j < 4; j++) bytes[j] = j < left ? p[j] : 0;
        if (TURNED) {
#pragma unroll
            for (u32 j = 0; j < 4; j++)
                asm volatile("st.shared.u8 [%0], %1;" ::"r"(shared + chunk_at<JG_BK / 16>(at + j, row / 16) + row % 16),
                             "r"(bytes[j]) : "memory");
        } else {
            store_word(shared + chunk_at<COLUMNS / 16>(row, at / 16) + at % 16,
                       bytes[0] | bytes[1] << 8 | bytes[2] << 16 | bytes[3] << 24);
        }
    }
}

// The word that begins `shift` bytes behind low's first.
__device__ __forceinline__ u32 joined(u32 low, u32 high, u32 shift)
{
    return __byte_perm(low, high, 0x3210u + 0x1111u * shift);
}

// Rows keep their direction: ROWS x COLUMNS elements, contiguous along columns.
template <int ROWS, int COLUMNS, int NT>
struct kept_rows {
    static const int PER_ROW = COLUMNS / WORD, COUNT = (ROWS * PER_ROW + NT - 1) / NT;
    // A thread's words are in one column, STEP rows apart, and all lie alike.
    static const bool ALIKE = NT % PER_ROW == 0 && NT / PER_ROW % WORD == 0;
    static const int STEP = ALIKE ? NT / PER_ROW : 1;
    u32 low[COUNT], high[COUNT];
    u32 shift;  // of the first row, from an aligned address; by one row it grows by `turn`
    u32 turn;

    static __device__ __forceinline__ u32 row_of(u32 q)
    {
        return ALIKE ? threadIdx.x / PER_ROW + q * STEP : (threadIdx.x + q * NT) / PER_ROW;
    }

    static __device__ __forceinline__ u32 word_of(u32 q)
    {
        return (ALIKE ? threadIdx.x : threadIdx.x + q * NT) % PER_ROW;
    }

    __device__ __forceinline__ u32 shift_of(u32 q) const
    {
        return (shift + row_of(ALIKE ? 0 : q) * turn) & 3;
    }

    // How many of a thread's words from q on lie in rows that exist; or, of words that are not alike, whether q's does.
    static __device__ __forceinline__ u32 rows_of(u32 q, u32 row0, u32 row_limit)
    {
        const u32 row = row_of(q), within = left_of(row, ROWS), left = left_of(row0 + row, row_limit);
        return ((within < left ? within : left) + STEP - 1) / STEP;
    }

    __device__ __forceinline__ void fetch(const u8 *global, i64 ld, u32 row0, u32 column0, u32 row_limit, u32 column_limit)
    {
        const u32 reach = MULTIPLY == JG_TYPE_S8 ? 4 : 0;  // of a word's other half
        const u32 alike_rows = rows_of(0, row0, row_limit);
        turn = (u32)ld * (4 / WORD);
        shift = (u32)(size_t)global + row0 * turn;
        // Where all is there, without conditions.
        if (ALIKE && ROWS * PER_ROW % NT == 0 && row0 + ROWS <= row_limit && column0 >= reach &&
            column0 + COLUMNS + reach <= column_limit) {
            const u8 *p = global + ((row0 + row_of(0)) * ld + column0) * (4 / WORD) + word_of(0) * 4;
#if MULTIPLY == JG_TYPE_S8
            p -= shift_of(0);
#pragma unroll
            for (u32 q = 0; q < COUNT; q++) {
                load_word(low[q], p + q * STEP * ld);
                high[q] = 0;
                load_word_if(high[q], p + q * STEP * ld + 4, shift_of(0), 0);
            }
#else
            if (shift_of(0) == 0) {
#pragma unroll
                for (u32 q = 0; q < COUNT; q++) {
                    load_word(low[q], p + q * STEP * ld * 2);
                    high[q] = 0;
                }
            } else {
#pragma unroll
                for (u32 q = 0; q < COUNT; q++) {
                    load_half(low[q], p + q * STEP * ld * 2);
                    load_half(high[q], p + q * STEP * ld * 2 + 2);
                }
            }
#endif
            return;
        }
#pragma unroll
        for (u32 q = 0; q < COUNT; q++) {
            const u32 at = ALIKE ? 0 : q, column = column0 + word_of(at) * WORD, left = left_of(column, column_limit);
            const u32 rows = ALIKE ? alike_rows : q + rows_of(q, row0, row_limit);
            const u8 *p = global + ((row0 + row_of(at)) * ld + (q - at) * STEP * ld + column) * (4 / WORD);
            low[q] = high[q] = 0;
#if MULTIPLY == JG_TYPE_S8
            const u32 inner_rows = is_inner(column, column_limit) ? rows : 0;
            load_word_if(low[q], p - shift_of(q), inner_rows, q);
            load_word_if(high[q], p - shift_of(q) + 4, shift_of(q) ? inner_rows : 0, q);
#else
            load_half_if(low[q], p, left >= 1 ? rows : 0, q);
            load_half_if(high[q], p + 2, left >= 2 ? rows : 0, q);
#endif
        }
    }

    __device__ __forceinline__ void put(u32 shared) const
    {
#pragma unroll
        for (u32 q = 0; q < COUNT; q++) {
            if (ROWS * PER_ROW % NT != 0 && q + 1 == COUNT && row_of(q) >= ROWS) break;
            const u32 word = word_of(q);
            store_word(shared + chunk_at<PER_ROW / 4>(row_of(q), word / 4) + word % 4 * 4,
                       MULTIPLY == JG_TYPE_S8 ? joined(low[q], high[q], shift_of(q)) : low[q] + (high[q] << 16));
        }
    }

    static __device__ __forceinline__ bool has_edges_at(u32 column0, u32 column_limit)
    {
        return has_edges<COLUMNS>(column0, column_limit);
    }

    static __device__ __forceinline__ void put_edges_of(u32 shared, const u8 *global, i64 ld, u32 row0, u32 column0,
                                                        u32 row_limit, u32 column_limit)
    {
        put_edges<ROWS, COLUMNS, NT, false>(shared, global, ld, row0, column0, row_limit, column_limit);
    }
};

// 8-bit integers whose rows lie along k, each JG_BK x MN elements contiguous along m or n, are turned: a lane reads four rows of
// four elements and puts four words along k. Eight lanes stand side by side in a row, four groups of them below one another. Each
// lane stores its columns in an order of its own, so that a store meets every bank once: `order` says which comes first.
template <int MN, int NT, bool ALIGNED>
struct turned_rows {
    static const int LANES_MN = MN % 32 == 0 ? 8 : 4, LANES_K = 32 / LANES_MN;
    static const int BLOCKS_MN = MN / (4 * LANES_MN), BLOCKS = BLOCKS_MN * JG_BK / (4 * LANES_K), WARPS = NT / 32;
    static const int COUNT = (BLOCKS + WARPS - 1) / WARPS;
    u32 low[COUNT][4], high[COUNT][4];
    u32 shift, turn;  // as of kept_rows

    static __device__ __forceinline__ u32 block_of(u32 q)
    {
        return threadIdx.x / 32 + q * WARPS;
    }

    static __device__ __forceinline__ u32 mn_of(u32 q)
    {
        return (block_of(q) % BLOCKS_MN * LANES_MN + threadIdx.x % LANES_MN) * 4;
    }

    static __device__ __forceinline__ u32 k_of(u32 q)
    {
        return (block_of(q) / BLOCKS_MN * LANES_K + threadIdx.x % 32 / LANES_MN) * 4;
    }

    // All of a lane's first rows lie alike, as they are multiples of four.
    __device__ __forceinline__ u32 shift_of(u32 i) const
    {
        return ALIGNED ? 0 : (shift + i * turn) & 3;
    }

    __device__ __forceinline__ void fetch(const u8 *global, i64 ld, u32 k0, u32 mn0, u32 k_limit, u32 mn_limit)
    {
        turn = (u32)ld;
        shift = (u32)(size_t)global;
        // Where all is there, nearly without conditions.
        if (BLOCKS % WARPS == 0 && k0 + JG_BK <= k_limit && (ALIGNED || mn0 >= 4) && mn0 + MN + (ALIGNED ? 0 : 4) <= mn_limit) {
#pragma unroll
            for (u32 q = 0; q < COUNT; q++)
#pragma unroll
                for (u32 i = 0; i < 4; i++) {
                    const u8 *p = global + (k0 + k_of(q) + i) * ld + mn0 + mn_of(q) - shift_of(i);
                    load_word(low[q][i], p);
                    high[q][i] = 0;
                    if (!ALIGNED) load_word_if(high[q][i], p + 4, shift_of(i), 0);
                }
            return;
        }
#pragma unroll
        for (u32 q = 0; q < COUNT; q++) {
            const u32 mn = mn0 + mn_of(q), k = k0 + k_of(q);
            const bool inner = ALIGNED ? left_of(mn, mn_limit) >= 4 : is_inner(mn, mn_limit);
            const u32 rows = inner && (BLOCKS % WARPS == 0 || block_of(q) < BLOCKS) ? left_of(k, k_limit) : 0;
            const u8 *p = global + k * ld + mn;
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                low[q][i] = high[q][i] = 0;
                load_word_if(low[q][i], p + i * ld - shift_of(i), rows, i);
                if (!ALIGNED) load_word_if(high[q][i], p + i * ld - shift_of(i) + 4, shift_of(i) ? rows : 0, i);
            }
        }
    }

    __device__ __forceinline__ void put(u32 shared) const
    {
        const u32 order = LANES_MN == 8 ? threadIdx.x % 8 / 2 : threadIdx.x % 4 / 2 * 2;
        // Bytes `order` and the next one of two words, and the other two.
        const u32 first = order * 0x11u + 0x40u + ((order + 1) % 4 * 0x1100u + 0x4000u);
        const u32 second = (order + 2) % 4 * 0x11u + 0x40u + ((order + 3) % 4 * 0x1100u + 0x4000u);
#pragma unroll
        for (u32 q = 0; q < COUNT; q++) {
            if (BLOCKS % WARPS != 0 && q + 1 == COUNT && block_of(q) >= BLOCKS) break;
            u32 rows[4], columns[4];
#pragma unroll
            for (u32 i = 0; i < 4; i++) rows[i] = ALIGNED ? low[q][i] : joined(low[q][i], high[q][i], shift_of(i));
#pragma unroll
            for (u32 i = 0; i < 2; i++) {
                const u32 upper = __byte_perm(rows[0], rows[1], i ? second : first);
                const u32 lower = __byte_perm(rows[2], rows[3], i ? second : first);
                columns[2 * i] = __byte_perm(upper, lower, 0x5410);
                columns[2 * i + 1] = __byte_perm(upper, lower, 0x7632);
            }
            const u32 k = k_of(q);
#pragma unroll
            for (u32 i = 0; i < 4; i++)
                store_word(shared + chunk_at<JG_BK / 16>(mn_of(q) + (order + i) % 4, k / 16) + k % 16, columns[i]);
        }
    }

    static __device__ __forceinline__ bool has_edges_at(u32 mn0, u32 mn_limit)
    {
        return ALIGNED ? mn0 + MN > mn_limit && mn_limit % 4 != 0 : has_edges<MN>(mn0, mn_limit);
    }

    static __device__ __forceinline__ void put_edges_of(u32 shared, const u8 *global, i64 ld, u32 k0, u32 mn0, u32 k_limit,
                                                        u32 mn_limit)
    {
        put_edges<JG_BK, MN, NT, true>(shared, global, ld, k0, mn0, k_limit, mn_limit);
    }
};

// Of an operand that is copied or gathered: nothing.
struct not_realigned {
    __device__ __forceinline__ void fetch(const u8 *, i64, u32, u32, u32, u32) {}
    __device__ __forceinline__ void put(u32) const {}
    static __device__ __forceinline__ bool has_edges_at(u32, u32)
    {
        return false;
    }
    static __device__ __forceinline__ void put_edges_of(u32, const u8 *, i64, u32, u32, u32, u32) {}
};

template <bool YES, typename FIRST, typename SECOND>
struct either {
    typedef FIRST type;
};

template <typename FIRST, typename SECOND>
struct either<false, FIRST, SECOND> {
    typedef SECOND type;
};

// One operand's share of a thread, between fetch and put. VEC: its width (JG_VEC_A).
template <bool REALIGNS, bool K_CONTIGUOUS, int MN, int NT, int VEC>
struct realigned {
    typedef typename either<MULTIPLY == JG_TYPE_S8, turned_rows<MN, NT, VEC >= 4>, kept_rows<JG_BK, MN, NT>>::type along_mn;
    typedef typename either<K_CONTIGUOUS, kept_rows<MN, JG_BK, NT>, along_mn>::type along_either;
    typename either<REALIGNS, along_either, not_realigned>::type held;

    __device__ __forceinline__ void fetch(const u8 *global, i64 ld, u32 mn0, u32 k0, u32 mn_limit, u32 k_limit)
    {
        if (K_CONTIGUOUS) held.fetch(global, ld, mn0, k0, mn_limit, k_limit);
        else held.fetch(global, ld, k0, mn0, k_limit, mn_limit);
    }

    __device__ __forceinline__ void put(u32 shared) const
    {
        held.put(shared);
    }

    __device__ __forceinline__ bool has_edges_at(u32 mn0, u32 k0, u32 mn_limit, u32 k_limit) const
    {
        return held.has_edges_at(K_CONTIGUOUS ? k0 : mn0, K_CONTIGUOUS ? k_limit : mn_limit);
    }

    // In between, all threads must have put.
    __device__ __forceinline__ void put_edges(u32 shared, const u8 *global, i64 ld, u32 mn0, u32 k0, u32 mn_limit,
                                              u32 k_limit) const
    {
        if (!has_edges_at(mn0, k0, mn_limit, k_limit)) return;
        if (K_CONTIGUOUS) held.put_edges_of(shared, global, ld, mn0, k0, mn_limit, k_limit);
        else held.put_edges_of(shared, global, ld, k0, mn0, k_limit, mn_limit);
    }
};
