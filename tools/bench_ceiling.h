/* The ceilings of a GPU, measured: how many bytes and operations a second it can do at all. What a kernel reaches of them is its
 * part of the roofline (S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model", 2009). */
#ifndef JG_TOOLS_BENCH_CEILING_H
#define JG_TOOLS_BENCH_CEILING_H

#include "bench_gpu.h"

enum { BENCH_CEILINGS_MAX = 24 };

typedef struct bench_ceiling {
    char name[8];        /* "memory", "l2", or what bench_label_ceiling has */
    const char *unit;    /* "GB/s" or "TFLOP/s" */
    double value;
    char how[64];
} bench_ceiling;

typedef struct bench_ceilings {
    bench_ceiling list[BENCH_CEILINGS_MAX];
    size_t count;
    double warm_up_s;    /* how long the clocks took to settle */
    int settled;         /* 0: they did not within the limit */
} bench_ceilings;

/* Keeps the GPU busy until the time of the same work no longer changes, at most three seconds; then measures: reading from the L2
 * cache and from memory, fused multiply-adds in registers (f32), tensor-core products in registers (mma.sync: f16, bf16, tf32,
 * f16acc and s8 from sm_80 on, e4m3 from sm_89 on if the driver knows it). All on the multiprocessors of `stream`. */
jg_status bench_ceilings_measure(const bench_gpu *gpu, CUstream stream, bench_ceilings *out);

/* How much is done for it: on the software GPU, where numbers mean nothing, a little is enough to see that the kernels run. */
typedef struct bench_effort {
    unsigned blocks;        /* of 256 threads, of each kernel */
    uint32_t steps;         /* of the kernels that compute */
    double l2_bytes;        /* a quarter of it is read again and again, and eight times as much once */
    int samples;
    double warm_up_limit_s;
} bench_effort;
jg_status bench_ceilings_measure_with(const bench_gpu *gpu, CUstream stream, const bench_effort *effort, bench_ceilings *out);

/* Adds one that was measured elsewhere. */
void bench_ceilings_add(bench_ceilings *c, const char *name, const char *unit, double value, const char *how);

/* The largest of a name; 0 if there is none. */
double bench_ceilings_find(const bench_ceilings *c, const char *name);

/* What the roofline allows for a product, in us, and what bounds it ("compute", "memory", "l2"). 0 if a ceiling is unknown. */
double bench_ceilings_floor_us(const bench_ceilings *c, const char *type, double flops, double bytes, int in_l2,
                               const char **bound);

#endif
