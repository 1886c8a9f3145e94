/* Operands of measured products: device memory full of random numbers, how it is dealt out, and whether a result is right.
 *
 * A and B are random in the range of their type: floats uniform in [-1, 1), rounded; integers in all of their range. Zeros would
 * let a GPU run cooler and faster than real data. They repeat with a prime period, so that the host knows each of them without
 * reading them back. */
#ifndef JG_TOOLS_BENCH_POOL_H
#define JG_TOOLS_BENCH_POOL_H

#include "bench_gpu.h"
#include "bench_layout.h"

#define BENCH_POOL_PERIOD 1048573

/* Zero-initialise. */
typedef struct bench_pool {
    const bench_gpu *gpu;
    CUdeviceptr in, out, extra;
    size_t in_bytes, out_bytes, extra_bytes;
    float *patterns[2];  /* the numbers of A, and of B where that has another type */
    jg_type types[2];    /* what they are rounded to */
    size_t b_begins;     /* bytes of `in` that have A's numbers; the rest has B's. All of them where both have one type */
} bench_pool;

/* Allocates. Errors: NO_MEMORY, DEVICE. */
jg_status bench_pool_open(const bench_gpu *gpu, size_t in_bytes, size_t out_bytes, size_t extra_bytes, bench_pool *pool);
void bench_pool_close(bench_pool *pool);

/* Fills A and B with random numbers of a product's types, if they are not yet, and what is fused in. Blocks. */
jg_status bench_pool_fill(bench_pool *pool, const bench_layout *l);

/* The operands of call number `index`: sets in turn. They point into the layout too. */
jg_operands bench_pool_operands(const bench_pool *pool, const bench_layout *l, unsigned index, CUstream stream);

/* Makes every byte of C of set 0 0xff (NaN in floats, -1 or 255), to see that a product writes all of it. */
jg_status bench_pool_poison(const bench_pool *pool, const bench_layout *l);

/* C of set 0 on the host, from its first element on: free() it. Null with a text for jg_last_error if that fails. */
void *bench_pool_take_c(const bench_pool *pool, const bench_layout *l);

/* The largest error of C among 64 elements (the corners, and others by chance), over what is allowed. The reference is computed
 * in double. Above 1, or infinite where there is a NaN: wrong. Allowed is, of the sum of products,
 *     f32, f16, bf16, weights   max(k, 8) 2^-23 sum |a b|
 *     3xtf32                    four times that
 *     tf32                      2^-10 sum |a b| more
 *     e4m3, e5m2                (k / 32 + 8) 2^-12 (|sum| + 2 sqrt k) more, for tensor cores that keep few bits
 *     f16acc                    sqrt(k / 8 + 8) 2^-9 (|sum| + 2 sqrt k)
 *     integers                  nothing
 * then what float32 may lose in what is fused in, and the rounding to the type of C. */
double bench_pool_check(const bench_pool *pool, const bench_layout *l, const void *c);

/* The largest difference of all elements of C and another's result of the same inputs, over what is allowed: k 2^-20 (times what
 * two elements come to, where that is not up to 1), twice what the mode of math may lose, and four roundings to the type of C.
 * Both round in orders of their own; of random inputs the difference is about a tenth of that, while a product too few makes
 * 0.3. Above 1 one of them is off: where they differ so, up to 1000 elements of C are held against the reference as in
 * bench_pool_check, and *own is raised to the largest error found. */
double bench_pool_compare(const bench_pool *pool, const bench_layout *l, const void *c, const void *other, double *own);

#endif
