/* cuBLAS through dlopen, to compare with: f16 products with sums in f32, on two streams, each with a handle and a workspace of its
 * own, so that its calls can be captured into a graph. The program needs neither its headers nor the library to be built. */
#ifndef PIPELINE_CUBLAS_H
#define PIPELINE_CUBLAS_H

#include "gpu.h"
#include "jitgemm.h"

#include <stdint.h>

typedef struct cublas cublas;

/* C = A B, or C + A B, of each batch item; row-major and densely packed. B is one for all items. */
typedef struct cublas_product {
    int m, n, k, batch;
    int64_t stride_a, stride_c;
    const uint16_t *a, *b;
    uint16_t *c;
    int adds; /* to what is in C */
} cublas_product;

/* Opens the library at `path`; null: libcublas.so.13, .12 or .11, by the loader's own search, then in $CUDA_HOME and
 * /usr/local/cuda. Workspaces are allocated of `context`. Null, with the reason, where there is none or it does not work here. */
cublas *cublas_open(const char *path, const gpu *g, jg_context *context, const CUstream streams[2], char *reason, size_t bytes);

/* The library's version, e.g. 130100. */
int cublas_version(const cublas *c);

/* Enqueues a product on the stream `slot`. An error ends the program. */
void cublas_multiply(cublas *c, int slot, const cublas_product *product);

/* Null is allowed. */
void cublas_close(cublas *c);

#endif
