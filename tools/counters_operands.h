/* The data of one product in device memory: a problem in; filled A and B, what is fused in, and an untouched C out. */
#ifndef JG_TOOLS_COUNTERS_OPERANDS_H
#define JG_TOOLS_COUNTERS_OPERANDS_H

#include "jitgemm.h"

#define COUNTERS_BLOCKS 11 /* A, B, C, and the eight pointers of what may be fused in */

/* Zero-initialise. */
typedef struct counters_operands {
    void *blocks[COUNTERS_BLOCKS]; /* allocations */
    jg_operands data;
} counters_operands;

/* Allocates what the product reads and writes, each ending where its last element ends, so that an access beyond it is one beyond
 * the allocation. Floats get numbers of [-1, 1), integers all of their range, the same in every run; C is left as it is, so that
 * reading it is found. Addresses of A, B and C are multiples of what the problem promises and not of more, up to 16 bytes; of
 * what is fused in, of which nothing is promised, multiples of an element. The problem is one that jg_plan_create took.
 * On error the operands can be freed all the same. */
jg_status counters_operands_make(jg_context *context, const jg_problem *problem, counters_operands *o);

/* Returns the first error. */
jg_status counters_operands_free(jg_context *context, counters_operands *o);

#endif
