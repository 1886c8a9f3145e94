/* What the floating-point instructions share beside lanes.h: the checks of their operands, and the steps that follow an
 * operation (.ftz, .sat, .relu). */
#ifndef SWGPU_FLOAT_LANES_H
#define SWGPU_FLOAT_LANES_H

#include "formats.h"
#include "lanes.h"

/* A plain operand of a width; group 0 is the destination. */
static inline int float_operand(const ptx_instruction *i, unsigned group, unsigned bits)
{
    const ptx_operand *o = operand_at(i, group, 0);
    return i->count[group] == 1 && (group ? operand_fits(o, bits) : destination_fits(o, bits));
}

/* A destination and so many sources, all of one width. */
static inline int float_operands(const ptx_instruction *i, unsigned sources, unsigned bits)
{
    if (i->groups != sources + 1) return 0;
    for (unsigned group = 0; group <= sources; group++)
        if (!float_operand(i, group, bits)) return 0;
    return 1;
}

static inline uint32_t float_flush32(uint32_t bits)
{
    return bits & 0x7f800000 ? bits : bits & 0x80000000;
}

/* To [0, 1]; NaN and -0 become +0. */
static inline uint32_t float_saturate32(uint32_t bits)
{
    uint32_t low = bits > 0x7f800000 ? 0 : bits; /* NaN and all negative ones */
    return low > 0x3f800000 ? 0x3f800000 : low;
}

static inline uint64_t float_saturate(const format *f, uint64_t bits)
{
    uint64_t one = ((1ull << (f->exponent_bits - 1)) - 1) << f->fraction_bits << f->low_bits;
    uint64_t infinity = (f->largest + 1) << f->low_bits;
    if (bits > infinity) return 0;
    return bits > one ? one : bits;
}

/* Negative numbers and -0 become +0, NaN stays. */
static inline uint64_t float_relu(const format *f, uint64_t bits)
{
    return bits >> (f->bits - 1) & 1 ? 0 : bits;
}

#endif
