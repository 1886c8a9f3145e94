/* Logic and bits: and, or, xor, not, cnot, lop3, the shifts, prmt, bfe, bfi, bfind, brev, popc, clz.
 *
 * Shift amounts and bit positions are 32-bit operands whatever the type. */
#include "variant.h"

#include "lanes.h"

typedef ptx_run *const run_table[TYPE_COUNT];

/* ---- logic */

#define WIDTHS(X) X(b16, uint32_t, uint16_t, 16) X(b32, uint32_t, uint32_t, 32) X(b64, uint64_t, uint64_t, 64)

#define MAKE(id, S, V, bits)                                                                                           \
    BINARY(and_##id, S, V, S, V, a & b)                                                                                \
    BINARY(or_##id, S, V, S, V, a | b)                                                                                 \
    BINARY(xor_##id, S, V, S, V, a ^ b)                                                                                \
    UNARY(not_##id, S, V, S, V, ~a)                                                                                    \
    UNARY(cnot_##id, S, V, S, V, a == 0)
WIDTHS(MAKE)
#undef MAKE

#define MAKE(name, expression)                                                                                         \
    static int name(warp *w, const ptx_instruction *i, uint32_t mask)                                                  \
    {                                                                                                                  \
        uint32_t a = predicate_mask(w, operand_at(i, 1, 0)), b = predicate_mask(w, operand_at(i, i->groups - 1u, 0)); \
        predicate_store(w, operand_at(i, 0, 0), mask, expression);                                                     \
        return 0;                                                                                                      \
    }
MAKE(and_pred, a & b)
MAKE(or_pred, a | b)
MAKE(xor_pred, a ^ b)
MAKE(not_pred, ~(a & b)) /* one source: both are it */
#undef MAKE

/* Bit n of the last operand is the result for bits of a, b and c that read n as a binary number, a first. */
static int lop3(warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t *to = SLOT(uint32_t, 0);
    const uint32_t *a = SLOT(uint32_t, 1), *b = SLOT(uint32_t, 2), *c = SLOT(uint32_t, 3);
    uint32_t table = SLOT(uint32_t, 4)[0], all[8];
    for (unsigned n = 0; n < 8; n++) all[n] = 0u - (table >> n & 1);
    LANES(mask, lane, uint32_t x = a[lane]; uint32_t y = b[lane]; uint32_t z = c[lane];
          to[lane] = (~x & ((~y & ((~z & all[0]) | (z & all[1]))) | (y & ((~z & all[2]) | (z & all[3]))))) |
                     (x & ((~y & ((~z & all[4]) | (z & all[5]))) | (y & ((~z & all[6]) | (z & all[7]))))));
    return 0;
}

/* ---- shifts: by a register, and by an immediate, which is the same for all lanes */

#define SHIFT(name, S, V, ...)                                                                                         \
    static int name(warp *w, const ptx_instruction *i, uint32_t mask)                                                  \
    {                                                                                                                  \
        S *to = SLOT(S, 0);                                                                                            \
        const S *from = SLOT(S, 1);                                                                                    \
        const uint32_t *amounts = SLOT(uint32_t, 2);                                                                   \
        LANES(mask, lane, V a = (V)from[lane]; uint32_t n = amounts[lane]; to[lane] = (S)(__VA_ARGS__));               \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static int name##_immediate(warp *w, const ptx_instruction *i, uint32_t mask)                                      \
    {                                                                                                                  \
        S *to = SLOT(S, 0);                                                                                            \
        const S *from = SLOT(S, 1);                                                                                    \
        uint32_t n = SLOT(uint32_t, 2)[0];                                                                             \
        LANES(mask, lane, V a = (V)from[lane]; to[lane] = (S)(__VA_ARGS__));                                           \
        return 0;                                                                                                      \
    }
#define MAKE(id, S, V, bits)                                                                                           \
    SHIFT(shl_##id, S, V, (V)(n < bits ? (S)a << n : 0))                                                               \
    SHIFT(shr_##id, S, V, n < bits ? a >> n : 0)                                                                       \
    SHIFT(shr_s##bits, S, int##bits##_t, (V)(a >> (n < bits ? n : bits - 1)))
WIDTHS(MAKE)
#undef MAKE

/* The 64-bit value b:a, shifted; left takes its upper half, right its lower. */
TERNARY(shf_l_wrap, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, ((uint64_t)b << 32 | a) << (c & 31) >> 32)
TERNARY(shf_r_wrap, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, ((uint64_t)b << 32 | a) >> (c & 31))
TERNARY(shf_l_clamp, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
        ((uint64_t)b << 32 | a) << (c < 32 ? c : 32) >> 32)
TERNARY(shf_r_clamp, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, ((uint64_t)b << 32 | a) >> (c < 32 ? c : 32))

/* ---- prmt */

static inline uint32_t source_byte(uint32_t a, uint32_t b, unsigned n) { return ((uint64_t)b << 32 | a) >> (8 * (n & 7)) & 255; }

/* A selector's fourth bit asks for eight copies of the byte's sign. */
static inline uint32_t permute(uint32_t a, uint32_t b, uint32_t selectors)
{
    uint32_t result = 0;
    for (unsigned k = 0; k < 4; k++) {
        uint32_t selector = selectors >> (4 * k), byte = source_byte(a, b, selector);
        if (selector & 8) byte = (0u - (byte >> 7)) & 255;
        result |= byte << (8 * k);
    }
    return result;
}

/* expression: which source byte becomes byte k, n being the lowest two bits of c. */
#define MAKE(name, expression)                                                                                         \
    static inline uint32_t name(uint32_t a, uint32_t b, uint32_t c)                                                    \
    {                                                                                                                  \
        unsigned n = c & 3;                                                                                            \
        uint32_t result = 0;                                                                                           \
        for (unsigned k = 0; k < 4; k++) result |= source_byte(a, b, expression) << (8 * k);                           \
        return result;                                                                                                 \
    }                                                                                                                  \
    TERNARY(prmt_##name, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, name(a, b, c))
MAKE(f4e, n + k)
MAKE(b4e, n - k)
MAKE(rc8, n)
MAKE(ecl, k > n ? k : n)
MAKE(ecr, k < n ? k : n)
MAKE(rc16, 2 * (n & 1) + (k & 1))
#undef MAKE
TERNARY(prmt_selectors, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, permute(a, b, c))

/* ---- bit fields: position and length count only in their lowest 8 bits, and what is beyond the top is not there */

static inline uint64_t field_mask(unsigned length) { return length < 64 ? (1ull << length) - 1 : ~0ull; }

static inline uint64_t extract(uint64_t a, uint32_t position, uint32_t length, unsigned bits, int is_signed)
{
    unsigned p = position & 255, l = length & 255;
    if (l == 0) return 0;
    unsigned top = p + l - 1 < bits ? p + l - 1 : bits - 1; /* whose copies fill what is above the field */
    uint64_t sign = is_signed && a >> top & 1 ? ~0ull : 0;
    if (p >= bits) return sign;
    unsigned given = top - p + 1;
    return (a >> p & field_mask(given)) | (sign & ~field_mask(given));
}

static inline uint64_t insert(uint64_t field, uint64_t into, uint32_t position, uint32_t length, unsigned bits)
{
    unsigned p = position & 255, l = length & 255;
    if (p >= bits) return into;
    uint64_t mask = field_mask(l) << p;
    return (field << p & mask) | (into & ~mask);
}

#define MAKE(name, S, bits, is_signed)                                                                                 \
    static int name(warp *w, const ptx_instruction *i, uint32_t mask)                                                  \
    {                                                                                                                  \
        S *to = SLOT(S, 0);                                                                                            \
        const S *a = SLOT(S, 1);                                                                                       \
        const uint32_t *position = SLOT(uint32_t, 2), *length = SLOT(uint32_t, 3);                                     \
        LANES(mask, lane, to[lane] = (S)extract(a[lane], position[lane], length[lane], bits, is_signed));              \
        return 0;                                                                                                      \
    }
MAKE(bfe_u32, uint32_t, 32, 0)
MAKE(bfe_u64, uint64_t, 64, 0)
MAKE(bfe_s32, uint32_t, 32, 1)
MAKE(bfe_s64, uint64_t, 64, 1)
#undef MAKE

#define MAKE(name, S, bits)                                                                                            \
    static int name(warp *w, const ptx_instruction *i, uint32_t mask)                                                  \
    {                                                                                                                  \
        S *to = SLOT(S, 0);                                                                                            \
        const S *a = SLOT(S, 1), *b = SLOT(S, 2);                                                                      \
        const uint32_t *position = SLOT(uint32_t, 3), *length = SLOT(uint32_t, 4);                                     \
        LANES(mask, lane, to[lane] = (S)insert(a[lane], b[lane], position[lane], length[lane], bits));                 \
        return 0;                                                                                                      \
    }
MAKE(bfi_b32, uint32_t, 32)
MAKE(bfi_b64, uint64_t, 64)
#undef MAKE

/* Both amounts immediate, as compilers emit it: one mask for all lanes. */
static int bfi_b32_immediate(warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t *to = SLOT(uint32_t, 0);
    const uint32_t *a = SLOT(uint32_t, 1), *b = SLOT(uint32_t, 2);
    unsigned p = SLOT(uint32_t, 3)[0] & 255, l = SLOT(uint32_t, 4)[0] & 255;
    uint32_t field = p < 32 ? (uint32_t)(field_mask(l) << p) : 0;
    if (p >= 32) p = 0;
    LANES(mask, lane, to[lane] = (a[lane] << p & field) | (b[lane] & ~field));
    return 0;
}

/* ---- counting and reversing: results have 32 bits */

static inline uint32_t leading_zeros(uint64_t a, unsigned bits)
{
    return a ? (uint32_t)__builtin_clzll(a) - (64 - bits) : bits;
}

/* The highest bit that differs from the sign, or all ones; shift: how far it is from the top instead. */
static inline uint32_t find_highest(uint64_t a, unsigned bits, int is_signed, int shift)
{
    if (is_signed && a >> (bits - 1) & 1) a = ~a & field_mask(bits);
    if (!a) return ~0u;
    return shift ? leading_zeros(a, bits) : bits - 1 - leading_zeros(a, bits);
}

static inline uint64_t reverse(uint64_t a, unsigned bits)
{
    a = (a >> 1 & 0x5555555555555555) | (a & 0x5555555555555555) << 1;
    a = (a >> 2 & 0x3333333333333333) | (a & 0x3333333333333333) << 2;
    a = (a >> 4 & 0x0f0f0f0f0f0f0f0f) | (a & 0x0f0f0f0f0f0f0f0f) << 4;
    return __builtin_bswap64(a) >> (64 - bits);
}

#define MAKE(S, bits)                                                                                                  \
    UNARY(brev_b##bits, S, S, S, S, reverse(a, bits))                                                                  \
    UNARY(popc_b##bits, uint32_t, uint32_t, S, S, __builtin_popcountll(a))                                             \
    UNARY(clz_b##bits, uint32_t, uint32_t, S, S, leading_zeros(a, bits))                                               \
    UNARY(bfind_u##bits, uint32_t, uint32_t, S, S, find_highest(a, bits, 0, 0))                                        \
    UNARY(bfind_s##bits, uint32_t, uint32_t, S, S, find_highest(a, bits, 1, 0))                                        \
    UNARY(bfind_shift_u##bits, uint32_t, uint32_t, S, S, find_highest(a, bits, 0, 1))                                  \
    UNARY(bfind_shift_s##bits, uint32_t, uint32_t, S, S, find_highest(a, bits, 1, 1))
MAKE(uint32_t, 32)
MAKE(uint64_t, 64)
#undef MAKE

/* ---- binding */

static ptx_run *plain(const ptx_instruction *i, ptx_run *const *runs, unsigned groups)
{
    return only_modifiers(i, 0) && all_fit(i, groups) ? runs[i->type[0]] : NULL;
}

#define MAKE(op, groups)                                                                                               \
    ptx_run *BIND(op)(const ptx_instruction *i)                                                                        \
    {                                                                                                                  \
        static run_table runs = {BY_BITS(op), [TYPE_PRED] = op##_pred};                                                \
        return plain(i, runs, groups);                                                                                 \
    }
MAKE(and, 3)
MAKE(or, 3)
MAKE(xor, 3)
MAKE(not, 2)
#undef MAKE

ptx_run *BIND(cnot)(const ptx_instruction *i)
{
    static run_table runs = {BY_BITS(cnot)};
    return plain(i, runs, 2);
}

ptx_run *BIND(lop3)(const ptx_instruction *i)
{
    int good = only_modifiers(i, 0) && i->type[0] == TYPE_B32 && FIT(i, 32, 32, 32, 32, 32);
    return good && operand_at(i, 4, 0)->kind == OPERAND_IMMEDIATE ? lop3 : NULL;
}

static ptx_run *bind_shift(const ptx_instruction *i, ptx_run *const *by_register, ptx_run *const *by_immediate)
{
    uint8_t bits = (uint8_t)value_bits(i->type[0]);
    if (!only_modifiers(i, 0) || !FIT(i, bits, bits, 32)) return NULL;
    return (operand_at(i, 2, 0)->kind == OPERAND_IMMEDIATE ? by_immediate : by_register)[i->type[0]];
}

ptx_run *BIND(shl)(const ptx_instruction *i)
{
    static run_table by_register = {BY_BITS(shl)};
    static run_table by_immediate = {
        [TYPE_B16] = shl_b16_immediate, [TYPE_B32] = shl_b32_immediate, [TYPE_B64] = shl_b64_immediate};
    return bind_shift(i, by_register, by_immediate);
}

ptx_run *BIND(shr)(const ptx_instruction *i)
{
    static run_table by_register = {BY_BITS(shr), [TYPE_U16] = shr_b16, [TYPE_U32] = shr_b32, [TYPE_U64] = shr_b64,
                                    [TYPE_S16] = shr_s16, [TYPE_S32] = shr_s32, [TYPE_S64] = shr_s64};
    static run_table by_immediate = {
        [TYPE_B16] = shr_b16_immediate, [TYPE_B32] = shr_b32_immediate, [TYPE_B64] = shr_b64_immediate,
        [TYPE_U16] = shr_b16_immediate, [TYPE_U32] = shr_b32_immediate, [TYPE_U64] = shr_b64_immediate,
        [TYPE_S16] = shr_s16_immediate, [TYPE_S32] = shr_s32_immediate, [TYPE_S64] = shr_s64_immediate};
    return bind_shift(i, by_register, by_immediate);
}

ptx_run *BIND(shf)(const ptx_instruction *i)
{
    static ptx_run *const runs[FUNNEL_R + 1][SHIFT_AMOUNT + 1] = {
        [FUNNEL_L] = {[SHIFT_WRAP] = shf_l_wrap, [SHIFT_CLAMP] = shf_l_clamp},
        [FUNNEL_R] = {[SHIFT_WRAP] = shf_r_wrap, [SHIFT_CLAMP] = shf_r_clamp}};
    if (!only_modifiers(i, CATEGORY(FUNNEL) | CATEGORY(SHIFT)) || i->type[0] != TYPE_B32 || !all_fit(i, 4)) return NULL;
    return runs[i->modifier[MOD_FUNNEL]][i->modifier[MOD_SHIFT]];
}

ptx_run *BIND(prmt)(const ptx_instruction *i)
{
    static ptx_run *const runs[PERMUTE_RC16 + 1] = {
        [PERMUTE_NONE] = prmt_selectors, [PERMUTE_F4E] = prmt_f4e, [PERMUTE_B4E] = prmt_b4e, [PERMUTE_RC8] = prmt_rc8,
        [PERMUTE_ECL] = prmt_ecl, [PERMUTE_ECR] = prmt_ecr, [PERMUTE_RC16] = prmt_rc16};
    if (!only_modifiers(i, CATEGORY(PERMUTE)) || i->type[0] != TYPE_B32 || !all_fit(i, 4)) return NULL;
    return runs[i->modifier[MOD_PERMUTE]];
}

ptx_run *BIND(bfe)(const ptx_instruction *i)
{
    static run_table runs = {[TYPE_U32] = bfe_u32, [TYPE_S32] = bfe_s32, [TYPE_U64] = bfe_u64, [TYPE_S64] = bfe_s64};
    uint8_t bits = (uint8_t)value_bits(i->type[0]);
    return only_modifiers(i, 0) && FIT(i, bits, bits, 32, 32) ? runs[i->type[0]] : NULL;
}

ptx_run *BIND(bfi)(const ptx_instruction *i)
{
    static run_table runs = {[TYPE_B32] = bfi_b32, [TYPE_B64] = bfi_b64};
    uint8_t bits = (uint8_t)value_bits(i->type[0]);
    if (!only_modifiers(i, 0) || !FIT(i, bits, bits, bits, 32, 32)) return NULL;
    int immediate = operand_at(i, 3, 0)->kind == OPERAND_IMMEDIATE && operand_at(i, 4, 0)->kind == OPERAND_IMMEDIATE;
    return immediate && i->type[0] == TYPE_B32 ? bfi_b32_immediate : runs[i->type[0]];
}

ptx_run *BIND(bfind)(const ptx_instruction *i)
{
    static run_table find = {[TYPE_U32] = bfind_u32, [TYPE_S32] = bfind_s32, [TYPE_U64] = bfind_u64, [TYPE_S64] = bfind_s64};
    static run_table shift = {[TYPE_U32] = bfind_shift_u32, [TYPE_S32] = bfind_shift_s32, [TYPE_U64] = bfind_shift_u64,
                              [TYPE_S64] = bfind_shift_s64};
    unsigned amount = i->modifier[MOD_SHIFT];
    if (!only_modifiers(i, CATEGORY(SHIFT)) || (amount && amount != SHIFT_AMOUNT)) return NULL;
    return FIT(i, 32, (uint8_t)value_bits(i->type[0])) ? (amount ? shift : find)[i->type[0]] : NULL;
}

ptx_run *BIND(brev)(const ptx_instruction *i)
{
    static run_table runs = {[TYPE_B32] = brev_b32, [TYPE_B64] = brev_b64};
    return plain(i, runs, 2);
}

/* A 32-bit count of 32 or 64 bits. */
static ptx_run *bind_count(const ptx_instruction *i, ptx_run *run32, ptx_run *run64)
{
    if (!only_modifiers(i, 0) || !FIT(i, 32, (uint8_t)value_bits(i->type[0]))) return NULL;
    return i->type[0] == TYPE_B32 ? run32 : i->type[0] == TYPE_B64 ? run64 : NULL;
}

ptx_run *BIND(popc)(const ptx_instruction *i) { return bind_count(i, popc_b32, popc_b64); }
ptx_run *BIND(clz)(const ptx_instruction *i) { return bind_count(i, clz_b32, clz_b64); }
