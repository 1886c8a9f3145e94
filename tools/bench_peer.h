/* cuBLAS through dlopen, for comparison: the few functions of it that the benchmarks call. Needs none of its headers. */
#ifndef JG_TOOLS_BENCH_PEER_H
#define JG_TOOLS_BENCH_PEER_H

#include "jitgemm.h"

/* Treat as opaque; zero-initialise. */
typedef struct bench_peer {
    void *handle; /* cublasHandle_t */
    int version;  /* e.g. 130100 for 13.1 */
    int (*create)(void **);
    int (*destroy)(void *);
    int (*get_version)(void *, int *);
    int (*set_stream)(void *, void *);
    int (*set_math)(void *, int);
    int (*gemm)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int, const void *,
                void *, int, int, int, int);
} bench_peer;

/* Opens the library at `path`, null: the usual names. Errors: NOT_FOUND, with a text for jg_last_error. */
jg_status bench_peer_open(const char *path, bench_peer *peer);

/* Makes a handle in the calling thread's current context, for a stream. Errors: DEVICE. */
jg_status bench_peer_create(bench_peer *peer, void *stream);

/* Computes a row-major, densely packed product of f16 or f32 with f32 accumulation, as jg_gemm would. Errors: DEVICE. */
jg_status bench_peer_gemm(bench_peer *peer, const jg_problem *problem, const jg_operands *operands);

/* Destroys the handle, if there is one. The library stays loaded. */
void bench_peer_close(bench_peer *peer);

#endif
