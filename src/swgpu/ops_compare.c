/* Comparison and selection: setp, set, selp, slct, for integers and floating types.
 *
 * A comparison makes a mask of lanes; it runs for all 32, whatever the instruction's mask, because that needs no branch.
 * Integers and f32 have a function for each operator. The other floating types, and .ftz, are first made doubles, which
 * hold all their values. */
#include "variant.h"

#include "lanes.h"

/* ---- masks */

typedef uint32_t compare_lanes(const warp *w, const ptx_instruction *i);

#define COMPARE(name, S, V, ...)                                                                                       \
    static uint32_t name(const warp *w, const ptx_instruction *i)                                                      \
    {                                                                                                                  \
        const S *from_a = SLOT(S, 1), *from_b = SLOT(S, 2);                                                            \
        uint32_t lanes = 0;                                                                                            \
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {                                                            \
            V a = (V)from_a[lane], b = (V)from_b[lane];                                                                \
            lanes |= (__VA_ARGS__) ? lane_bit[lane] : 0;                                                               \
        }                                                                                                              \
        return lanes;                                                                                                  \
    }

#define INTEGERS(X)                                                                                                    \
    X(u16, uint32_t, uint16_t) X(u32, uint32_t, uint32_t) X(u64, uint64_t, uint64_t)                                   \
    X(s16, uint32_t, int16_t) X(s32, uint32_t, int32_t) X(s64, uint64_t, int64_t)
