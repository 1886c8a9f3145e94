/* cuBLAS through dlopen: see bench_peer.h. The numbers below are cuBLAS' own and part of its ABI. */
#include "bench_peer.h"

#include "status.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

enum { CUDA_R_32F_ = 0, CUDA_R_16F_ = 2, CUBLAS_COMPUTE_32F_ = 68, CUBLAS_GEMM_DEFAULT_ = -1, CUBLAS_DEFAULT_MATH_ = 0 };

static const struct {
    size_t offset;
    const char *symbol;
} functions[] = {
    {offsetof(bench_peer, create), "cublasCreate_v2"},       {offsetof(bench_peer, destroy), "cublasDestroy_v2"},
    {offsetof(bench_peer, get_version), "cublasGetVersion_v2"}, {offsetof(bench_peer, set_stream), "cublasSetStream_v2"},
    {offsetof(bench_peer, set_math), "cublasSetMathMode"},   {offsetof(bench_peer, gemm), "cublasGemmEx"},
};

static void *open_library(const char *path)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                        "/usr/local/cuda/lib64/libcublas.so"};
    void *library = NULL;
    if (path) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

jg_status bench_peer_open(const char *path, bench_peer *peer)
{
    memset(peer, 0, sizeof *peer);
    void *library = open_library(path);
    if (!library) return status_set(JG_ERR_NOT_FOUND, "no cuBLAS to compare with: %s", dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *symbol = dlsym(library, functions[i].symbol);
        if (!symbol)
            return status_set(JG_ERR_NOT_FOUND, "no cuBLAS to compare with: %s has no %s", path ? path : "libcublas",
                              functions[i].symbol);
        memcpy((char *)peer + functions[i].offset, &symbol, sizeof symbol);
    }
    return JG_OK;
}

jg_status bench_peer_create(bench_peer *peer, void *stream)
{
    int result = peer->create(&peer->handle);
    if (result != 0) {
        peer->handle = NULL;
        return status_set(JG_ERR_DEVICE, "cublasCreate failed with %d", result);
    }
    peer->get_version(peer->handle, &peer->version);
    result = peer->set_stream(peer->handle, stream);
    if (result == 0) result = peer->set_math(peer->handle, CUBLAS_DEFAULT_MATH_);
    return result == 0 ? JG_OK : status_set(JG_ERR_DEVICE, "cublasSetStream or cublasSetMathMode failed with %d", result);
}

/* cuBLAS is column-major, where a row-major C = A B is C' = B' A'. */
jg_status bench_peer_gemm(bench_peer *peer, const jg_problem *p, const jg_operands *o)
{
    static const float one = 1, zero = 0;
    const int type = p->type_a == JG_F16 ? CUDA_R_16F_ : CUDA_R_32F_;
    const int lda = (int)(p->op_a == JG_T ? p->m : p->k), ldb = (int)(p->op_b == JG_T ? p->k : p->n);
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    const int result = peer->gemm(peer->handle, p->op_b, p->op_a, n, m, k, &one, o->b, type, ldb, o->a, type, lda, &zero, o->c,
                                  type, n, CUBLAS_COMPUTE_32F_, CUBLAS_GEMM_DEFAULT_);
    return result == 0 ? JG_OK : status_set(JG_ERR_DEVICE, "cublasGemmEx failed with %d for %dx%dx%d", result, m, n, k);
}

void bench_peer_close(bench_peer *peer)
{
    if (peer->handle) peer->destroy(peer->handle);
    peer->handle = NULL;
}
