/* Integer arithmetic: add, sub, mul, mad, min, max, abs, neg, div, rem, sad and their relatives. One function for each
 * opcode and type; floating types of the same opcodes go to ops_float.c.
 *
 * What PTX leaves to the machine is as on an H200: quotient and remainder by zero are all ones, and the most negative
 * value divided by -1 is itself, with remainder 0. */
#include "variant.h"

#include "lanes.h"
#include "ops_float.h"

/* X(id, slot's element, value, its double width, bits) */
#define UNSIGNED(X)                                                                                                    \
    X(u16, uint32_t, uint16_t, uint32_t, 16) X(u32, uint32_t, uint32_t, uint64_t, 32)                                  \
    X(u64, uint64_t, uint64_t, unsigned __int128, 64)
#define SIGNED(X)                                                                                                      \
    X(s16, uint32_t, int16_t, int32_t, 16) X(s32, uint32_t, int32_t, int64_t, 32) X(s64, uint64_t, int64_t, __int128, 64)

/* ---- where the sign does not matter */

BINARY(add_b16, uint32_t, uint16_t, uint32_t, uint32_t, a + b)
BINARY(add_b32, uint32_t, uint32_t, uint32_t, uint32_t, a + b)
BINARY(add_b64, uint64_t, uint64_t, uint64_t, uint64_t, a + b)
BINARY(add_x2, uint32_t, uint32_t, uint32_t, uint32_t, ((a + b) & 0xffff) | ((a & 0xffff0000) + (b & 0xffff0000)))
BINARY(sub_b16, uint32_t, uint16_t, uint32_t, uint32_t, a - b)
BINARY(sub_b32, uint32_t, uint32_t, uint32_t, uint32_t, a - b)
BINARY(sub_b64, uint64_t, uint64_t, uint64_t, uint64_t, a - b)
BINARY(mul_lo_b16, uint32_t, uint16_t, uint32_t, uint32_t, a * b)
BINARY(mul_lo_b32, uint32_t, uint32_t, uint32_t, uint32_t, a * b)
BINARY(mul_lo_b64, uint64_t, uint64_t, uint64_t, uint64_t, a * b)
TERNARY(mad_lo_b16, uint32_t, uint16_t, uint32_t, uint32_t, uint32_t, uint32_t, a * b + c)
TERNARY(mad_lo_b32, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, a * b + c)
TERNARY(mad_lo_b64, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, a * b + c)

/* ---- where it does */

