/* How the operands of a measured product lie in memory: a problem in; sizes, offsets, and what random numbers come to, out. */
#ifndef JG_TOOLS_BENCH_LAYOUT_H
#define JG_TOOLS_BENCH_LAYOUT_H

#include "problem.h"

/* What is fused into a product, by the canonical problem's M and N. */
typedef enum bench_extra_kind {
    BENCH_SCALE, BENCH_SCALE_M, BENCH_SCALE_N, BENCH_BIAS_M, BENCH_BIAS_N, BENCH_RESIDUAL, BENCH_GROUP_SCALES, BENCH_GROUP_ZEROS,
    BENCH_EXTRAS
} bench_extra_kind;

typedef struct bench_extra {
    size_t at;           /* bytes from the start of a set's extras */
    size_t count;        /* elements; 0: the problem has none */
    jg_type type;
} bench_extra;

/* `sets` of A beside each other, then as many B; elsewhere as many C, and as many blocks of extras. */
typedef struct bench_layout {
    problem problem;     /* canonical */
    size_t a_bytes, b_bytes, c_bytes, extra_bytes; /* of one set, rounded up to 256 */
    /* Where in it a matrix begins: at an address that is a multiple of what the problem promises and of no more, up to 16. */
    size_t a_offset, b_offset, c_offset;
    bench_extra extras[BENCH_EXTRAS];
    float alpha;         /* a power of two; not 1 where C could not hold the results otherwise */
    double unit;         /* of a product of two elements, times alpha; 1 where both are in [-1, 1) */
    double spread;       /* of the results before anything is fused in, roughly */
    unsigned sets;
} bench_layout;

/* rotated_bytes: sets are added until all of them together take at least so much; 0: one set. Errors: those of a bad problem. */
jg_status bench_layout_make(const jg_problem *p, size_t rotated_bytes, unsigned most_sets, bench_layout *out);
size_t bench_layout_set_bytes(const bench_layout *l);
size_t bench_layout_in_bytes(const bench_layout *l);    /* of all A and B */
size_t bench_layout_out_bytes(const bench_layout *l);   /* of all C */
size_t bench_layout_extra_bytes(const bench_layout *l); /* of all extras */

/* What one product computes and moves: 2 m n k a batch item; A, B, C and what is fused in once each (a shared matrix once in
 * all). */
double bench_layout_flops(const bench_layout *l);
double bench_layout_bytes(const bench_layout *l);

/* Element `index` of an extra, as its type has it; the same in every set. */
float bench_extra_value(const bench_layout *l, bench_extra_kind kind, size_t index);

/* Fills in host memory for the extras of one set. */
void bench_extra_fill(const bench_layout *l, void *block);

/* splitmix64 (G. Steele, D. Lea, C. Flood, 2014): any start gives a good series. */
static inline uint64_t bench_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* In [0, 1), a multiple of 2^-24. */
static inline double bench_random_uniform(uint64_t *state)
{
    return (double)(bench_random(state) >> 40) * 0x1p-24;
}

#endif
