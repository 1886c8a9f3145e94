/* What the ops_*.c of integers, bits, comparisons and moves share: loops over lanes, macros that make a function of an
 * expression, and the questions that bind functions ask about modifiers and operands.
 *
 * A destination may be the same slot as a source, but never overlaps one otherwise, so loops over lanes may always be
 * vectorised. */
#ifndef SWGPU_LANES_H
#define SWGPU_LANES_H

#include "exec.h"
#include "opcodes.h"
#include "variant.h"

#define DECLARE(name, pattern, types, count, modifiers, class, sync) extern ptx_bind BIND(name);
PTX_OPCODES(DECLARE)
#undef DECLARE

/* FOR_LANES of exec.h, with the promise that no iteration depends on another. */
#define LANES(mask, lane, ...)                                                                                         \
    do {                                                                                                               \
        if ((mask) == FULL_MASK) {                                                                                     \
            _Pragma("GCC ivdep") for (unsigned lane = 0; lane < PTX_LANES; lane++) { __VA_ARGS__; }                    \
        } else {                                                                                                       \
            for (uint32_t rest_ = (mask); rest_; rest_ &= rest_ - 1) {                                                 \
                unsigned lane = (unsigned)__builtin_ctz(rest_);                                                        \
                __VA_ARGS__;                                                                                           \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

/* Slots of a plain operand as an array of uint32_t or uint64_t. */
#define SLOT(type, group) ((type *)(void *)slot32(w, operand_at(i, group, 0)->slot))

/* name: a ptx_run that stores `expression` of a (b, c) in each lane. An operand is described by the slot's element and
 * the value's type within; the destination by the element and the type that the result is cut to (unsigned, so that
 * 16-bit slots keep their upper bits 0). */
#define UNARY(name, DS, DV, AS, AV, ...)                                                                               \
    static int name(warp *w, const ptx_instruction *i, uint32_t mask)                                                  \
    {                                                                                                                  \
        DS *to = SLOT(DS, 0);                                                                                          \
        const AS *from_a = SLOT(AS, 1);                                                                                \
        LANES(mask, lane, AV a = (AV)from_a[lane]; to[lane] = (DS)(DV)(__VA_ARGS__));                                  \
        return 0;                                                                                                      \
    }
#define BINARY(name, DS, DV, AS, AV, ...)                                                                              \
    static int name(warp *w, const ptx_instruction *i, uint32_t mask)                                                  \
    {                                                                                                                  \
        DS *to = SLOT(DS, 0);                                                                                          \
        const AS *from_a = SLOT(AS, 1), *from_b = SLOT(AS, 2);                                                         \
        LANES(mask, lane, AV a = (AV)from_a[lane]; AV b = (AV)from_b[lane]; to[lane] = (DS)(DV)(__VA_ARGS__));         \
        return 0;                                                                                                      \
    }
#define TERNARY(name, DS, DV, AS, AV, CS, CV, ...)                                                                     \
    static int name(warp *w, const ptx_instruction *i, uint32_t mask)                                                  \
    {                                                                                                                  \
        DS *to = SLOT(DS, 0);                                                                                          \
        const AS *from_a = SLOT(AS, 1), *from_b = SLOT(AS, 2);                                                         \
        const CS *from_c = SLOT(CS, 3);                                                                                \
        LANES(mask, lane, AV a = (AV)from_a[lane]; AV b = (AV)from_b[lane]; CV c = (CV)from_c[lane];                   \
              to[lane] = (DS)(DV)(__VA_ARGS__));                                                                       \
        return 0;                                                                                                      \
    }

/* Entries of a table indexed by ptx_type, for functions that care about the sign or only about the width. */
#define BY_TYPE(name)                                                                                                  \
    [TYPE_U16] = name##_u16, [TYPE_U32] = name##_u32, [TYPE_U64] = name##_u64, [TYPE_S16] = name##_s16,                \
    [TYPE_S32] = name##_s32, [TYPE_S64] = name##_s64
#define BY_WIDTH(name)                                                                                                 \
    [TYPE_U16] = name##_b16, [TYPE_U32] = name##_b32, [TYPE_U64] = name##_b64, [TYPE_S16] = name##_b16,                \
    [TYPE_S32] = name##_b32, [TYPE_S64] = name##_b64
#define BY_BITS(name) [TYPE_B16] = name##_b16, [TYPE_B32] = name##_b32, [TYPE_B64] = name##_b64

/* Modifiers and the types of T_FLOAT. */
static inline int only_modifiers(const ptx_instruction *i, uint64_t allowed)
{
    for (unsigned category = 0; category < MOD_CATEGORIES; category++)
        if (i->modifier[category] && !(allowed >> category & 1)) return 0;
    return 1;
}

static inline int is_floating(unsigned type) { return (T_FLOAT >> type & 1) != 0; }

/* Bits of the value types that these files know; 0 for others. */
static inline unsigned value_bits(unsigned type)
{
    static const uint8_t bits[TYPE_COUNT] = {
        [TYPE_PRED] = 1, [TYPE_B16] = 16, [TYPE_B32] = 32, [TYPE_B64] = 64, [TYPE_U16] = 16, [TYPE_U32] = 32, [TYPE_U64] = 64,
        [TYPE_S16] = 16, [TYPE_S32] = 32, [TYPE_S64] = 64, [TYPE_F16] = 16, [TYPE_F16X2] = 32, [TYPE_BF16] = 16,
        [TYPE_BF16X2] = 32, [TYPE_F32] = 32, [TYPE_F64] = 64, [TYPE_U16X2] = 32, [TYPE_S16X2] = 32};
    return bits[type];
}

/* Whether an operand can be read as values of this width. */
static inline int operand_fits(const ptx_operand *o, unsigned bits)
{
    return (o->kind == OPERAND_REGISTER || o->kind == OPERAND_IMMEDIATE) && o->bits == bits && (!o->negate || bits == 1);
}

/* Immediates and special registers are read-only, and only some results may go to the sink. */
static inline int destination_fits(const ptx_operand *o, unsigned bits)
{
    if (o->kind == OPERAND_REGISTER && o->slot < SPECIAL_COUNT) return 0;
    return o->kind != OPERAND_IMMEDIATE && !o->negate && operand_fits(o, bits);
}
static inline int destination_or_sink_fits(const ptx_operand *o, unsigned bits)
{
    return o->kind == OPERAND_SINK || destination_fits(o, bits);
}

/* Whether there are exactly these plain operands: FIT(i, 64, 32, 32). The first must be something that can be written. */
#define FIT(i, ...) operands_fit(i, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))
static inline int operands_fit(const ptx_instruction *i, const uint8_t *bits, size_t groups)
{
    if (i->groups != groups) return 0;
    for (unsigned g = 0; g < groups; g++) {
        if (i->count[g] != 1) return 0;
        const ptx_operand *o = operand_at(i, g, 0);
        if (g == 0 && !destination_fits(o, bits[0])) return 0;
        if (!operand_fits(o, bits[g])) return 0;
    }
    return 1;
}

/* `groups` plain operands, all of the first type's width. */
static inline int all_fit(const ptx_instruction *i, unsigned groups)
{
    uint8_t bits[PTX_MAX_GROUPS];
    memset(bits, (int)value_bits(i->type[0]), sizeof bits);
    return operands_fit(i, bits, groups);
}

/* ---- predicates: masks of lanes */

/* Lanes outside the mask keep theirs. */
static inline void predicate_store(const warp *w, const ptx_operand *o, uint32_t mask, uint32_t lanes)
{
    uint32_t *to = slot32(w, o->slot);
    to[0] = (to[0] & ~mask) | (lanes & mask);
}

/* 1 << lane, as a table: SSE2 has no shift by a vector. */
static const uint32_t lane_bit[PTX_LANES] __attribute__((unused)) = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,  1u << 8,  1u << 9,  1u << 10,
    1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21,
    1u << 22, 1u << 23, 1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

#endif