#define MAKE(id, S, V, W, bits)                                                                                        \
    BINARY(mul_hi_##id, S, uint##bits##_t, S, V, ((W)a * (W)b) >> bits)                                                \
    TERNARY(mad_hi_##id, S, uint##bits##_t, S, V, S, V, (uint##bits##_t)(((W)a * (W)b) >> bits) + (uint##bits##_t)c)   \
    TERNARY(sad_##id, S, uint##bits##_t, S, V, S, uint##bits##_t,                                                      \
            (a > b ? (uint##bits##_t)a - (uint##bits##_t)b : (uint##bits##_t)b - (uint##bits##_t)a) + c)               \
    BINARY(min_##id, S, uint##bits##_t, S, V, a < b ? a : b)                                                           \
    BINARY(max_##id, S, uint##bits##_t, S, V, a > b ? a : b)
UNSIGNED(MAKE)
SIGNED(MAKE)
#undef MAKE

#define MAKE(id, S, V, W, bits)                                                                                        \
    BINARY(div_##id, S, V, S, V, b ? a / b : (V)-1)                                                                    \
    BINARY(rem_##id, S, V, S, V, b ? a % b : (V)-1)
UNSIGNED(MAKE)
#undef MAKE

/* -1 is apart: the host's division traps where the quotient does not fit. */
#define MAKE(id, S, V, W, bits)                                                                                        \
    BINARY(div_##id, S, uint##bits##_t, S, V, b == 0 ? (V)-1 : b == -1 ? (V)(0 - (uint##bits##_t)a) : a / b)           \
    BINARY(rem_##id, S, uint##bits##_t, S, V, b == 0 ? (V)-1 : b == -1 ? 0 : a % b)                                        \
    UNARY(abs_##id, S, uint##bits##_t, S, V, a < 0 ? 0 - (uint##bits##_t)a : (uint##bits##_t)a)                        \
    UNARY(neg_##id, S, uint##bits##_t, S, V, 0 - (uint##bits##_t)a)
SIGNED(MAKE)
#undef MAKE

BINARY(mul_wide_u16, uint32_t, uint32_t, uint32_t, uint16_t, (uint32_t)a * b)
BINARY(mul_wide_s16, uint32_t, uint32_t, uint32_t, int16_t, a * b)
BINARY(mul_wide_u32, uint64_t, uint64_t, uint32_t, uint32_t, (uint64_t)a * b)
BINARY(mul_wide_s32, uint64_t, uint64_t, uint32_t, int32_t, (int64_t)a * b)
TERNARY(mad_wide_u16, uint32_t, uint32_t, uint32_t, uint16_t, uint32_t, uint32_t, (uint32_t)a * b + c)
TERNARY(mad_wide_s16, uint32_t, uint32_t, uint32_t, int16_t, uint32_t, uint32_t, (uint32_t)(a * b) + c)
TERNARY(mad_wide_u32, uint64_t, uint64_t, uint32_t, uint32_t, uint64_t, uint64_t, (uint64_t)a * b + c)
TERNARY(mad_wide_s32, uint64_t, uint64_t, uint32_t, int32_t, uint64_t, uint64_t, (uint64_t)((int64_t)a * b) + c)

static inline int32_t saturate(int64_t value)
{
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}
BINARY(add_sat_s32, uint32_t, uint32_t, uint32_t, int32_t, saturate((int64_t)a + b))
BINARY(sub_sat_s32, uint32_t, uint32_t, uint32_t, int32_t, saturate((int64_t)a - b))
TERNARY(mad_hi_sat_s32, uint32_t, uint32_t, uint32_t, int32_t, uint32_t, int32_t, saturate((((int64_t)a * b) >> 32) + c))
BINARY(min_relu_s32, uint32_t, uint32_t, uint32_t, int32_t, a < b ? (a > 0 ? a : 0) : (b > 0 ? b : 0))
BINARY(max_relu_s32, uint32_t, uint32_t, uint32_t, int32_t, a > b ? (a > 0 ? a : 0) : (b > 0 ? b : 0))

/* ---- 24-bit factors: the product has 48 bits, of which lo is the lower 32 and hi the upper 32 */

static inline uint64_t product24_u32(uint32_t a, uint32_t b) { return (uint64_t)(a & 0xffffff) * (b & 0xffffff); }
static inline int64_t product24_s32(uint32_t a, uint32_t b)
{
    return (int64_t)((int32_t)(a << 8) >> 8) * ((int32_t)(b << 8) >> 8);
}
#define MAKE(id)                                                                                                       \
    BINARY(mul24_lo_##id, uint32_t, uint32_t, uint32_t, uint32_t, product24_##id(a, b))                                \
    BINARY(mul24_hi_##id, uint32_t, uint32_t, uint32_t, uint32_t, product24_##id(a, b) >> 16)                          \
    TERNARY(mad24_lo_##id, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, (uint32_t)product24_##id(a, b) + c) \
    TERNARY(mad24_hi_##id, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,                                 \
            (uint32_t)(product24_##id(a, b) >> 16) + c)
MAKE(u32)
MAKE(s32)
#undef MAKE

/* ---- dot products: A and B are the types of a part */

#define PRODUCT(A, B, x, y) (uint32_t)((int32_t)(A)(x) * (int32_t)(B)(y))
#define MAKE(id, A4, A2, B)                                                                                            \
    TERNARY(dp4a_##id, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,                                     \
            c + PRODUCT(A4, B, a, b) + PRODUCT(A4, B, a >> 8, b >> 8) + PRODUCT(A4, B, a >> 16, b >> 16) +             \
                PRODUCT(A4, B, a >> 24, b >> 24))                                                                      \
    TERNARY(dp2a_lo_##id, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,                                  \
            c + PRODUCT(A2, B, a, b) + PRODUCT(A2, B, a >> 16, b >> 8))                                                \
    TERNARY(dp2a_hi_##id, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,                                  \
            c + PRODUCT(A2, B, a, b >> 16) + PRODUCT(A2, B, a >> 16, b >> 24))
MAKE(uu, uint8_t, uint16_t, uint8_t)
MAKE(us, uint8_t, uint16_t, int8_t)
MAKE(su, int8_t, int16_t, uint8_t)
MAKE(ss, int8_t, int16_t, int8_t)
#undef MAKE

/* ---- binding */

typedef ptx_run *const run_table[TYPE_COUNT];

static ptx_run *plain(const ptx_instruction *i, ptx_run *const *runs, unsigned groups)
{
    return only_modifiers(i, 0) && all_fit(i, groups) ? runs[i->type[0]] : NULL;
}

/* With .sat or .relu: for .s32 alone. */
static ptx_run *modified(const ptx_instruction *i, unsigned category, ptx_run *run)
{
    if (i->type[0] != TYPE_S32 || !only_modifiers(i, 1ull << category)) return NULL;
    return i->modifier[category] == 1 && all_fit(i, 3) ? run : NULL;
}

ptx_run *BIND(add)(const ptx_instruction *i)
{
    static run_table runs = {BY_WIDTH(add), [TYPE_U16X2] = add_x2, [TYPE_S16X2] = add_x2};
    if (is_floating(i->type[0])) return VARIANT(bind_float_add)(i);
    return i->modifier[MOD_SAT] ? modified(i, MOD_SAT, add_sat_s32) : plain(i, runs, 3);
}

ptx_run *BIND(sub)(const ptx_instruction *i)
{
    static run_table runs = {BY_WIDTH(sub)};
    if (is_floating(i->type[0])) return VARIANT(bind_float_sub)(i);
    return i->modifier[MOD_SAT] ? modified(i, MOD_SAT, sub_sat_s32) : plain(i, runs, 3);
}

ptx_run *BIND(mul)(const ptx_instruction *i)
{
    static run_table lo = {BY_WIDTH(mul_lo)}, hi = {BY_TYPE(mul_hi)};
    static run_table wide = {
        [TYPE_U16] = mul_wide_u16, [TYPE_S16] = mul_wide_s16, [TYPE_U32] = mul_wide_u32, [TYPE_S32] = mul_wide_s32};
    unsigned type = i->type[0], bits = value_bits(type);
    if (is_floating(type)) return VARIANT(bind_float_mul)(i);
    if (!only_modifiers(i, CATEGORY(HALF))) return NULL;
    switch (i->modifier[MOD_HALF]) {
    case HALF_LO: return all_fit(i, 3) ? lo[type] : NULL;
    case HALF_HI: return all_fit(i, 3) ? hi[type] : NULL;
    case HALF_WIDE: return FIT(i, (uint8_t)(2 * bits), (uint8_t)bits, (uint8_t)bits) ? wide[type] : NULL;
    default: return NULL;
    }
}

static ptx_run *wide_mad(const ptx_instruction *i)
{
    static run_table wide = {
        [TYPE_U16] = mad_wide_u16, [TYPE_S16] = mad_wide_s16, [TYPE_U32] = mad_wide_u32, [TYPE_S32] = mad_wide_s32};
    unsigned type = i->type[0];
    uint8_t bits = (uint8_t)value_bits(type), twice = (uint8_t)(2 * bits);
    return FIT(i, twice, bits, bits, twice) ? wide[type] : NULL;
}

ptx_run *BIND(mad)(const ptx_instruction *i)
{
    static run_table lo = {BY_WIDTH(mad_lo)}, hi = {BY_TYPE(mad_hi)};
    unsigned type = i->type[0], half = i->modifier[MOD_HALF], sat = i->modifier[MOD_SAT];
    if (is_floating(type)) return VARIANT(bind_float_mad)(i);
    if (!only_modifiers(i, CATEGORY(HALF) | CATEGORY(SAT))) return NULL;
    if (sat) return sat == SAT_GIVEN && type == TYPE_S32 && half == HALF_HI && all_fit(i, 4) ? mad_hi_sat_s32 : NULL;
    switch (half) {
    case HALF_LO: return all_fit(i, 4) ? lo[type] : NULL;
    case HALF_HI: return all_fit(i, 4) ? hi[type] : NULL;
    case HALF_WIDE: return wide_mad(i);
    default: return NULL;
    }
}

/* lo and hi for u32 and s32: runs[half - HALF_LO][signed]. */
static ptx_run *bind_24(const ptx_instruction *i, ptx_run *const runs[2][2], unsigned groups)
{
    unsigned half = i->modifier[MOD_HALF], type = i->type[0];
    if (!only_modifiers(i, CATEGORY(HALF)) || (half != HALF_LO && half != HALF_HI) || !all_fit(i, groups)) return NULL;
    return type == TYPE_U32 || type == TYPE_S32 ? runs[half - HALF_LO][type == TYPE_S32] : NULL;
}

ptx_run *BIND(mul24)(const ptx_instruction *i)
{
    static ptx_run *const runs[2][2] = {{mul24_lo_u32, mul24_lo_s32}, {mul24_hi_u32, mul24_hi_s32}};
    return bind_24(i, runs, 3);
}

ptx_run *BIND(mad24)(const ptx_instruction *i)
{
    static ptx_run *const runs[2][2] = {{mad24_lo_u32, mad24_lo_s32}, {mad24_hi_u32, mad24_hi_s32}};
    return bind_24(i, runs, 4);
}

ptx_run *BIND(div)(const ptx_instruction *i)
{
    static run_table runs = {BY_TYPE(div)};
    return is_floating(i->type[0]) ? VARIANT(bind_float_div)(i) : plain(i, runs, 3);
}

ptx_run *BIND(rem)(const ptx_instruction *i)
{
    static run_table runs = {BY_TYPE(rem)};
    return plain(i, runs, 3);
}

ptx_run *BIND(abs)(const ptx_instruction *i)
{
    static run_table runs = {[TYPE_S16] = abs_s16, [TYPE_S32] = abs_s32, [TYPE_S64] = abs_s64};
    return is_floating(i->type[0]) ? VARIANT(bind_float_abs)(i) : plain(i, runs, 2);
}

ptx_run *BIND(neg)(const ptx_instruction *i)
{
    static run_table runs = {[TYPE_S16] = neg_s16, [TYPE_S32] = neg_s32, [TYPE_S64] = neg_s64};
    return is_floating(i->type[0]) ? VARIANT(bind_float_neg)(i) : plain(i, runs, 2);
}

ptx_run *BIND(min)(const ptx_instruction *i)
{
    static run_table runs = {BY_TYPE(min)};
    if (is_floating(i->type[0])) return VARIANT(bind_float_min)(i);
    return i->modifier[MOD_RELU] ? modified(i, MOD_RELU, min_relu_s32) : plain(i, runs, 3);
}

ptx_run *BIND(max)(const ptx_instruction *i)
{
    static run_table runs = {BY_TYPE(max)};
    if (is_floating(i->type[0])) return VARIANT(bind_float_max)(i);
    return i->modifier[MOD_RELU] ? modified(i, MOD_RELU, max_relu_s32) : plain(i, runs, 3);
}

ptx_run *BIND(sad)(const ptx_instruction *i)
{
    static run_table runs = {BY_TYPE(sad)};
    return plain(i, runs, 4);
}

/* Four functions, by the signs of a's and b's parts. */
static ptx_run *by_signs(const ptx_instruction *i, ptx_run *const runs[4])
{
    unsigned a = i->type[0], b = i->type[1];
    int known = (a == TYPE_U32 || a == TYPE_S32) && (b == TYPE_U32 || b == TYPE_S32);
    return i->types == 2 && known && FIT(i, 32, 32, 32, 32) ? runs[2 * (a == TYPE_S32) + (b == TYPE_S32)] : NULL;
}

ptx_run *BIND(dp4a)(const ptx_instruction *i)
{
    static ptx_run *const runs[4] = {dp4a_uu, dp4a_us, dp4a_su, dp4a_ss};
    return only_modifiers(i, 0) ? by_signs(i, runs) : NULL;
}

ptx_run *BIND(dp2a)(const ptx_instruction *i)
{
    static ptx_run *const lo[4] = {dp2a_lo_uu, dp2a_lo_us, dp2a_lo_su, dp2a_lo_ss};
    static ptx_run *const hi[4] = {dp2a_hi_uu, dp2a_hi_us, dp2a_hi_su, dp2a_hi_ss};
    unsigned half = i->modifier[MOD_HALF];
    if (!only_modifiers(i, CATEGORY(HALF)) || (half != HALF_LO && half != HALF_HI)) return NULL;
    return by_signs(i, half == HALF_LO ? lo : hi);
}