#define MAKE(id, S, V)                                                                                                 \
    COMPARE(eq_##id, S, V, a == b)                                                                                     \
    COMPARE(ne_##id, S, V, a != b)                                                                                     \
    COMPARE(lt_##id, S, V, a < b)                                                                                      \
    COMPARE(le_##id, S, V, a <= b)                                                                                     \
    COMPARE(gt_##id, S, V, a > b)                                                                                      \
    COMPARE(ge_##id, S, V, a >= b)
INTEGERS(MAKE)
#undef MAKE

/* Operators of floating types; those ending in u are true also if an operand is a NaN. */
#define FLOATING(X)                                                                                                    \
    X(EQ, eq, a == b) X(NE, ne, a < b || a > b) X(LT, lt, a < b) X(LE, le, a <= b) X(GT, gt, a > b) X(GE, ge, a >= b)  \
    X(EQU, equ, !(a < b || a > b)) X(NEU, neu, !(a == b)) X(LTU, ltu, !(a >= b)) X(LEU, leu, !(a > b))                 \
    X(GTU, gtu, !(a <= b)) X(GEU, geu, !(a < b)) X(NUM, num, a == a && b == b) X(NAN, nan, a != a || b != b)

static inline float as_f32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define MAKE(op, name, expression)                                                                                     \
    static uint32_t name##_f32(const warp *w, const ptx_instruction *i)                                                \
    {                                                                                                                  \
        const uint32_t *from_a = SLOT(uint32_t, 1), *from_b = SLOT(uint32_t, 2);                                       \
        uint32_t lanes = 0;                                                                                            \
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {                                                            \
            float a = as_f32(from_a[lane]), b = as_f32(from_b[lane]);                                                  \
            lanes |= (expression) ? lane_bit[lane] : 0;                                                                \
        }                                                                                                              \
        return lanes;                                                                                                  \
    }                                                                                                                  \
    static uint32_t name##_doubles(const double *from_a, const double *from_b)                                         \
    {                                                                                                                  \
        uint32_t lanes = 0;                                                                                            \
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {                                                            \
            double a = from_a[lane], b = from_b[lane];                                                                 \
            lanes |= (expression) ? lane_bit[lane] : 0;                                                                \
        }                                                                                                              \
        return lanes;                                                                                                  \
    }
FLOATING(MAKE)
#undef MAKE

/* ---- floating types as doubles */

/* A sign, an exponent and a fraction of any small format; ftz takes subnormals for zeros. */
static inline double small_float(uint32_t bits, unsigned exponent_bits, unsigned fraction_bits, int ftz)
{
    uint32_t fraction = bits & ((1u << fraction_bits) - 1), top = (1u << exponent_bits) - 1;
    uint32_t exponent = bits >> fraction_bits & top, bias = top >> 1;
    double sign = bits >> (exponent_bits + fraction_bits) & 1 ? -1 : 1, value;
    if (exponent == top) return fraction ? __builtin_nan("") : sign * __builtin_inf();
    if (exponent == 0) {
        if (ftz || !fraction) return sign * 0.0;
        exponent = 1; /* a power of two less, without the leading one */
    } else {
        fraction |= 1u << fraction_bits;
    }
    uint64_t power = (uint64_t)(1023 + exponent - bias - fraction_bits) << 52;
    memcpy(&value, &power, sizeof value);
    return sign * value * fraction;
}

/* half: which half of an x2 type. */
static void widen(const warp *w, const ptx_operand *o, unsigned type, unsigned half, int ftz, double to[PTX_LANES])
{
    const uint32_t *from = slot32(w, o->slot);
    unsigned shift = 16 * half;
    switch (type) {
    case TYPE_F64: memcpy(to, slot64(w, o->slot), PTX_LANES * sizeof *to); break;
    case TYPE_F16: case TYPE_F16X2:
        for (unsigned lane = 0; lane < PTX_LANES; lane++) to[lane] = small_float(from[lane] >> shift & 0xffff, 5, 10, ftz);
        break;
    case TYPE_BF16: case TYPE_BF16X2:
        for (unsigned lane = 0; lane < PTX_LANES; lane++) to[lane] = small_float(from[lane] >> shift & 0xffff, 8, 7, ftz);
        break;
    default:
        for (unsigned lane = 0; lane < PTX_LANES; lane++) to[lane] = small_float(from[lane], 8, 23, ftz);
    }
}

static uint32_t compare_widened(const warp *w, const ptx_instruction *i, unsigned type, unsigned half)
{
    static uint32_t (*const doubles[])(const double *, const double *) = {
#define MAKE(op, name, expression) [COMPARE_##op] = name##_doubles,
        FLOATING(MAKE)
#undef MAKE
    };
    double a[PTX_LANES], b[PTX_LANES];
    widen(w, operand_at(i, 1, 0), type, half, i->modifier[MOD_FTZ], a);
    widen(w, operand_at(i, 2, 0), type, half, i->modifier[MOD_FTZ], b);
    return doubles[i->modifier[MOD_COMPARE]](a, b);
}

/* The comparison of a type by an operator that compare_allowed accepts. */
static uint32_t compare(const warp *w, const ptx_instruction *i, unsigned type, unsigned half)
{
#define SAME(id) [COMPARE_EQ] = eq_##id, [COMPARE_NE] = ne_##id
#define ORDER(id) SAME(id), [COMPARE_LT] = lt_##id, [COMPARE_LE] = le_##id, [COMPARE_GT] = gt_##id, [COMPARE_GE] = ge_##id
#define UNSIGNED(id) ORDER(id), [COMPARE_LO] = lt_##id, [COMPARE_LS] = le_##id, [COMPARE_HI] = gt_##id, [COMPARE_HS] = ge_##id
    static compare_lanes *const by_type[TYPE_COUNT][COMPARE_NAN + 1] = {
        [TYPE_B16] = {SAME(u16)}, [TYPE_B32] = {SAME(u32)}, [TYPE_B64] = {SAME(u64)},
        [TYPE_S16] = {ORDER(s16)}, [TYPE_S32] = {ORDER(s32)}, [TYPE_S64] = {ORDER(s64)},
        [TYPE_U16] = {UNSIGNED(u16)}, [TYPE_U32] = {UNSIGNED(u32)}, [TYPE_U64] = {UNSIGNED(u64)},
#define MAKE(op, name, expression) [COMPARE_##op] = name##_f32,
        [TYPE_F32] = {FLOATING(MAKE)}
#undef MAKE
    };
    compare_lanes *run = i->modifier[MOD_FTZ] ? NULL : by_type[type][i->modifier[MOD_COMPARE]];
    return run ? run(w, i) : compare_widened(w, i, type, half);
}

static uint32_t combine(unsigned operator, uint32_t lanes, uint32_t with)
{
    switch (operator) {
    case BOOL_AND: return lanes & with;
    case BOOL_OR: return lanes | with;
    case BOOL_XOR: return lanes ^ with;
    default: return lanes;
    }
}

static uint32_t third_source(const warp *w, const ptx_instruction *i)
{
    return i->modifier[MOD_BOOL] ? predicate_mask(w, operand_at(i, 3, 0)) : 0;
}

/* ---- setp. The plain form p = a op b of 32- and 64-bit integers and f32 has functions of its own. */

#define MAKE(name)                                                                                                     \
    static int setp_##name(warp *w, const ptx_instruction *i, uint32_t mask)                                           \
    {                                                                                                                  \
        predicate_store(w, operand_at(i, 0, 0), mask, name(w, i));                                                     \
        return 0;                                                                                                      \
    }
#define MAKE_ALL(id) MAKE(eq_##id) MAKE(ne_##id) MAKE(lt_##id) MAKE(le_##id) MAKE(gt_##id) MAKE(ge_##id)
MAKE_ALL(u32)
MAKE_ALL(s32)
MAKE_ALL(u64)
MAKE_ALL(s64)
#define MAKE_FLOATING(op, name, expression) MAKE(name##_f32)
FLOATING(MAKE_FLOATING)
#undef MAKE_FLOATING
#undef MAKE_ALL
#undef MAKE

/* p|q, a third source, and the types without functions of their own. q has the complement of the comparison, or for x2
 * types the upper half's. */
static int setp_any(warp *w, const ptx_instruction *i, uint32_t mask)
{
    unsigned type = i->type[0], operator = i->modifier[MOD_BOOL];
    uint32_t with = third_source(w, i), first = compare(w, i, type, 0), second = ~first;
    if (type == TYPE_F16X2 || type == TYPE_BF16X2) second = compare(w, i, type, 1);
    predicate_store(w, operand_at(i, 0, 0), mask, combine(operator, first, with));
    if (i->count[0] == 2) predicate_store(w, operand_at(i, 0, 1), mask, combine(operator, second, with));
    return 0;
}

/* ---- set */

/* What true is in a type; false is 0. */
static uint32_t true_value(unsigned type)
{
    switch (type) {
    case TYPE_F32: return 0x3f800000;
    case TYPE_F16: case TYPE_F16X2: return 0x3c00;
    case TYPE_BF16: case TYPE_BF16X2: return 0x3f80;
    case TYPE_U16: case TYPE_S16: return 0xffff;
    default: return 0xffffffff;
    }
}

static int set_any(warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t lanes = combine(i->modifier[MOD_BOOL], compare(w, i, i->type[1], 0), third_source(w, i));
    uint32_t value = true_value(i->type[0]), *to = SLOT(uint32_t, 0);
    LANES(mask, lane, to[lane] = lanes & lane_bit[lane] ? value : 0);
    return 0;
}

/* Two results in the halves of a word: an integer destination has 0xffff for true too. */
static int set_x2(warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t with = third_source(w, i), *to = SLOT(uint32_t, 0), value = true_value(i->type[0]) & 0xffff;
    uint32_t low = combine(i->modifier[MOD_BOOL], compare(w, i, i->type[1], 0), with);
    uint32_t high = combine(i->modifier[MOD_BOOL], compare(w, i, i->type[1], 1), with);
    LANES(mask, lane, to[lane] = (low & lane_bit[lane] ? value : 0) | (high & lane_bit[lane] ? value << 16 : 0));
    return 0;
}

/* ---- selp, slct */

#define MAKE(name, S, V)                                                                                               \
    static int name(warp *w, const ptx_instruction *i, uint32_t mask)                                                  \
    {                                                                                                                  \
        S *to = SLOT(S, 0);                                                                                            \
        const S *a = SLOT(S, 1), *b = SLOT(S, 2);                                                                      \
        uint32_t lanes = predicate_mask(w, operand_at(i, 3, 0));                                                     \
        LANES(mask, lane, S x = a[lane]; S y = b[lane]; to[lane] = (V)(lanes & lane_bit[lane] ? x : y));               \
        return 0;                                                                                                      \
    }
MAKE(selp_b16, uint32_t, uint16_t)
MAKE(selp_b32, uint32_t, uint32_t)
MAKE(selp_b64, uint64_t, uint64_t)
#undef MAKE

/* a if c >= 0: not for a NaN, but for -0, and with ftz for a negative subnormal. */
static int slct(warp *w, const ptx_instruction *i, uint32_t mask)
{
    const ptx_operand *to = operand_at(i, 0, 0), *a = operand_at(i, 1, 0), *b = operand_at(i, 2, 0), *c = operand_at(i, 3, 0);
    int floating = i->type[1] == TYPE_F32, ftz = i->modifier[MOD_FTZ];
    FOR_LANES(mask, lane, {
        uint32_t bits = (uint32_t)operand_get(w, c, lane);
        int first = floating ? small_float(bits, 8, 23, ftz) >= 0 : (int32_t)bits >= 0;
        operand_set(w, to, lane, operand_get(w, first ? a : b, lane));
    });
    return 0;
}

/* ---- binding */

#define OPS_SAME (1u << COMPARE_EQ | 1u << COMPARE_NE)
#define OPS_ORDER (OPS_SAME | 1u << COMPARE_LT | 1u << COMPARE_LE | 1u << COMPARE_GT | 1u << COMPARE_GE)
#define OPS_UNSIGNED (OPS_ORDER | 1u << COMPARE_LO | 1u << COMPARE_LS | 1u << COMPARE_HI | 1u << COMPARE_HS)
#define OPS_FLOATING                                                                                                   \
    (OPS_ORDER | 1u << COMPARE_EQU | 1u << COMPARE_NEU | 1u << COMPARE_LTU | 1u << COMPARE_LEU | 1u << COMPARE_GTU |   \
     1u << COMPARE_GEU | 1u << COMPARE_NUM | 1u << COMPARE_NAN)

/* The operators that a type has, and which types take .ftz. */
static int compare_allowed(const ptx_instruction *i, unsigned type)
{
    static const uint32_t operators[TYPE_COUNT] = {
        [TYPE_B16] = OPS_SAME, [TYPE_B32] = OPS_SAME, [TYPE_B64] = OPS_SAME,
        [TYPE_S16] = OPS_ORDER, [TYPE_S32] = OPS_ORDER, [TYPE_S64] = OPS_ORDER,
        [TYPE_U16] = OPS_UNSIGNED, [TYPE_U32] = OPS_UNSIGNED, [TYPE_U64] = OPS_UNSIGNED,
        [TYPE_F16] = OPS_FLOATING, [TYPE_F16X2] = OPS_FLOATING, [TYPE_BF16] = OPS_FLOATING, [TYPE_BF16X2] = OPS_FLOATING,
        [TYPE_F32] = OPS_FLOATING, [TYPE_F64] = OPS_FLOATING};
    if (!only_modifiers(i, CATEGORY(COMPARE) | CATEGORY(BOOL) | CATEGORY(FTZ))) return 0;
    if (i->modifier[MOD_FTZ] && type != TYPE_F32 && type != TYPE_F16 && type != TYPE_F16X2) return 0;
    return (operators[type] >> i->modifier[MOD_COMPARE] & 1) != 0;
}

/* Two sources of the type, and a third, a predicate, if and only if an operator combines with it. */
static int sources_fit(const ptx_instruction *i, unsigned type)
{
    if (i->groups != (i->modifier[MOD_BOOL] ? 4 : 3)) return 0;
    for (unsigned g = 1; g < i->groups; g++)
        if (i->count[g] != 1 || !operand_fits(operand_at(i, g, 0), g < 3 ? value_bits(type) : 1)) return 0;
    return 1;
}

static ptx_run *setp_fast(unsigned type, unsigned operator)
{
#define SETP_SAME(id) [COMPARE_EQ] = setp_eq_##id, [COMPARE_NE] = setp_ne_##id
#define SETP_ORDER(id)                                                                                                 \
    SETP_SAME(id), [COMPARE_LT] = setp_lt_##id, [COMPARE_LE] = setp_le_##id, [COMPARE_GT] = setp_gt_##id,              \
        [COMPARE_GE] = setp_ge_##id
#define SETP_UNSIGNED(id)                                                                                              \
    SETP_ORDER(id), [COMPARE_LO] = setp_lt_##id, [COMPARE_LS] = setp_le_##id, [COMPARE_HI] = setp_gt_##id,             \
        [COMPARE_HS] = setp_ge_##id
    static ptx_run *const runs[TYPE_COUNT][COMPARE_NAN + 1] = {
        [TYPE_B32] = {SETP_SAME(u32)}, [TYPE_B64] = {SETP_SAME(u64)}, [TYPE_S32] = {SETP_ORDER(s32)},
        [TYPE_S64] = {SETP_ORDER(s64)}, [TYPE_U32] = {SETP_UNSIGNED(u32)}, [TYPE_U64] = {SETP_UNSIGNED(u64)},
#define MAKE(op, name, expression) [COMPARE_##op] = setp_##name##_f32,
        [TYPE_F32] = {FLOATING(MAKE)}
#undef MAKE
    };
    return runs[type][operator];
}

ptx_run *BIND(setp)(const ptx_instruction *i)
{
    unsigned type = i->type[0];
    int pair_allowed = type != TYPE_F16 && type != TYPE_BF16;
    if (!compare_allowed(i, type) || !sources_fit(i, type)) return NULL;
    if (i->count[0] == 2) {
        if (!pair_allowed || !destination_or_sink_fits(operand_at(i, 0, 0), 1)) return NULL;
        if (!destination_or_sink_fits(operand_at(i, 0, 1), 1)) return NULL;
    } else if (i->count[0] != 1 || !destination_fits(operand_at(i, 0, 0), 1)) {
        return NULL;
    }
    int is_plain = i->count[0] == 1 && !i->modifier[MOD_BOOL] && !i->modifier[MOD_FTZ];
    ptx_run *fast = is_plain ? setp_fast(type, i->modifier[MOD_COMPARE]) : NULL;
    return fast ? fast : setp_any;
}

/* The source types for each destination type. */
static uint64_t set_sources(unsigned type)
{
    const uint64_t common = T_BITS | T_INT | TYPE_BIT(F32) | TYPE_BIT(F64), half = TYPE_BIT(F16) | TYPE_BIT(BF16);
    switch (type) {
    case TYPE_F32: return common;
    case TYPE_F16: return common | TYPE_BIT(F16);
    case TYPE_BF16: return common | half;
    case TYPE_U32: case TYPE_S32: return common | T_HALF;
    case TYPE_U16: case TYPE_S16: return half;
    case TYPE_F16X2: return TYPE_BIT(F16X2);
    case TYPE_BF16X2: return TYPE_BIT(BF16X2);
    default: return 0;
    }
}

ptx_run *BIND(set)(const ptx_instruction *i)
{
    unsigned to = i->type[0], from = i->type[1];
    if (i->types != 2 || !compare_allowed(i, from) || !sources_fit(i, from)) return NULL;
    if (!(set_sources(to) >> from & 1) || i->count[0] != 1 || !destination_fits(operand_at(i, 0, 0), value_bits(to))) return NULL;
    return from == TYPE_F16X2 || from == TYPE_BF16X2 ? set_x2 : set_any;
}

ptx_run *BIND(selp)(const ptx_instruction *i)
{
    static ptx_run *const runs[TYPE_COUNT] = {
        BY_BITS(selp), BY_WIDTH(selp), [TYPE_F32] = selp_b32, [TYPE_F64] = selp_b64};
    uint8_t bits = (uint8_t)value_bits(i->type[0]);
    return only_modifiers(i, 0) && FIT(i, bits, bits, bits, 1) ? runs[i->type[0]] : NULL;
}

ptx_run *BIND(slct)(const ptx_instruction *i)
{
    const uint64_t types = T_BITS | T_INT | TYPE_BIT(F32) | TYPE_BIT(F64);
    uint8_t bits = (uint8_t)value_bits(i->type[0]);
    if (i->types != 2 || !(types >> i->type[0] & 1) || !FIT(i, bits, bits, bits, 32)) return NULL;
    if (i->type[1] == TYPE_S32) return only_modifiers(i, 0) ? slct : NULL;
    return i->type[1] == TYPE_F32 && only_modifiers(i, CATEGORY(FTZ)) ? slct : NULL;
}
