/* See cublas.h. */
#include "cublas.h"

#include "common.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKSPACE_BYTES ((size_t)32 << 20) /* what cuBLAS takes for itself on Hopper */

/* cublas_api.h and library_types.h */
enum { NO_TRANSPOSE = 0, DEFAULT_MATH = 0, TYPE_F16 = 2, COMPUTE_32F = 68, GEMM_DEFAULT = -1 };

#define CALLS(X)                                          \
    X(create, cublasCreate_v2, (void **))                 \
    X(destroy, cublasDestroy_v2, (void *))                \
    X(get_version, cublasGetVersion_v2, (void *, int *))  \
    X(set_stream, cublasSetStream_v2, (void *, void *))   \
    X(set_math, cublasSetMathMode, (void *, int))         \
    X(set_workspace, cublasSetWorkspace_v2, (void *, void *, size_t)) \
    X(gemm, cublasGemmStridedBatchedEx,                   \
      (void *, int, int, int, int, int, const void *, const void *, int, int, long long, const void *, int, int, long long, \
       const void *, void *, int, int, long long, int, int, int))

struct cublas {
    jg_context *context;
    void *handles[2], *workspaces[2];
#define MEMBER(name, symbol, parameters) int(*name) parameters;
    CALLS(MEMBER)
#undef MEMBER
};

static void *open_library(const char *path)
{
    static const char *const versions[] = {"13", "12", "11"};
    const char *const homes[] = {"", getenv("CUDA_HOME"), "/usr/local/cuda"};
    char name[4096];
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !library && !path && i < 9; i++) {
        const char *home = homes[i / 3];
        if (!home) continue;
        snprintf(name, sizeof name, "%s%slibcublas.so.%s", home, *home ? "/lib64/" : "", versions[i % 3]);
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

static int bind_calls(cublas *c, void *library, char *reason, size_t bytes)
{
#define BIND(name, symbol, parameters)                              \
    *(void **)&c->name = dlsym(library, #symbol);                   \
    if (!c->name) return snprintf(reason, bytes, "the library has no %s", #symbol), 0;
    CALLS(BIND)
#undef BIND
    return 1;
}

/* The stream comes before the workspace, since cuBLAS forgets that over it. */
static int make_handle(cublas *c, int slot, CUstream stream, char *reason, size_t bytes)
{
    CHECK(jg_alloc(c->context, JG_DEVICE_MEMORY, WORKSPACE_BYTES, &c->workspaces[slot]));
    int result = c->create(&c->handles[slot]);
    if (result != 0) {
        c->handles[slot] = NULL;
        return snprintf(reason, bytes, "cublasCreate: status %d", result), 0;
    }
    result = c->set_stream(c->handles[slot], stream);
    if (result == 0) result = c->set_workspace(c->handles[slot], c->workspaces[slot], WORKSPACE_BYTES);
    if (result == 0) result = c->set_math(c->handles[slot], DEFAULT_MATH);
    return result == 0 || (snprintf(reason, bytes, "cublasSetStream, SetWorkspace or SetMathMode: status %d", result), 0);
}

cublas *cublas_open(const char *path, const gpu *g, jg_context *context, const CUstream streams[2], char *reason, size_t bytes)
{
    if (g->is_software) return snprintf(reason, bytes, "it does not run on the software GPU"), NULL;
    if (!g->is_cuda && !path) return snprintf(reason, bytes, "there is no GPU"), NULL;
    void *library = open_library(path);
    if (!library) return snprintf(reason, bytes, "%s", dlerror()), NULL;
    cublas *c = allocate(1, sizeof *c);
    c->context = context;
    if (bind_calls(c, library, reason, bytes) && make_handle(c, 0, streams[0], reason, bytes) &&
        make_handle(c, 1, streams[1], reason, bytes))
        return c;
    cublas_close(c);
    return NULL;
}

int cublas_version(const cublas *c)
{
    int version = 0;
    c->get_version(c->handles[0], &version);
    return version;
}

/* cuBLAS is column-major, where a row-major C = A B is C' = B' A'. */
void cublas_multiply(cublas *c, int slot, const cublas_product *p)
{
    const float alpha = 1, beta = p->adds ? 1 : 0;
    const int result = c->gemm(c->handles[slot], NO_TRANSPOSE, NO_TRANSPOSE, p->n, p->m, p->k, &alpha, p->b, TYPE_F16, p->n, 0, p->a,
                               TYPE_F16, p->k, p->stride_a, &beta, p->c, TYPE_F16, p->n, p->stride_c, p->batch, COMPUTE_32F,
                               GEMM_DEFAULT);
    if (result != 0) fail("cublasGemmStridedBatchedEx: status %d", result);
}

void cublas_close(cublas *c)
{
    if (!c) return;
    for (int slot = 0; slot < 2; slot++) {
        if (c->handles[slot]) c->destroy(c->handles[slot]);
        CHECK(jg_free(c->context, JG_DEVICE_MEMORY, c->workspaces[slot]));
    }
    free(c);
}
