/* cuBLASLt through dlopen, for comparison: its first choice for a product, and up to 32 further ones to be timed. Needs none of its
 * headers. */
#ifndef JG_TOOLS_BENCH_LT_H
#define JG_TOOLS_BENCH_LT_H

#include "jitgemm.h"

#include <stdint.h>

#define BENCH_LT_CHOICES 32

/* Treat as opaque; zero-initialise. The members are the implementer's. */
typedef struct bench_lt {
    void *library, *handle;
    size_t version;
    int count;             /* choices for the prepared product */
    void *state;
} bench_lt;

/* Opens the library at `path`, null: the usual names. Errors: NOT_FOUND, with a text for jg_last_error. */
jg_status bench_lt_open(const char *path, bench_lt *lt);

/* Makes a handle in the calling thread's current context. workspace: device memory, the caller's, as long as the handle lives.
 * sm_target: number of multiprocessors to choose for; 0: all. Errors: DEVICE, NO_MEMORY. */
jg_status bench_lt_create(bench_lt *lt, uint64_t workspace, size_t workspace_bytes, int sm_target);

/* Asks for the choices for a product (any type, order, op, leading dimension, strided batch; f32 accumulation, never TF32), in the
 * library's order; lt->count of them, at least 1. Replaces the product before. Errors: UNSUPPORTED, with the reason. */
jg_status bench_lt_prepare(bench_lt *lt, const jg_problem *problem);

/* Enqueues the prepared product with one of its choices on operands->stream. alpha and beta of operands count, as in jg_gemm.
 * Errors: DEVICE. */
jg_status bench_lt_gemm(bench_lt *lt, int choice, const jg_operands *operands);

/* Gives everything back but the library, which stays loaded. */
void bench_lt_close(bench_lt *lt);

#endif
