/* The suite "misalign": what rows and addresses that do not begin at multiples of 16 bytes cost. Each of its sizes is measured
 * in four layouts. */
#ifndef JG_TOOLS_BENCH_MISALIGN_H
#define JG_TOOLS_BENCH_MISALIGN_H

#include "sizelist.h"

#define BENCH_MISALIGN "misalign"

typedef enum bench_misalign {
    BENCH_ALIGNED,  /* as it is: densely packed */
    BENCH_ODD_LD,   /* leading dimensions longer by one element (two of s4, whose rows begin at bytes) */
    BENCH_OFFSET,   /* addresses one element further (two of s4) */
    BENCH_PADDED,   /* leading dimensions as jg_good_ld advises for rows that are longer by one element */
    BENCH_MISALIGNS
} bench_misalign;

/* Adds each problem of `sizes` to `out` in each layout: of those beside each other that are one size, in several types, all in
 * the first layout, then all in the second ... Returns 0, or -1 if memory ran out. */
int bench_misalign_expand(const sizelist *sizes, sizelist *out);

/* Which layout a problem of the suite has, and its name for readers. */
bench_misalign bench_misalign_of(const jg_problem *p);
const char *bench_misalign_name(bench_misalign layout);

/* The aligned problem that was measured last; zero-initialise. */
typedef struct bench_misalign_base {
    jg_problem problem;
    double us;
} bench_misalign_base;

/* How many times as long as the aligned layout of the same size and kind a problem takes; NaN if either is unknown. Problems come
 * in the order of bench_misalign_expand, of one kind after another; us: NaN if it was not measured. */
double bench_misalign_cost(bench_misalign_base *base, const jg_problem *p, double us);

#endif
