// Family mma: operands that cp.async cannot bring 16 bytes at a time to where ldmatrix wants them. Nothing is read but elements of
// the operand.
//
// Rows that begin at multiples of 4 or 8 bytes, or anywhere (at any multiple of 2 bytes, of 8-bit integers at any byte), are copied
// in pieces of 4 or 8 bytes, neighbouring lanes taking neighbouring pieces. Where a row does not begin at a multiple of 4 bytes, the
// words that do are copied, from the row's first one on, and in shared memory put in order: when they have come, before the barrier
// that publishes the stage, the warp that copied a row shifts it in place by the bytes before its first word. Those it has from the
// same row's last stage, or, where rows lie along k, reads them a step ahead.
//
// 8-bit integers contiguous along m or n, which ldmatrix cannot transpose, go through registers: what the next stage needs is
// fetched before a stage is multiplied, and put into shared memory afterwards.

#define WORD (MULTIPLY == JG_TYPE_S8 ? 4 : 2)  // elements in 4 bytes

template <int CHUNKS>
__device__ __forceinline__ u32 turn_of(u32 row);
template <int CHUNKS>
__device__ __forceinline__ u32 chunk_at(u32 row, u32 chunk);

// Addresses of which the compiler knows nothing: what is added to one stays in the instruction that uses it, instead of taking a
// register for each sum.
__device__ __forceinline__ u32 opaque(u32 address)
{
    asm("" : "+r"(address));
    return address;
}

__device__ __forceinline__ const u8 *opaque(const u8 *address)
{
    asm("" : "+l"(address));
    return address;
}

// Copies the first `have` bytes of a piece, if `count` is above `q`, and fills up with zeros. go: whether to do anything.
template <int BYTES>
__device__ __forceinline__ void copy_piece(u32 shared, const u8 *global, u32 have, u32 count, u32 q, u32 go)
{
    asm volatile("{ .reg .pred p, q; .reg .b32 n; setp.gt.u32 p, %3, %4; selp.b32 n, %2, 0, p; setp.ne.u32 q, %6, 0; "
                 "@q cp.async.ca.shared.global [%0], [%1], %5, n; }"
                 ::"r"(shared), "l"(global), "r"(have), "r"(count), "r"(q), "n"(BYTES), "r"(go) : "memory");  // cp.async
}

__device__ __forceinline__ void load_word(u32 &word, const u8 *p)
{
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(word) : "l"(p) : "memory");
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

// Reads them byte by byte, and puts neighbours along a row into different rows, of JG_BK elements.
template <int ROWS, int COLUMNS, int NT>
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
#pragma unroll
        for (u32 j = 0; j < 4; j++)
            asm volatile("st.shared.u8 [%0], %1;" ::"r"(shared + chunk_at<JG_BK / 16>(at + j, row / 16) + row % 16), "r"(bytes[j])
                         : "memory");
    }
}

// The word that begins `shift` bytes behind low's first.
__device__ __forceinline__ u32 joined(u32 low, u32 high, u32 shift)
{
    return __byte_perm(low, high, 0x3210u + 0x1111u * shift);
}

// Rows that keep their direction: ROWS x COLUMNS elements, contiguous along columns, in pieces of PIECE bytes. REALIGN: they begin
// anywhere. ODD: each WORD rows that follow one another begin differently, as they do by an odd leading dimension.
//
// Rows are dealt to the warps in groups of 512 bytes, which a warp shifts at once, a lane each chunk of 16 bytes. A group is of rows
// that begin alike: every KINDS-th one. All numbers here are powers of two.
template <int ROWS, int COLUMNS, int NT, int PIECE, bool REALIGN, bool ODD, bool ALONG_K, bool EDGE_ROWS, bool EDGE_COLUMNS>
struct row_pieces {
    static const int WARPS = NT / 32, BYTES = 4 / WORD, ROW_BYTES = COLUMNS * BYTES, CHUNKS = ROW_BYTES / 16;
    static const int IN_ROW = ROW_BYTES / PIECE, GROUP = 512 / ROW_BYTES;            // pieces of a row, rows of a group
    static const int KINDS = REALIGN ? WORD : 1, PER_KIND = ROWS / GROUP / KINDS;    // of rows; groups of a kind
    static const int GROUPS = (PER_KIND * KINDS + WARPS - 1) / WARPS;                // of a warp
    static const int PIECES = 512 / PIECE / 32, COUNT = GROUPS * PIECES;             // of a lane: of a group, of a stage
    static const bool FIXES = REALIGN;
    static_assert(ROW_BYTES <= 512 && PER_KIND * KINDS * 512 == ROWS * ROW_BYTES, "whole groups of each kind");
    const u8 *from, *heads;  // a lane's first piece of the stage to copy, the head of its first row of the stage to shift
    u32 at, fix_at;          // in the stage: a lane's first piece to copy, its first chunk to shift
    u32 begin, step;         // the first row's first element, as elements from an aligned address; the stage to shift
    u32 carry[GROUPS];       // what is before a row's first word: of the lane that shifts the row's first chunk

