/* Problem sizes that were never seen: a seed in, distinct pseudo-random problems out.
 *
 * The same seed gives the same list on every machine. m, n and k are log-uniform, so that small sizes are as frequent as a
 * pipeline's; types alternate between f16 and f32, all four pairs of ops occur, and a quarter each of the sizes is of
 * multiples of 8 and of odd numbers. No two problems share m, n and k, so none is a hit because of another. */
#ifndef JG_TOOLS_BENCH_SIZES_H
#define JG_TOOLS_BENCH_SIZES_H

#include "jitgemm.h"

#define BENCH_SIZES_MAX_DIMENSION 2048

/* Treat as opaque; freed with bench_sizes_free. */
typedef struct bench_sizes {
    uint64_t state;
    int64_t max_dimension;
    uint64_t *seen;          /* open-addressed; 0: free */
    size_t capacity, count, drawn;
} bench_sizes;

/* Dimensions are at most max_dimension, which is from 16 to BENCH_SIZES_MAX_DIMENSION. */
void bench_sizes_init(bench_sizes *s, uint64_t seed, int64_t max_dimension);

/* The next problem. Returns 0, or -1 if memory or the sizes have run out. */
int bench_sizes_draw(bench_sizes *s, jg_problem *problem);

/* One whose own kernel is worth compiling, for keeping the worker at work: square-like and of multiples of 8. */
int bench_sizes_draw_rewarding(bench_sizes *s, jg_problem *problem);

void bench_sizes_free(bench_sizes *s);

#endif
