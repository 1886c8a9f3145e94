// Family mma: operands that cp.async cannot bring to where ldmatrix wants them. Their rows begin anywhere (at any multiple of 2
// bytes, of 8-bit integers at any byte), or they are 8-bit integers contiguous along m or n, which ldmatrix cannot transpose.
//
// They go through registers: what the next stage needs is fetched before a stage is multiplied, and put into shared memory
// afterwards, so that the multiplication hides how long memory takes to answer. Neighbouring lanes take neighbouring words of 4
// bytes, so a warp reads and writes 128 bytes in a row. Nothing is read but elements of the operand: a word that is not wholly
// within its row is read in parts.

#define WORD (MULTIPLY == JG_TYPE_S8 ? 4 : 2)  // elements in 4 bytes

template <int CHUNKS>
__device__ __forceinline__ u32 chunk_at(u32 row, u32 chunk);

// A word in two loads, of which both may be under way: `shift` bytes behind an aligned address. `before`: whether the row has
// begun before it. `left`: elements from there to the row's end.
struct split_word {
    u32 low, high;

    __device__ __forceinline__ void fetch(const u8 *p, u32 shift, bool before, u32 left)
    {
        low = high = 0;
        if (MULTIPLY != JG_TYPE_S8) {
            if (shift == 0 && left >= 2) {
                low = *(const u32 *)p;
            } else {
                if (left >= 1) low = *(const u16 *)p;
                if (left >= 2) high = *(const u16 *)(p + 2);
            }
        } else if (shift == 0 ? left >= 4 : before && left >= 8 - shift) {
            low = *(const u32 *)(p - shift);
            if (shift != 0) high = *(const u32 *)(p - shift + 4);
        } else if (left > 0) {
            u32 word = 0;
#pragma unroll
            for (u32 i = 0; i < 4; i++)
                if (i < left) word |= (u32)p[i] << i * 8;
            low = word << shift * 8;
            high = word >> 1 >> (31 - shift * 8);
        }
    }

    __device__ __forceinline__ u32 joined(u32 shift) const
    {
        return MULTIPLY != JG_TYPE_S8 ? low + (high << 16) : __byte_perm(low, high, 0x3210u + 0x1111u * shift);
    }
};

__device__ __forceinline__ u32 left_of(u32 at, u32 limit)
{
    return at < limit ? limit - at : 0;
}

// Rows keep their direction: ROWS x COLUMNS elements, contiguous along columns.
template <int ROWS, int COLUMNS, int NT>
struct kept_rows {
    static const int PER_ROW = COLUMNS / WORD, COUNT = (ROWS * PER_ROW + NT - 1) / NT;
    static const bool ONE_COLUMN = NT % PER_ROW == 0;                                 // all of a thread's words are in one
    static const bool ONE_SHIFT = ONE_COLUMN && NT / PER_ROW % WORD == 0;             // and lie alike
    split_word words[COUNT];
    u32 shift;  // of ONE_SHIFT, or of the first word; by one row it grows by `turn`
    u32 turn;

    static __device__ __forceinline__ u32 row_of(u32 q)
    {
        return ONE_COLUMN ? threadIdx.x / PER_ROW + q * (NT / PER_ROW) : (threadIdx.x + q * NT) / PER_ROW;
    }

    static __device__ __forceinline__ u32 word_of(u32 q)
    {
        return (ONE_COLUMN ? threadIdx.x : threadIdx.x + q * NT) % PER_ROW;
    }

    __device__ __forceinline__ u32 shift_of(u32 q) const
    {
        return ONE_SHIFT ? shift : (shift + (row_of(q) - row_of(0)) * turn) & 3;
    }

    // aligned: all shifts are 0.
    __device__ __forceinline__ void fetch_all(const u8 *global, i64 ld, u32 row0, u32 column0, u32 row_limit, u32 column_limit,
                                              bool aligned)
    {
#pragma unroll
        for (u32 q = 0; q < COUNT; q++) {
            const u32 row = row0 + row_of(q), column = column0 + word_of(q) * WORD;
            const bool mine = ROWS * PER_ROW % NT == 0 || q + 1 < COUNT || row_of(q) < ROWS;
            words[q].fetch(global + (row * ld + column) * (4 / WORD), aligned ? 0 : shift_of(q), column > 0,
                           mine && row < row_limit ? left_of(column, column_limit) : 0);
        }
    }

    __device__ __forceinline__ void fetch(const u8 *global, i64 ld, u32 row0, u32 column0, u32 row_limit, u32 column_limit)
    {
        turn = (u32)ld * (4 / WORD);
        shift = ((u32)(size_t)global + (row0 + row_of(0)) * turn) & 3;
        if (ONE_SHIFT && shift == 0) fetch_all(global, ld, row0, column0, row_limit, column_limit, true);
        else fetch_all(global, ld, row0, column0, row_limit, column_limit, false);
    }

    __device__ __forceinline__ void put(u32 shared) const
    {
#pragma unroll
        for (u32 q = 0; q < COUNT; q++) {
            if (ROWS * PER_ROW % NT != 0 && q + 1 == COUNT && row_of(q) >= ROWS) break;
            const u32 word = word_of(q);
            asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared + chunk_at<PER_ROW / 4>(row_of(q), word / 4) + word % 4 * 4),
                         "r"(words[q].joined(shift_of(q))) : "memory");
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
