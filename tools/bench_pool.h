/* Operands of measured products: device memory full of random numbers, how it is dealt out, and whether a result is right.
 *
 * Inputs are uniform in [-1, 1), rounded to the type: zeros would let a GPU run cooler and faster than real data. They repeat
 * with a prime period, so that the host knows each of them without reading them back. */
#ifndef JG_TOOLS_BENCH_POOL_H
#define JG_TOOLS_BENCH_POOL_H

#include "bench_gpu.h"
#include "problem.h"

/* How the operands of a problem lie in a pool: `sets` of A and B beside each other, and as many C elsewhere. */
typedef struct bench_layout {
    problem problem;     /* canonical */
    size_t a_bytes, b_bytes, c_bytes; /* of one set, rounded up to 256 */
    unsigned sets;
} bench_layout;

/* rotated_bytes: sets are added until all of them together take at least so much; 0: one set. Errors: those of a bad problem. */
jg_status bench_layout_make(const jg_problem *p, size_t rotated_bytes, unsigned most_sets, bench_layout *out);
size_t bench_layout_in_bytes(const bench_layout *l);
size_t bench_layout_out_bytes(const bench_layout *l);

/* What one product computes and moves: 2 m n k a batch item; A, B and C once each (a shared matrix once in all). */
double bench_layout_flops(const bench_layout *l);
double bench_layout_bytes(const bench_layout *l);

/* Zero-initialise. */
typedef struct bench_pool {
    const bench_gpu *gpu;
    CUdeviceptr in, out;
    size_t in_bytes, out_bytes;
    float *pattern;      /* the numbers, rounded to `type` */
    jg_type type;        /* what `in` is filled with */
} bench_pool;

/* Allocates. Errors: NO_MEMORY, DEVICE. */
jg_status bench_pool_open(const bench_gpu *gpu, size_t in_bytes, size_t out_bytes, bench_pool *pool);
void bench_pool_close(bench_pool *pool);

/* Fills the inputs with random numbers of a type, if they are not yet. Blocks. */
jg_status bench_pool_fill(bench_pool *pool, jg_type type);

/* The operands of call number `index`: sets in turn. */
jg_operands bench_pool_operands(const bench_pool *pool, const bench_layout *l, unsigned index, CUstream stream);

/* Makes C of set 0 NaN everywhere, to see that a product writes all of it. */
jg_status bench_pool_poison(const bench_pool *pool, const bench_layout *l);

/* C of set 0 on the host: free() it. Null with a text for jg_last_error if that fails. */
void *bench_pool_take_c(const bench_pool *pool, const bench_layout *l);

/* The largest error of C among 64 elements (the corners, and others by chance), over what is allowed: max(k, 8) 2^-23 sum |a b|,
 * and the rounding to the type of C. The reference is computed in double. Above 1, or infinite where there is a NaN: wrong. */
double bench_pool_check(const bench_pool *pool, const bench_layout *l, const void *c);

/* The largest difference of all elements of C and another's result of the same inputs, over what is allowed: k 2^-20, and four
 * roundings to the type of C. Both round in orders of their own; of random inputs the difference is about a tenth of that, while
 * a product too few makes 0.3. Above 1 one of them is off: where they differ so, up to 1000 elements of C are held against the
 * reference as in bench_pool_check, and *own is raised to the largest error found. */
double bench_pool_compare(const bench_pool *pool, const bench_layout *l, const void *c, const void *other, double *own);

#endif
