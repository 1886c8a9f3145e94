/* cuBLAS through dlopen, for comparison: the few functions of it that the benchmarks call. Needs none of its headers.
 *
 *     bench_peer peer;
 *     bench_peer_open(NULL, &peer);  bench_peer_create(&peer, stream);
 *     bench_peer_workspace(...);  bench_peer_sm_target(...);       both may be left out
 *     bench_peer_gemm(...) as often as wanted;  bench_peer_close(&peer);
 *
 * A status of cuBLAS that refuses what it was given, or the device, is UNSUPPORTED; any other failure is DEVICE. The text of
 * jg_last_error has the call and the status by their names. */
#ifndef JG_TOOLS_BENCH_PEER_H
#define JG_TOOLS_BENCH_PEER_H

#include "jitgemm.h"

/* Treat as opaque; zero-initialise. */
typedef struct bench_peer {
    void *handle;             /* cublasHandle_t */
    int version;              /* e.g. 130100 for 13.1 */
    void *stream, *workspace; /* as the handle has them */
    size_t workspace_bytes;
    int stream_is_set;
    int (*create)(void **);
    int (*destroy)(void *);
    int (*get_version)(void *, int *);
    int (*set_stream)(void *, void *);
    int (*set_math)(void *, int);
    int (*set_workspace)(void *, void *, size_t);
    int (*set_sm_target)(void *, int); /* null in an old cuBLAS */
    int (*gemm)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int, const void *,
                void *, int, int, int, int);
    int (*gemm_batched)(void *, int, int, int, int, int, const void *, const void *, int, int, long long, const void *, int, int,
                        long long, const void *, void *, int, int, long long, int, int, int);
} bench_peer;

/* Opens the library at `path`, null: the usual names and places. Errors: NOT_FOUND, with a text for jg_last_error. */
jg_status bench_peer_open(const char *path, bench_peer *peer);

/* Makes a handle in the calling thread's current context, for a stream. Errors: UNSUPPORTED, DEVICE; there is no handle then. */
jg_status bench_peer_create(bench_peer *peer, void *stream);

/* Gives the handle device memory to work in, the caller's, a multiple of 256 bytes in address, as long as the handle lives. With
 * it, cuBLAS allocates nothing while a stream is captured. Errors: UNSUPPORTED, DEVICE. */
jg_status bench_peer_workspace(bench_peer *peer, uint64_t workspace, size_t bytes);

/* Tells cuBLAS to choose for so many multiprocessors; 0: all. Errors: NOT_FOUND (an old cuBLAS knows of no such thing),
 * UNSUPPORTED, DEVICE. */
jg_status bench_peer_sm_target(bench_peer *peer, int count);

/* Enqueues a product as jg_gemm would: f32, f16, bf16 with f32 accumulation and never with TF32, f32 with TF32 and f16 with f16
 * accumulation if the mode of math is that one, and s8 x s8 -> s32. On another stream than
 * the call before, the handle goes over to it and keeps its workspace. An empty product does nothing.
 * Errors: UNSUPPORTED (also a leading dimension beyond int; of other products the text begins with BENCH_NO_PEER), DEVICE, those
 * of a bad problem. */
jg_status bench_peer_gemm(bench_peer *peer, const jg_problem *problem, const jg_operands *operands);

/* Destroys the handle, if there is one. The library stays loaded. */
void bench_peer_close(bench_peer *peer);

#endif
