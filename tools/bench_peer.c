/* cuBLAS through dlopen: see bench_peer.h. */
#include "bench_peer.h"
#include "bench_cublas.h"

#include "operands.h"
#include "status.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#define AT(member) offsetof(bench_peer, member)

static const bench_symbol symbols[] = {
    {AT(create), "cublasCreate_v2", 0},
    {AT(destroy), "cublasDestroy_v2", 0},
    {AT(get_version), "cublasGetVersion_v2", 0},
    {AT(set_stream), "cublasSetStream_v2", 0},
    {AT(set_math), "cublasSetMathMode", 0},
    {AT(set_workspace), "cublasSetWorkspace_v2", 0},
    {AT(set_sm_target), "cublasSetSmCountTarget", 1},
    {AT(gemm), "cublasGemmEx", 0},
    {AT(gemm_batched), "cublasGemmStridedBatchedEx", 0},
};

jg_status bench_peer_open(const char *path, bench_peer *peer)
{
    memset(peer, 0, sizeof *peer);
    return bench_cublas_load("cuBLAS", "libcublas", path, symbols, sizeof symbols / sizeof *symbols, peer);
}

/* The stream comes first, since cuBLAS forgets the workspace over it. */
static jg_status use_stream(bench_peer *peer, void *stream)
{
    int result = peer->set_stream(peer->handle, stream);
    peer->stream_is_set = 0;
    RETURN_IF_ERROR(bench_cublas_result("cublasSetStream", result));
    result = peer->workspace ? peer->set_workspace(peer->handle, peer->workspace, peer->workspace_bytes) : 0;
    RETURN_IF_ERROR(bench_cublas_result("cublasSetWorkspace", result));
    peer->stream = stream;
    peer->stream_is_set = 1;
    return JG_OK;
}

jg_status bench_peer_create(bench_peer *peer, void *stream)
{
    jg_status status = bench_cublas_result("cublasCreate", peer->create(&peer->handle));
    if (status != JG_OK) {
        peer->handle = NULL;
        return status;
    }
    peer->get_version(peer->handle, &peer->version);
    status = use_stream(peer, stream);
    if (status == JG_OK) status = bench_cublas_result("cublasSetMathMode", peer->set_math(peer->handle, CUBLAS_DEFAULT_MATH_));
    if (status != JG_OK) bench_peer_close(peer);
    return status;
}

jg_status bench_peer_workspace(bench_peer *peer, uint64_t workspace, size_t bytes)
{
    void *memory = (void *)(uintptr_t)workspace;
    RETURN_IF_ERROR(bench_cublas_result("cublasSetWorkspace", peer->set_workspace(peer->handle, memory, bytes)));
    peer->workspace = memory;
    peer->workspace_bytes = bytes;
    return JG_OK;
}

jg_status bench_peer_sm_target(bench_peer *peer, int count)
{
    if (!peer->set_sm_target) return status_set(JG_ERR_NOT_FOUND, "this cuBLAS has no cublasSetSmCountTarget");
    return bench_cublas_result("cublasSetSmCountTarget", peer->set_sm_target(peer->handle, count));
}

/* cuBLAS is column-major, where a row-major C = A B is C' = B' A'. */
jg_status bench_peer_gemm(bench_peer *peer, const jg_problem *given, const jg_operands *data)
{
    problem p;
    bench_cublas_arithmetic how;
    RETURN_IF_ERROR(problem_canonicalise(given, &p));
    if (problem_is_empty(&p)) return JG_OK;
    RETURN_IF_ERROR(bench_cublas_arithmetic_of(&p, 0, &how));
    if (p.lda > INT_MAX || p.ldb > INT_MAX || p.ldc > INT_MAX)
        return status_set(JG_ERR_UNSUPPORTED, "cuBLAS takes leading dimensions up to %d", INT_MAX);
    if (!peer->stream_is_set || data->stream != peer->stream) RETURN_IF_ERROR(use_stream(peer, data->stream));
    const operands o = operands_canonicalise(&p, data);
    const bench_cublas_scalar alpha = bench_cublas_scalar_of(&how, o.alpha), beta = bench_cublas_scalar_of(&how, o.beta);
    const int m = (int)p.m, n = (int)p.n, k = (int)p.k, lda = (int)p.lda, ldb = (int)p.ldb, ldc = (int)p.ldc;
    const int type_a = bench_cublas_type(p.type_a), type_b = bench_cublas_type(p.type_b), type_c = bench_cublas_type(p.type_c);
    const int op_a = p.op_a == JG_T ? CUBLAS_OP_T_ : CUBLAS_OP_N_, op_b = p.op_b == JG_T ? CUBLAS_OP_T_ : CUBLAS_OP_N_;
    if (p.batch == 1)
        return bench_cublas_result("cublasGemmEx",
                                   peer->gemm(peer->handle, op_b, op_a, n, m, k, &alpha, o.b, type_b, ldb, o.a, type_a, lda,
                                              &beta, o.c, type_c, ldc, how.compute, CUBLAS_GEMM_DEFAULT_));
    return bench_cublas_result("cublasGemmStridedBatchedEx",
                               peer->gemm_batched(peer->handle, op_b, op_a, n, m, k, &alpha, o.b, type_b, ldb, p.stride_b, o.a,
                                                  type_a, lda, p.stride_a, &beta, o.c, type_c, ldc, p.stride_c, (int)p.batch,
                                                  how.compute, CUBLAS_GEMM_DEFAULT_));
}

void bench_peer_close(bench_peer *peer)
{
    if (peer->handle) peer->destroy(peer->handle);
    peer->handle = peer->stream = peer->workspace = NULL;
    peer->workspace_bytes = 0;
    peer->stream_is_set = 0;
}
