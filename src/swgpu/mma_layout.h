/* Where the elements of mma's matrices lie in the registers of a warp.
 *
 * One rule holds for all shapes here. Lane l is in group l / 4, at place l % 4. A register holds `per` elements: as many
 * as fit 32 bits, one of f64. Taken lane after lane, lowest bits first, a register's elements are a block of 8 rows and
 * 4 * per columns, row by row. The matrices are made of such blocks:
 *   A (m x k, row-major): down first, then right; with m = 8 only right
 *   B (k x n, as n rows of k, "col"): from left to right
 *   C and D (m x n) of 32 or 64 bits: a pair of registers makes one block, even columns and odd columns; of 16 bits: one
 *   register makes one block; blocks go down
 * A shape is a row of the table. */
#ifndef SWGPU_MMA_LAYOUT_H
#define SWGPU_MMA_LAYOUT_H

#include "opcodes.h"

#define MMA_N 8
#define MMA_MAX_M 16
#define MMA_MAX_K 64

typedef struct mma_shape {
    uint8_t shape, m, k, bits; /* SHAPE_*; n is 8; bits of an element of A and B in a register */
    uint64_t multiplicands;    /* types of A and B: any two of the set */
    uint64_t accumulators;     /* types of C and D: the same one */
} mma_shape;

#define MMA_FP8 (TYPE_BIT(E4M3) | TYPE_BIT(E5M2))
#define MMA_INT8 (TYPE_BIT(S8) | TYPE_BIT(U8))
#define MMA_INT4 (TYPE_BIT(S4) | TYPE_BIT(U4))

static const mma_shape mma_shapes[] = {
    {SHAPE_M16N8K8, 16, 8, 16, TYPE_BIT(F16), TYPE_BIT(F16) | TYPE_BIT(F32)},
    {SHAPE_M16N8K16, 16, 16, 16, TYPE_BIT(F16), TYPE_BIT(F16) | TYPE_BIT(F32)},
    {SHAPE_M16N8K8, 16, 8, 16, TYPE_BIT(BF16), TYPE_BIT(F32)},
    {SHAPE_M16N8K16, 16, 16, 16, TYPE_BIT(BF16), TYPE_BIT(F32)},
    {SHAPE_M16N8K4, 16, 4, 32, TYPE_BIT(TF32), TYPE_BIT(F32)},
    {SHAPE_M16N8K8, 16, 8, 32, TYPE_BIT(TF32), TYPE_BIT(F32)},
    {SHAPE_M16N8K16, 16, 16, 8, MMA_FP8, TYPE_BIT(F16) | TYPE_BIT(F32)},
    {SHAPE_M16N8K32, 16, 32, 8, MMA_FP8, TYPE_BIT(F16) | TYPE_BIT(F32)},
    {SHAPE_M8N8K16, 8, 16, 8, MMA_INT8, TYPE_BIT(S32)},
    {SHAPE_M16N8K16, 16, 16, 8, MMA_INT8, TYPE_BIT(S32)},
    {SHAPE_M16N8K32, 16, 32, 8, MMA_INT8, TYPE_BIT(S32)},
    {SHAPE_M8N8K32, 8, 32, 4, MMA_INT4, TYPE_BIT(S32)},
    {SHAPE_M16N8K32, 16, 32, 4, MMA_INT4, TYPE_BIT(S32)},
    {SHAPE_M16N8K64, 16, 64, 4, MMA_INT4, TYPE_BIT(S32)},
    {SHAPE_M8N8K4, 8, 4, 64, TYPE_BIT(F64), TYPE_BIT(F64)},
    {SHAPE_M16N8K4, 16, 4, 64, TYPE_BIT(F64), TYPE_BIT(F64)},
    {SHAPE_M16N8K8, 16, 8, 64, TYPE_BIT(F64), TYPE_BIT(F64)},
    {SHAPE_M16N8K16, 16, 16, 64, TYPE_BIT(F64), TYPE_BIT(F64)},
};

/* The row of an instruction's shape and types, or null. */
static inline const mma_shape *mma_find(unsigned shape, ptx_type a, ptx_type b, ptx_type accumulator)
{
    for (size_t k = 0; k < sizeof mma_shapes / sizeof *mma_shapes; k++) {
        const mma_shape *s = &mma_shapes[k];
        if (s->shape == shape && s->multiplicands >> a & s->multiplicands >> b & s->accumulators >> accumulator & 1) return s;
    }
    return NULL;
}

/* Elements of A and B in one register. */
static inline unsigned mma_per_register(const mma_shape *s)
{
    return s->bits == 64 ? 1 : 32u / s->bits;
}

/* Registers of each lane: blocks of A, of B, and registers of C or D. */
static inline unsigned mma_a_registers(const mma_shape *s)
{
    return (unsigned)s->m * s->k / (32 * mma_per_register(s));
}

static inline unsigned mma_b_registers(const mma_shape *s)
{
    return MMA_N * s->k / (32 * mma_per_register(s));
}

static inline unsigned mma_c_registers(const mma_shape *s, ptx_type accumulator)
{
    return s->m / (accumulator == TYPE_F16 ? 8u : 4u);
}

/* The first row and column of the block that is A's register r. */
static inline unsigned mma_a_row(const mma_shape *s, unsigned r)
{
    return s->m == 8 ? 0 : r % 2 * 8;
}

static inline unsigned mma_a_column(const mma_shape *s, unsigned r)
{
    return (s->m == 8 ? r : r / 2) * 4 * mma_per_register(s);
}

#endif
