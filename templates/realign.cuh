// Family mma: operands that cp.async cannot bring to where ldmatrix wants them. Their rows begin anywhere (at any multiple of 2
// bytes, of 8-bit integers at any byte), or they are 8-bit integers contiguous along m or n, which ldmatrix cannot transpose.
//
// They go through registers: what the next stage needs is fetched before a stage is multiplied, and put into shared memory
// afterwards, so that the multiplication hides how long memory takes to answer. Neighbouring lanes take neighbouring words of 4
// bytes, so a warp reads and writes 128 bytes in a row. Nothing is read but elements of the operand.

#define WORD (MULTIPLY == JG_TYPE_S8 ? 4 : 2)  // elements in 4 bytes

template <int CHUNKS>
__device__ __forceinline__ u32 chunk_at(u32 row, u32 chunk);

// Loads where `count` is above `q`: predicates that the compiler makes no branches of.
__device__ __forceinline__ void load_word_if(u32 &word, const u8 *p, u32 count, u32 q)
{
    asm volatile("{ .reg .pred p; setp.gt.u32 p, %2, %3; @p ld.global.u32 %0, [%1]; }" : "+r"(word) : "l"(p), "r"(count), "r"(q) : "memory");
}

__device__ __forceinline__ void load_half_if(u32 &half, const u8 *p, u32 count, u32 q)
{
    asm volatile("{ .reg .pred p; setp.gt.u32 p, %2, %3; @p ld.global.u16 %0, [%1]; }" : "+r"(half) : "l"(p), "r"(count), "r"(q) : "memory");
}

__device__ __forceinline__ void store_word(u32 shared, u32 word)
{
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared), "r"(word) : "memory");
}

__device__ __forceinline__ u32 left_of(u32 at, u32 limit)
{
    return at < limit ? limit - at : 0;
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
        const u32 alike_rows = rows_of(0, row0, row_limit);
        turn = (u32)ld * (4 / WORD);
        shift = (u32)(size_t)global + row0 * turn;
#if MULTIPLY != JG_TYPE_S8
        if (ALIKE && shift_of(0) == 0) {
            const u32 left = left_of(column0 + word_of(0) * 2, column_limit);
            const u32 words = left >= 2 ? alike_rows : 0, halves = left == 1 ? alike_rows : 0;
#pragma unroll
            for (u32 q = 0; q < COUNT; q++) {
                const u8 *p = global + ((row0 + row_of(0)) * ld + q * STEP * ld + column0 + word_of(0) * 2) * 2;
                low[q] = high[q] = 0;
                load_word_if(low[q], p, words, q);
                load_half_if(low[q], p, halves, q);
            }
            return;
        }
#endif
#pragma unroll
        for (u32 q = 0; q < COUNT; q++) {
            const u32 at = ALIKE ? 0 : q, column = column0 + word_of(at) * WORD, left = left_of(column, column_limit);
            const u32 rows = ALIKE ? alike_rows : q + rows_of(q, row0, row_limit);
            const u8 *p = global + ((row0 + row_of(at)) * ld + (q - at) * STEP * ld + column) * (4 / WORD);
            low[q] = high[q] = 0;
#if MULTIPLY != JG_TYPE_S8
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
            store_word(shared + chunk_at<PER_ROW / 4>(row_of(q), word / 4) + word % 4 * 4, low[q] + (high[q] << 16));
        }
    }
};

// Of an operand that is copied or gathered: nothing.
struct not_realigned {
    __device__ __forceinline__ void fetch(const u8 *, i64, u32, u32, u32, u32) {}
    __device__ __forceinline__ void put(u32) const {}
};

template <bool YES, typename FIRST, typename SECOND>
struct either {
    typedef FIRST type;
};

template <typename FIRST, typename SECOND>
struct either<false, FIRST, SECOND> {
    typedef SECOND type;
};

// One operand's share of a thread, between fetch and put.
template <bool REALIGNS, bool K_CONTIGUOUS, int MN, int NT>
struct realigned {
    typedef typename either<K_CONTIGUOUS, kept_rows<MN, JG_BK, NT>, kept_rows<JG_BK, MN, NT>>::type kept;
    typename either<REALIGNS, kept, not_realigned>::type held;

    __device__ __forceinline__ void fetch(const u8 *global, i64 ld, u32 mn0, u32 k0, u32 mn_limit, u32 k_limit)
    {
        if (K_CONTIGUOUS) held.fetch(global, ld, mn0, k0, mn_limit, k_limit);
        else held.fetch(global, ld, k0, mn0, k_limit, mn_limit);
    }

    __device__ __forceinline__ void put(u32 shared) const
    {
        held.put(shared);
    }
};
