/* What becomes of finished sums on the cpu device: alpha, beta, all that is fused in, and the way into C. */
#ifndef JG_CPU_EPILOGUE_H
#define JG_CPU_EPILOGUE_H

#include "operands.h"

enum { CPU_ROW = 64 }; /* elements in one call, at most */

typedef struct cpu_epilogue {
    const problem *p;
    void *c;
    float alpha, beta;
    int is_exact; /* sums, which are integers, go into C as integers (cpu_epilogue_integers), without ever being floats */
    fused_operands fused;
} cpu_epilogue;

cpu_epilogue cpu_epilogue_of(const problem *p, const operands *o);

/* Finishes `count` sums of row i from column j on, and writes them to C. What was in x is lost. */
void cpu_epilogue_row(const cpu_epilogue *e, int64_t item, int64_t i, int64_t j, int count, float *x);
void cpu_epilogue_integers(const cpu_epilogue *e, int64_t item, int64_t i, int64_t j, int count, const int32_t *sums);

#endif
