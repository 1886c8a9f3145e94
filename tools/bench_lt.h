/* cuBLASLt through dlopen, for comparison: its first choice for a product, and up to 31 further ones to be timed. Needs none of
 * its headers.
 *
 *     bench_lt lt;
 *     bench_lt_open(NULL, &lt);  bench_lt_create(&lt, workspace, bytes, 0);
 *     bench_lt_prepare(&lt, &problem);                                      as often as wanted
 *     for (int i = 0; i < lt.count; i++) bench_lt_gemm(&lt, i, &operands);
 *     bench_lt_close(&lt);
 *
 * A status of cuBLASLt that refuses what it was given, or the device, is UNSUPPORTED; any other failure is DEVICE. The text of
 * jg_last_error has the call and the status by their names. */
#ifndef JG_TOOLS_BENCH_LT_H
#define JG_TOOLS_BENCH_LT_H

#include "bench_cublas.h"

#define BENCH_LT_CHOICES 32

/* As cublasLtMatmulHeuristicResult_t lies in memory: cuBLASLt writes an array of them. */
typedef struct bench_lt_choice {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state; /* the others mean something if this is 0 */
    float waves;
    int reserved[4];
} bench_lt_choice;

/* Treat as opaque, but for count; zero-initialise. */
typedef struct bench_lt {
    void *handle;
    size_t version;               /* e.g. 130100 for 13.1 */
    int count;                    /* choices for the prepared product; 0: none is prepared */
    void *workspace;
    size_t workspace_bytes;
    int sm_target;
    problem product;              /* as prepared */
    bench_cublas_arithmetic arithmetic;
    void *operation, *preference, *layouts[3]; /* descriptors; layouts of cuBLAS' A and B, which are our B and A, and of C */
    bench_lt_choice choices[BENCH_LT_CHOICES];

    int (*create)(void **);
    int (*destroy)(void *);
    size_t (*get_version)(void);
    int (*operation_create)(void **, int, int);
    int (*operation_destroy)(void *);
    int (*operation_set)(void *, int, const void *, size_t);
    int (*layout_create)(void **, int, uint64_t, uint64_t, int64_t);
    int (*layout_destroy)(void *);
    int (*layout_set)(void *, int, const void *, size_t);
    int (*preference_create)(void **);
    int (*preference_destroy)(void *);
    int (*preference_set)(void *, int, const void *, size_t);
    int (*heuristic)(void *, void *, void *, void *, void *, void *, void *, int, bench_lt_choice *, int *);
    int (*matmul)(void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *, void *,
                  void *, void *, const void *, void *, size_t, void *);
} bench_lt;

/* Opens the library at `path`, null: the usual names and places. The path of a cuBLAS serves too, since that brings its
 * cuBLASLt with it. Errors: NOT_FOUND, with a text for jg_last_error. */
jg_status bench_lt_open(const char *path, bench_lt *lt);

/* Makes a handle in the calling thread's current context. workspace: device memory, the caller's, a multiple of 256 bytes in
 * address, as long as the handle lives. sm_target: number of multiprocessors to choose for; 0: all.
 * Errors: UNSUPPORTED, DEVICE; there is no handle then. */
jg_status bench_lt_create(bench_lt *lt, uint64_t workspace, size_t workspace_bytes, int sm_target);

/* Asks for the choices for a product (those of bench_peer_gemm, and 8-bit floats), in the library's order: lt->count of them, at
 * least 1. They rely on operands that are multiples of 256 bytes in address, or of problem->align_bytes if that is
 * set. Replaces the product before, also on error. Errors: UNSUPPORTED, with the reason (also for an empty product), DEVICE,
 * those of a bad problem. */
jg_status bench_lt_prepare(bench_lt *lt, const jg_problem *problem);

/* Enqueues the prepared product with one of its choices on operands->stream. alpha and beta of operands count, as in jg_gemm.
 * Errors: VALUE (no such choice), UNSUPPORTED, DEVICE. */
jg_status bench_lt_gemm(bench_lt *lt, int choice, const jg_operands *operands);

/* Gives everything back but the library, which stays loaded. Nothing happens where nothing was made. */
void bench_lt_close(bench_lt *lt);

#endif
