/* cvt: between integers and floating-point formats, one value or a packed pair at a time.
 *
 * The common conversions have loops that vectorise; every other one goes through an exact number (formats.h). Which
 * roundings and modifiers a pair of types takes is in forms_of; all else is refused. NaNs become the destination's one
 * NaN, but cvt.f32.bf16, .f32.f32 and .f64.f64 only move bits, as on a GPU. As an integer a NaN is 0, or, if the source
 * is f64 or the integer has 64 bits, only the highest bit. */
#include "float_lanes.h"

#define SET_INT (T_BYTES | T_INT)
#define SET_FLOAT (TYPE_BIT(F16) | TYPE_BIT(BF16) | TYPE_BIT(F32) | TYPE_BIT(F64))
#define SET_FP8X2 (TYPE_BIT(E4M3X2) | TYPE_BIT(E5M2X2))
#define IN(set, type) ((set) >> (type) & 1)

static int is_signed(ptx_type type)
{
    return IN(TYPE_BIT(S8) | TYPE_BIT(S16) | TYPE_BIT(S32) | TYPE_BIT(S64), type);
}

/* ---- any conversion, one element */

static number number_of_int(ptx_type type, uint64_t bits)
{
    unsigned up = 64 - ptx_type_bits(type);
    uint64_t value = bits << up;
    if (!is_signed(type)) return number_from_int(value >> up, 0);
    value = (uint64_t)((int64_t)value >> up);
    return number_from_int(value >> 63 ? 0 - value : value, (int)(value >> 63));
}

static uint64_t to_int(const ptx_instruction *i, ptx_type to, ptx_type from, number n)
{
    unsigned bits = ptx_type_bits(to);
    if (n.kind == NUMBER_NAN) return bits < 64 && from != TYPE_F64 ? 0 : is_signed(to) ? ~0ull << (bits - 1) : 1ull << (bits - 1);
    return number_to_int(number_round(n, i->modifier[MOD_ROUND]), bits, is_signed(to));
}

static uint64_t to_float(const ptx_instruction *i, const format *f, int f32, number n)
{
    int rounding = i->modifier[MOD_ROUND], sat = i->modifier[MOD_SAT];
    if (rounding >= ROUND_RNI) n = number_round(n, rounding);
    if (!rounding || rounding >= ROUND_RNI) rounding = ROUND_RN;
    if (i->modifier[MOD_FTZ] && f32 && number_is_tiny(f, n, rounding)) n.significand = 0;
    uint64_t d = format_encode(f, n, rounding, sat == SAT_FINITE);
    if (sat == SAT_GIVEN) d = float_saturate(f, d);
    return i->modifier[MOD_RELU] ? float_relu(f, d) : d;
}

/* The bits of one element of `to`; of an integer, extended to 64 by its sign. */
static uint64_t convert_element(const ptx_instruction *i, ptx_type to, ptx_type from, uint64_t bits)
{
    const format *f = format_of(to), *g = format_of(from);
    if (!g && !f && !i->modifier[MOD_SAT]) {
        unsigned up = 64 - ptx_type_bits(to), from_up = 64 - ptx_type_bits(from);
        bits = is_signed(from) ? (uint64_t)((int64_t)(bits << from_up) >> from_up) : bits << from_up >> from_up;
        return is_signed(to) ? (uint64_t)((int64_t)(bits << up) >> up) : bits << up >> up;
    }
    number n;
    if (g) {
        bits &= ~0ull >> (64 - g->bits);
        n = format_decode(g, i->modifier[MOD_FTZ] && from == TYPE_F32 ? format_flush(g, bits) : bits);
    } else {
        n = number_of_int(from, bits);
    }
    return f ? to_float(i, f, to == TYPE_F32, n) : to_int(i, to, from, n);
}

static int run_general(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    ptx_type to = i->type[0], from = i->type[1];
    FOR_LANES(mask, lane, {
        uint64_t a = operand_get(w, operand_at(i, 1, 0), lane);
        operand_set(w, &i->operands[0], lane, convert_element(i, to, from, a));
    });
    return 0;
}

/* d, a, b: a becomes the upper half. */
static int run_pack(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    ptx_type to = i->type[0], from = i->type[1];
    unsigned half = ptx_type_bits(to) / 2;
    FOR_LANES(mask, lane, {
        uint64_t a = operand_get(w, operand_at(i, 1, 0), lane), b = operand_get(w, operand_at(i, 2, 0), lane);
        uint64_t high = convert_element(i, to, from, a);
        operand_set(w, &i->operands[0], lane, high << half | convert_element(i, to, from, b));
    });
    return 0;
}

