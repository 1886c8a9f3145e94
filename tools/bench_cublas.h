/* What cuBLAS and cuBLASLt, the two that products are compared with, have in common: how the libraries are found, the numbers
 * of their ABI, and what a failed call becomes. Needs none of their headers, since devices may lack them; where a toolkit has
 * them, tests/test_bench_peers.c compares the numbers. */
#ifndef JG_TOOLS_BENCH_CUBLAS_H
#define JG_TOOLS_BENCH_CUBLAS_H

#include "problem.h"

/* library_types.h */
#define BENCH_CUBLAS_TYPES(X) \
    X(CUDA_R_32F, 0)          \
    X(CUDA_R_16F, 2)          \
    X(CUDA_R_16BF, 14)        \
    X(CUDA_R_8I, 3)           \
    X(CUDA_R_32I, 10)         \
    X(CUDA_R_8F_E4M3, 28)     \
    X(CUDA_R_8F_E5M2, 29)

/* cublas_api.h. The default math mode never takes TF32 for f32 by itself. */
#define BENCH_CUBLAS_NUMBERS(X)         \
    X(CUBLAS_OP_N, 0)                   \
    X(CUBLAS_OP_T, 1)                   \
    X(CUBLAS_DEFAULT_MATH, 0)           \
    X(CUBLAS_COMPUTE_16F, 64)           \
    X(CUBLAS_COMPUTE_32F, 68)           \
    X(CUBLAS_COMPUTE_32I, 72)           \
    X(CUBLAS_COMPUTE_32F_FAST_TF32, 77) \
    X(CUBLAS_GEMM_DEFAULT, -1)

/* cublas_api.h */
#define BENCH_CUBLAS_STATUSES(X)        \
    X(CUBLAS_STATUS_SUCCESS, 0)         \
    X(CUBLAS_STATUS_NOT_INITIALIZED, 1) \
    X(CUBLAS_STATUS_ALLOC_FAILED, 3)    \
    X(CUBLAS_STATUS_INVALID_VALUE, 7)   \
    X(CUBLAS_STATUS_ARCH_MISMATCH, 8)   \
    X(CUBLAS_STATUS_MAPPING_ERROR, 11)  \
    X(CUBLAS_STATUS_EXECUTION_FAILED, 13) \
    X(CUBLAS_STATUS_INTERNAL_ERROR, 14) \
    X(CUBLAS_STATUS_NOT_SUPPORTED, 15)  \
    X(CUBLAS_STATUS_LICENSE_ERROR, 16)

/* cublasLt.h: the attributes of its descriptors that are set here, and the type of each one's value. */
#define BENCH_CUBLAS_ATTRIBUTES(X)                               \
    X(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5)          /* int32_t */  \
    X(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6) /* int64_t */  \
    X(CUBLASLT_MATMUL_DESC_TRANSA, 3)                 /* int32_t */  \
    X(CUBLASLT_MATMUL_DESC_TRANSB, 4)                 /* int32_t */  \
    X(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, 15)       /* int32_t */  \
    X(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)    /* uint64_t */ \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)  /* uint32_t */ \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)  /* uint32_t */ \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)  /* uint32_t */ \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)  /* uint32_t */

/* Their names with a _ behind, so that they do not clash with the headers' own. */
#define BENCH_CUBLAS_CONSTANT(name, number) name##_ = (number),
enum {
    BENCH_CUBLAS_TYPES(BENCH_CUBLAS_CONSTANT)
    BENCH_CUBLAS_NUMBERS(BENCH_CUBLAS_CONSTANT)
    BENCH_CUBLAS_STATUSES(BENCH_CUBLAS_CONSTANT)
    BENCH_CUBLAS_ATTRIBUTES(BENCH_CUBLAS_CONSTANT)
};

/* A function of a library, and where in a struct its address goes. One that is optional may be missing, and is null then. */
typedef struct bench_symbol {
    size_t offset;
    const char *name;
    int optional;
} bench_symbol;

/* Opens a library and looks up its functions. path null: base (such as "libcublas") with the usual endings, where the loader
 * finds it, then in the lib64 and targets/X/lib of $CUDA_HOME and of /usr/local/cuda. The library stays loaded.
 * what: its name for people. Errors: NOT_FOUND. */
jg_status bench_cublas_load(const char *what, const char *base, const char *path, const bench_symbol *symbols, size_t count,
                            void *into);

/* A call's result as a status: UNSUPPORTED where the library refuses the arguments or the device, DEVICE for other failures,
 * with a text such as "cublasGemmEx: CUBLAS_STATUS_NOT_SUPPORTED". */
jg_status bench_cublas_result(const char *call, int result);

/* A jg_type of a product that has an arithmetic here, as a cudaDataType. */
int bench_cublas_type(unsigned type);

/* How products are asked for: a cublasComputeType_t, and the cudaDataType of alpha and beta. */
typedef struct bench_cublas_arithmetic {
    int compute, scale;
} bench_cublas_arithmetic;

/* The one of a product. is_lt: of cuBLASLt, which takes 8-bit floats too. Error: UNSUPPORTED where there is no product like it to
 * be compared with, with a text that begins with BENCH_NO_PEER; whether the library has kernels for the others it says itself. */
jg_status bench_cublas_arithmetic_of(const problem *p, int is_lt, bench_cublas_arithmetic *out);

/* alpha or beta as an arithmetic wants it. */
typedef union bench_cublas_scalar {
    float f32;
    int32_t s32;
    uint16_t f16;
} bench_cublas_scalar;
bench_cublas_scalar bench_cublas_scalar_of(const bench_cublas_arithmetic *arithmetic, float value);

#endif