    static __device__ __forceinline__ u32 warp()
    {
        return threadIdx.x / 32;
    }

    static __device__ __forceinline__ u32 lane()
    {
        return threadIdx.x % 32;
    }

    // The kind of a warp's i-th group, which is known where each kind has groups for all warps.
    static __device__ __forceinline__ u32 kind_of(u32 i)
    {
        return WARPS <= PER_KIND ? i * WARPS / PER_KIND : warp() / PER_KIND + i * (WARPS / PER_KIND);
    }

    static __device__ __forceinline__ bool exists(u32 i)
    {
        return PER_KIND * KINDS % WARPS == 0 || warp() < PER_KIND * KINDS;
    }

    // Bytes from an aligned address to a row's first element: of ODD rows the kinds are in order of it.
    __device__ __forceinline__ u32 shift_of(u32 kind, i64 ld) const
    {
        return !REALIGN ? 0 : ODD ? kind * BYTES : (begin + kind * (u32)ld) % WORD * BYTES;
    }

    // The first row of a kind. An odd number is its own inverse modulo 2 and 4.
    __device__ __forceinline__ u32 first_of(u32 kind, i64 ld) const
    {
        return ODD ? (kind - begin) * (u32)ld % KINDS : kind;
    }

    // A lane's first row, where so many lanes share one; and how many rows below it that of its group i is.
    static __device__ __forceinline__ u32 row_of(u32 lanes)
    {
        return KINDS * (warp() % PER_KIND * GROUP + lane() / lanes);
    }

    static __device__ __forceinline__ u32 rows_to(u32 i)
    {
        return KINDS * (i * WARPS % PER_KIND * GROUP);
    }

    // An address so many rows below another one: both are of different bits, so that the swizzle adds up.
    static __device__ __forceinline__ u32 moved(u32 address, u32 rows)
    {
        return (address ^ turn_of<CHUNKS>(rows) * 16) + rows * ROW_BYTES;
    }

    __device__ __forceinline__ void load_head(u32 i, i64 ld, u32 row0, u32 row_limit)
    {
        const u32 kind = kind_of(i), below = first_of(kind, ld), row = row0 + row_of(CHUNKS) + below;
        const u32 rows = exists(i) && lane() % CHUNKS == 0 && shift_of(kind, ld) != 0 ? left_of(row, row_limit) : 0;
        carry[i] = 0;
        load_half_if(carry[i], opaque(heads + below * ld * BYTES) + rows_to(i) * ld * BYTES, rows, rows_to(i));
    }

    // Of the first stage the heads are read at once.
    __device__ __forceinline__ void begin_at(const u8 *global, i64 ld, u32 row0, u32 column0, u32 row_limit, u32 column_limit)
    {
        from = global + ((row0 + row_of(IN_ROW)) * ld + column0) * BYTES + lane() % IN_ROW * PIECE;
        at = chunk_at<CHUNKS>(row_of(IN_ROW), lane() % IN_ROW * PIECE / 16) + lane() * PIECE % 16;
        if (!REALIGN) return;
        heads = global + ((row0 + row_of(CHUNKS)) * ld + column0) * BYTES;
        fix_at = chunk_at<CHUNKS>(row_of(CHUNKS), lane() % CHUNKS);
        begin = (u32)(size_t)global / BYTES;
        step = 0;
#pragma unroll
        for (u32 i = 0; i < GROUPS; i++) {
#if MULTIPLY == JG_TYPE_S8
            const u32 below = rows_to(i) + first_of(kind_of(i), ld), shift = shift_of(kind_of(i), ld);
            const bool mine = exists(i) && lane() % CHUNKS == 0 && shift != 0 && row0 + row_of(CHUNKS) + below < row_limit;
            carry[i] = 0;
#pragma unroll
            for (u32 j = 1; j < 4; j++)
                if (mine && j >= shift && j - shift < column_limit) carry[i] |= (u32)heads[below * ld + j - shift] << j * 8;
#else
            load_head(i, ld, row0, row_limit);
            if (ALONG_K) carry[i] <<= 16;
#endif
        }
    }

    // Copies a lane's i-th piece of a stage, of which there are so many rows and columns.
    __device__ __forceinline__ void copy(u32 shared, i64 ld, u32 i, u32 rows_left, u32 columns_left, bool go) const
    {
        const u32 group = i / PIECES, piece = i % PIECES * 32, kind = kind_of(group), below = first_of(kind, ld);
        const u32 down = rows_to(group) + KINDS * (piece / IN_ROW), right = piece % IN_ROW * PIECE;
        const u32 ahead = (4 - shift_of(kind, ld)) % 4;
        if (!exists(group)) return;
        u32 have = PIECE;
        if (EDGE_COLUMNS || (REALIGN && !(ODD && kind == 0))) {
            const u32 left = left_of(lane() % IN_ROW * PIECE + right + ahead, columns_left * BYTES);
            have = left < PIECE ? left : PIECE;
        }
        const u32 rows = EDGE_ROWS ? left_of(row_of(IN_ROW) + below, rows_left) : ROWS;
        copy_piece<PIECE>(moved(opaque(shared + moved(at, below)), down) + right,
                          opaque(from + (below * ld * BYTES + ahead)) + (down * ld * BYTES + right), have, rows, down, go);
    }