/* A pair to a pair. */
static int run_pair(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    ptx_type to = i->type[0], from = i->type[1];
    unsigned half = ptx_type_bits(to) / 2, from_half = ptx_type_bits(from) / 2;
    FOR_LANES(mask, lane, {
        uint64_t a = operand_get(w, operand_at(i, 1, 0), lane);
        uint64_t high = convert_element(i, to, from, a >> from_half);
        operand_set(w, &i->operands[0], lane, high << half | convert_element(i, to, from, a));
    });
    return 0;
}

/* ---- loops for the common ones: between registers of 32 bits or less, and with one of 64 */

#define LOOP(name, to_type, to_slot, from_type, from_slot, ...)                                                        \
    static int name(struct warp *w, const ptx_instruction *i, uint32_t mask)                                           \
    {                                                                                                                  \
        to_type *d = to_slot(w, i->operands[0].slot);                                                                  \
        const from_type *a = from_slot(w, operand_at(i, 1, 0)->slot);                                                  \
        LANES(mask, lane, d[lane] = __VA_ARGS__);                                                                 \
        return 0;                                                                                                      \
    }
#define LOOP32(name, ...) LOOP(name, uint32_t, slot32, uint32_t, slot32, __VA_ARGS__)

LOOP32(f32_from_f16, format_f16_to_f32(a[lane]))
LOOP32(f32_from_bf16, a[lane] << 16)
LOOP32(f32_from_f32, a[lane])
LOOP(f64_from_f64, uint64_t, slot64, uint64_t, slot64, a[lane])
LOOP32(f16_from_f32, format_f32_to_f16(a[lane]))
LOOP32(bf16_from_f32, format_f32_to_bf16(a[lane]))
LOOP32(f32_from_s32, format_bits((float)(int32_t)a[lane]))
LOOP32(f32_from_u32, format_bits((float)a[lane]))
LOOP(u64_from_u32, uint64_t, slot64, uint32_t, slot32, a[lane])
LOOP(s64_from_s32, uint64_t, slot64, uint32_t, slot32, (uint64_t)(int64_t)(int32_t)a[lane])
LOOP(u32_from_u64, uint32_t, slot32, uint64_t, slot64, (uint32_t)a[lane])
LOOP(f64_from_f32, uint64_t, slot64, uint32_t, slot32, format_canonical64(format_float(a[lane])))
LOOP(f32_from_f64, uint32_t, slot32, uint64_t, slot64, format_canonical32((float)format_double(a[lane])))

#define PACK_LOOP(name, convert)                                                                                       \
    static int name(struct warp *w, const ptx_instruction *i, uint32_t mask)                                           \
    {                                                                                                                  \
        uint32_t *d = slot32(w, i->operands[0].slot);                                                                  \
        const uint32_t *a = slot32(w, operand_at(i, 1, 0)->slot), *b = slot32(w, operand_at(i, 2, 0)->slot);           \
        LANES(mask, lane, d[lane] = convert(a[lane]) << 16 | convert(b[lane]));                                   \
        return 0;                                                                                                      \
    }
PACK_LOOP(f16x2_from_f32, format_f32_to_f16)
PACK_LOOP(bf16x2_from_f32, format_f32_to_bf16)

/* Integers in registers of up to 32 bits. */
static int int_from_int(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    const ptx_operand *to = &i->operands[0];
    uint32_t *d = slot32(w, to->slot);
    const uint32_t *a = slot32(w, operand_at(i, 1, 0)->slot);
    unsigned from_up = 32 - ptx_type_bits(i->type[1]), to_up = 32 - ptx_type_bits(i->type[0]);
    uint32_t from_sign = is_signed(i->type[1]) ? 1u << 31 >> from_up : 0, to_sign = is_signed(i->type[0]) ? 1u << 31 >> to_up : 0;
    uint32_t from_bits = ~0u >> from_up, to_bits = ~0u >> to_up, kept = ~0u >> (32 - to->bits);
    /* (x ^ sign) - sign extends x by that sign bit; with sign 0 it leaves x. */
    LANES(mask, lane, {
        uint32_t x = ((a[lane] & from_bits) ^ from_sign) - from_sign;
        d[lane] = (((x & to_bits) ^ to_sign) - to_sign) & kept;
    });
    return 0;
}

