/* From the caller's jg_operands to canonical ones, beside the canonical problem (problem.h). */
#ifndef JG_OPERANDS_H
#define JG_OPERANDS_H

#include "problem.h"

typedef struct operands {
    const void *a, *b;
    void *c;
    float alpha, beta;
    const char *name_a, *name_b; /* what the caller calls them */
} operands;

/* Puts A and B in the problem's canonical order and fills in alpha = 1 and beta = 0 where they are null. */
operands operands_canonicalise(const problem *p, const jg_operands *in);

/* Nonzero if A and B are read at all. */
int operands_read_ab(const operands *o);

/* The largest power of two, up to 16, that divides an address. Null counts as aligned: it is not read. */
unsigned operands_alignment(const void *pointer);

/* Checks that what is read or written is there and aligned to so many bytes. Errors: NULL, MISALIGNED, naming the member. */
jg_status operands_check(const operands *o, unsigned need_a, unsigned need_b, unsigned need_c);

#endif