    __device__ __forceinline__ void next_stage(i64 ld)
    {
        from += ALONG_K ? COLUMNS * BYTES : ROWS * ld * BYTES;
    }

    // Where a lane's chunk of a group is.
    __device__ __forceinline__ u32 fixed(u32 shared, u32 i, i64 ld) const
    {
        return moved(opaque(shared + moved(fix_at, first_of(kind_of(i), ld))), rows_to(i));
    }

    // Shifts the rows of a stage that the warp copied, which all its lanes must have seen come.
    __device__ __forceinline__ void fix(u32 shared, i64 ld, u32 row_limit)
    {
        u32 v[GROUPS][4];
        step++;
        if (!ALONG_K) heads += ROWS * ld * BYTES;
#pragma unroll
        for (u32 i = 0; i < GROUPS; i++)
            if (exists(i) && shift_of(kind_of(i), ld) != 0)
                asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];" : "=r"(v[i][0]), "=r"(v[i][1]), "=r"(v[i][2]), "=r"(v[i][3])
                             : "r"(fixed(shared, i, ld)) : "memory");  // to shift
#pragma unroll
        for (u32 i = 0; i < GROUPS; i++) {
            const u32 shift = shift_of(kind_of(i), ld);
            if (!exists(i) || shift == 0) continue;
            // The word before a chunk; before a row's first one, this stage's last: that is for the next stage.
            u32 before = __shfl_sync(~0u, v[i][3], lane() + CHUNKS - 1, CHUNKS);
            const u32 last = before;
            if (lane() % CHUNKS == 0) before = ALONG_K ? carry[i] : carry[i] << 16;
            if (ALONG_K) carry[i] = last;
            else load_head(i, ld, step * ROWS, row_limit);
            const u32 x = joined(before, v[i][0], shift), y = joined(v[i][0], v[i][1], shift);
            const u32 z = joined(v[i][1], v[i][2], shift), w = joined(v[i][2], v[i][3], shift);
            asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(fixed(shared, i, ld)),
                         "r"(x), "r"(y), "r"(z), "r"(w) : "memory");  // shifted
        }
    }
};

// Of an operand that is copied 16 bytes at a time, gathered or turned: nothing.
struct no_pieces {
    static const int COUNT = 0;
    static const bool FIXES = false;
    __device__ __forceinline__ void begin_at(const u8 *, i64, u32, u32, u32, u32) {}
    __device__ __forceinline__ void copy(u32, i64, u32, u32, u32, bool) const {}
    __device__ __forceinline__ void next_stage(i64) {}
    __device__ __forceinline__ void fix(u32, i64, u32) {}
};

template <bool YES, typename FIRST, typename SECOND>
struct either {
    typedef FIRST type;
};

template <typename FIRST, typename SECOND>
struct either<false, FIRST, SECOND> {
    typedef SECOND type;
};

// One operand's pieces. VEC: its width (JG_VEC_A).
template <bool YES, bool ALONG_K, int MN, int NT, int VEC, bool ODD, bool EDGE_MN>
struct pieces_of {
    typedef row_pieces<ALONG_K ? MN : JG_BK, ALONG_K ? JG_BK : MN, NT, VEC == 8 ? 8 : 4, VEC == 1, ODD, ALONG_K,
                       ALONG_K ? EDGE_MN : EDGE_K, ALONG_K ? EDGE_K : EDGE_MN> rows;
    typedef typename either<YES, rows, no_pieces>::type type;
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
    u32 shift;  // of the first row, from an aligned address; by one row it grows by `turn`
    u32 turn;

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
        return ALIGNED ? mn0 + MN > mn_limit && mn_limit % 4 != 0 : mn0 == 0 || mn0 + MN + 4 > mn_limit;
    }

    // In between, all threads must have put.
    static __device__ __forceinline__ void put_edges_of(u32 shared, const u8 *global, i64 ld, u32 k0, u32 mn0, u32 k_limit,
                                                        u32 mn_limit)
    {
        if (has_edges_at(mn0, mn_limit)) put_edges<JG_BK, MN, NT>(shared, global, ld, k0, mn0, k_limit, mn_limit);
    }
};

// Of an operand that is not turned: nothing.
struct no_turned_rows {
    __device__ __forceinline__ void fetch(const u8 *, i64, u32, u32, u32, u32) {}
    __device__ __forceinline__ void put(u32) const {}
    static __device__ __forceinline__ bool has_edges_at(u32, u32)
    {
        return false;
    }
    static __device__ __forceinline__ void put_edges_of(u32, const u8 *, i64, u32, u32, u32, u32) {}
};