static const struct {
    uint8_t to, from, rounding, sources;
    ptx_run *run;
} loops[] = {
    {TYPE_F32, TYPE_F16, ROUND_NONE, 1, f32_from_f16},  {TYPE_F32, TYPE_BF16, ROUND_NONE, 1, f32_from_bf16},
    {TYPE_F16, TYPE_F32, ROUND_RN, 1, f16_from_f32},    {TYPE_BF16, TYPE_F32, ROUND_RN, 1, bf16_from_f32},
    {TYPE_F16X2, TYPE_F32, ROUND_RN, 2, f16x2_from_f32}, {TYPE_BF16X2, TYPE_F32, ROUND_RN, 2, bf16x2_from_f32},
    {TYPE_F32, TYPE_S32, ROUND_RN, 1, f32_from_s32},    {TYPE_F32, TYPE_U32, ROUND_RN, 1, f32_from_u32},
    {TYPE_F64, TYPE_F32, ROUND_NONE, 1, f64_from_f32},  {TYPE_F32, TYPE_F64, ROUND_RN, 1, f32_from_f64},
    {TYPE_F32, TYPE_F32, ROUND_NONE, 1, f32_from_f32},  {TYPE_F64, TYPE_F64, ROUND_NONE, 1, f64_from_f64},
    {TYPE_U64, TYPE_U32, ROUND_NONE, 1, u64_from_u32},  {TYPE_S64, TYPE_U32, ROUND_NONE, 1, u64_from_u32},
    {TYPE_S64, TYPE_S32, ROUND_NONE, 1, s64_from_s32},  {TYPE_U64, TYPE_S32, ROUND_NONE, 1, s64_from_s32},
    {TYPE_U32, TYPE_U64, ROUND_NONE, 1, u32_from_u64},  {TYPE_U32, TYPE_S64, ROUND_NONE, 1, u32_from_u64},
    {TYPE_S32, TYPE_U64, ROUND_NONE, 1, u32_from_u64},  {TYPE_S32, TYPE_S64, ROUND_NONE, 1, u32_from_u64},
};

/* ---- what may be written */

/* Roundings (sets of 1 << ROUND_*; bit 0: none) and the modifiers that a pair of types takes. */
typedef struct forms {
    uint16_t roundings;
    uint8_t sources, ftz, sat;
    uint8_t satfinite; /* 1: may be given, 2: must */
    uint8_t relu;
} forms;

#define NONE (1u << ROUND_NONE)
#define FLOAT_ROUNDINGS (1u << ROUND_RN | 1u << ROUND_RZ | 1u << ROUND_RM | 1u << ROUND_RP)
#define INT_ROUNDINGS (1u << ROUND_RNI | 1u << ROUND_RZI | 1u << ROUND_RMI | 1u << ROUND_RPI)
#define NEAREST (1u << ROUND_RN)
#define NEAREST_OR_ZERO (NEAREST | 1u << ROUND_RZ)

/* Whether every value of `from` is one of `to`; then saturation means nothing, and PTX refuses it. */
static int holds_all(ptx_type to, ptx_type from)
{
    unsigned room = ptx_type_bits(to) - (is_signed(to) ? 1u : 0u), need = ptx_type_bits(from) - (is_signed(from) ? 1u : 0u);
    return room >= need && (is_signed(to) || !is_signed(from));
}

static forms forms_of_ints(ptx_type to, ptx_type from)
{
    uint8_t ftz = from == TYPE_F32 || to == TYPE_F32;
    int bytes = IN(T_BYTES, to) || IN(T_BYTES, from);
    if (IN(SET_INT, to) && IN(SET_INT, from)) return (forms){.roundings = NONE, .sources = 1, .sat = !holds_all(to, from)};
    if (to == TYPE_BF16 || from == TYPE_BF16) {
        if (bytes) return (forms){0};
        return (forms){.roundings = to == TYPE_BF16 ? FLOAT_ROUNDINGS : INT_ROUNDINGS, .sources = 1};
    }
    return (forms){.roundings = IN(SET_INT, to) ? INT_ROUNDINGS : FLOAT_ROUNDINGS, .sources = 1, .ftz = ftz, .sat = 1};
}

static forms forms_of_floats(ptx_type to, ptx_type from)
{
    int bf16 = to == TYPE_BF16 || from == TYPE_BF16;
    forms f = {.sources = 1, .ftz = from == TYPE_F32 || to == TYPE_F32, .sat = !bf16};
    if (to == from) f.roundings = NONE | INT_ROUNDINGS;
    else if (to == TYPE_F64 || (to == TYPE_F32 && from != TYPE_F64)) f.roundings = NONE;
    else f.roundings = FLOAT_ROUNDINGS;
    return f;
}

