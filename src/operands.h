/* From the caller's jg_operands to canonical ones, beside the canonical problem (problem.h). */
#ifndef JG_OPERANDS_H
#define JG_OPERANDS_H

#include "problem.h"

typedef struct operands {
    const void *a, *b;
    void *c;
    float alpha, beta;
    const char *name_a, *name_b; /* what the caller calls them */
    const jg_operands *given;
    int swapped;                 /* as the caller's problem says; a problem in a key no longer does */
} operands;

/* What the epilogue and grouped weights use, in canonical order: where the problem is swapped, M and N have changed places. */
typedef struct fused_operands {
    const float *scale, *scale_m, *scale_n;
    const void *bias_m, *bias_n, *residual;
    const void *group_scales;
    const int8_t *group_zeros;
    float clamp_low, clamp_high, out_scale, out_zero;
} fused_operands;

fused_operands operands_fused(const operands *o);

/* Puts A and B in the problem's canonical order and fills in alpha = 1 and beta = 0 where they are null. */
operands operands_canonicalise(const problem *p, const jg_operands *in);

/* Nonzero if A and B are read at all. */
int operands_read_ab(const operands *o);

/* The largest power of two, up to 16, that divides an address. Null counts as aligned: it is not read. */
unsigned operands_alignment(const void *pointer);

/* Checks that what is read or written is there and aligned: A, B and C to so many bytes, what is fused in to its elements.
 * Errors: NULL, MISALIGNED, VALUE (clamp_low above clamp_high), naming the member. */
jg_status operands_check(const problem *p, const operands *o, unsigned need_a, unsigned need_b, unsigned need_c);

#endif