static forms forms_of(ptx_type to, ptx_type from)
{
    if ((IN(SET_INT, to) && IN(SET_INT | SET_FLOAT, from)) || (IN(SET_FLOAT, to) && IN(SET_INT, from)))
        return forms_of_ints(to, from);
    if (IN(SET_FLOAT, to) && IN(SET_FLOAT, from)) return forms_of_floats(to, from);
    if (IN(TYPE_BIT(F16X2) | TYPE_BIT(BF16X2), to) && from == TYPE_F32)
        return (forms){.roundings = NEAREST_OR_ZERO, .sources = 2, .satfinite = 1, .relu = 1};
    if (to == TYPE_TF32 && from == TYPE_F32)
        return (forms){.roundings = NEAREST_OR_ZERO | 1u << ROUND_RNA, .sources = 1, .satfinite = 1, .relu = 1};
    if (IN(SET_FP8X2, to) && from == TYPE_F32) return (forms){.roundings = NEAREST, .sources = 2, .satfinite = 2, .relu = 1};
    if (IN(SET_FP8X2, to) && from == TYPE_F16X2) return (forms){.roundings = NEAREST, .sources = 1, .satfinite = 2, .relu = 1};
    if (to == TYPE_F16X2 && IN(SET_FP8X2, from)) return (forms){.roundings = NEAREST, .sources = 1, .relu = 1};
    return (forms){0};
}

static int modifiers_fit(const ptx_instruction *i, ptx_type to, ptx_type from)
{
    const uint8_t *m = i->modifier;
    forms f = forms_of(to, from);
    if (!(f.roundings >> m[MOD_ROUND] & 1)) return 0;
    /* f16 and bf16 take .relu and .satfinite from f32, alone. */
    if (IN(TYPE_BIT(F16) | TYPE_BIT(BF16), to) && from == TYPE_F32 && !m[MOD_FTZ] && m[MOD_ROUND] <= ROUND_RZ)
        f.relu = m[MOD_SAT] != SAT_GIVEN, f.satfinite = 1;
    if (to == TYPE_TF32 && m[MOD_ROUND] == ROUND_RNA) f.relu = 0;
    if ((m[MOD_FTZ] && !f.ftz) || (m[MOD_RELU] && !f.relu) || (m[MOD_SAT] == SAT_GIVEN && !f.sat)) return 0;
    return m[MOD_SAT] == SAT_FINITE ? f.satfinite != 0 : f.satfinite != 2;
}

/* An integer may lie in a wider register; a float may not. */
static int int_or_float_fits(const ptx_instruction *i, unsigned group, ptx_type type)
{
    unsigned bits = ptx_type_bits(type);
    if (!IN(SET_INT, type)) return float_operand(i, group, bits);
    const ptx_operand *o = operand_at(i, group, 0);
    return o->kind == OPERAND_REGISTER && o->bits > bits ? float_operand(i, group, o->bits) : float_operand(i, group, bits);
}

static ptx_run *loop_of(const ptx_instruction *i, ptx_type to, ptx_type from)
{
    const uint8_t *m = i->modifier;
    unsigned to_bits = i->operands[0].bits, from_bits = operand_at(i, 1, 0)->bits;
    if (m[MOD_FTZ] || m[MOD_SAT] || m[MOD_RELU]) return NULL;
    for (size_t k = 0; k < sizeof loops / sizeof *loops; k++) {
        if (loops[k].to != to || loops[k].from != from || loops[k].rounding != m[MOD_ROUND]) continue;
        int exact = to_bits == ptx_type_bits(to) || IN(TYPE_BIT(F16X2) | TYPE_BIT(BF16X2), to);
        if (exact && (from_bits == 64) == (ptx_type_bits(from) == 64)) return loops[k].run;
    }
    return IN(SET_INT, to) && IN(SET_INT, from) && to_bits <= 32 && from_bits <= 32 ? int_from_int : NULL;
}

ptx_run *BIND(cvt)(const ptx_instruction *i)
{
    if (i->types != 2) return NULL;
    ptx_type to = i->type[0], from = i->type[1];
    forms f = forms_of(to, from);
    if (!f.sources || i->groups != f.sources + 1u || !modifiers_fit(i, to, from) || !int_or_float_fits(i, 0, to)) return NULL;
    for (unsigned group = 1; group <= f.sources; group++)
        if (!int_or_float_fits(i, group, from)) return NULL;
    ptx_run *loop = loop_of(i, to, from);
    if (loop) return loop;
    if (f.sources == 2) return run_pack;
    return ptx_type_bits(to) / 2 == (format_of(to) ? format_of(to)->bits : 0) ? run_pair : run_general;
}
