/* See gpu.h. */
#include "gpu.h"

#include "common.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* member, exported symbol, parameters: as drivers since CUDA 11.4 have them. */
#define CALLS(X)                                                                     \
    X(init, cuInit, (unsigned))                                                      \
    X(device_count, cuDeviceGetCount, (int *))                                       \
    X(device_get, cuDeviceGet, (CUdevice *, int))                                    \
    X(device_name, cuDeviceGetName, (char *, int, CUdevice))                         \
    X(device_attribute, cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice)) \
    X(primary_retain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))             \
    X(primary_release, cuDevicePrimaryCtxRelease_v2, (CUdevice))                     \
    X(set_current, cuCtxSetCurrent, (CUcontext))                                     \
    X(stream_create, cuStreamCreate, (CUstream *, unsigned))                         \
    X(stream_destroy, cuStreamDestroy_v2, (CUstream))                                \
    X(stream_synchronize, cuStreamSynchronize, (CUstream))                           \
    X(copy, cuMemcpyAsync, (CUdeviceptr, CUdeviceptr, size_t, CUstream))             \
    X(begin_capture, cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode))       \
    X(end_capture, cuStreamEndCapture, (CUstream, CUgraph *))                        \
    X(instantiate, cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long)) \
    X(graph_launch, cuGraphLaunch, (CUgraphExec, CUstream))                          \
    X(graph_destroy, cuGraphDestroy, (CUgraph))                                      \
    X(exec_destroy, cuGraphExecDestroy, (CUgraphExec))                               \
    X(error_name, cuGetErrorName, (CUresult, const char **))

/* What the software GPU lacks, whose copies are done when they return. */
#define OPTIONAL_CALLS(X)                                  \
    X(allocate_pinned, cuMemAllocHost_v2, (void **, size_t)) \
    X(free_pinned, cuMemFreeHost, (void *))

#if CUDA_VERSION >= 12040
#define GREEN_CALLS(X)                                                                                           \
    X(resource_get, cuDeviceGetDevResource, (CUdevice, CUdevResource *, CUdevResourceType))                      \
    X(resource_split, cuDevSmResourceSplitByCount,                                                               \
      (CUdevResource *, unsigned *, const CUdevResource *, CUdevResource *, unsigned, unsigned))                 \
    X(resource_describe, cuDevResourceGenerateDesc, (CUdevResourceDesc *, CUdevResource *, unsigned))            \
    X(green_create, cuGreenCtxCreate, (CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned))                     \
    X(green_destroy, cuGreenCtxDestroy, (CUgreenCtx))                                                            \
    X(green_context, cuCtxFromGreenCtx, (CUcontext *, CUgreenCtx))                                               \
    X(green_stream, cuGreenCtxStreamCreate, (CUstream *, CUgreenCtx, unsigned, int))
#else
#define GREEN_CALLS(X)
#endif

struct gpu_calls {
#define MEMBER(name, symbol, parameters) CUresult(CUDAAPI *name) parameters;
    CALLS(MEMBER)
    OPTIONAL_CALLS(MEMBER)
    GREEN_CALLS(MEMBER)
#undef MEMBER
};

static void check(const gpu *g, CUresult result, const char *what)
{
    const char *name = NULL;
    if (result == CUDA_SUCCESS) return;
    g->calls->error_name(result, &name);
    fail("%s: %s", what, name ? name : "unknown CUDA error");
}

/* ---- opening ---- */

/* Where this program's own build, or an installation, has it; else where the loader finds it. */
static void *open_software_gpu(void)
{
    static const char *const places[] = {"", "../lib/"};
    char program[4096], path[4200];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    void *library = NULL;
    program[length > 0 ? length : 0] = 0;
    char *slash = strrchr(program, '/');
    if (slash) slash[1] = 0;
    for (size_t i = 0; slash && !library && i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s%slibjitgemm-swgpu.so", program, places[i]);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library ? library : dlopen("libjitgemm-swgpu.so", RTLD_NOW | RTLD_LOCAL);
}

static void bind_calls(gpu *g, void *library, const char *path)
{
    g->calls = allocate(1, sizeof *g->calls);
#define BIND(name, symbol, parameters)                              \
    *(void **)&g->calls->name = dlsym(library, #symbol);            \
    if (!g->calls->name) fail("the CUDA driver %s has no %s; a driver of CUDA 11.4 or newer is needed", path, #symbol);
    CALLS(BIND)
#undef BIND
#define BIND(name, symbol, parameters) *(void **)&g->calls->name = dlsym(library, #symbol);
    OPTIONAL_CALLS(BIND)
    GREEN_CALLS(BIND)
#undef BIND
}

#if CUDA_VERSION >= 12040

static void open_green(gpu *g, int sms)
{
    const gpu_calls *calls = g->calls;
    CUdevResource all, part, rest;
    CUdevResourceDesc description;
    CUgreenCtx green;
    unsigned groups = 1;
    if (!calls->resource_get || !calls->resource_split || !calls->resource_describe || !calls->green_create ||
        !calls->green_destroy || !calls->green_context || !calls->green_stream)
        fail("--sms: this driver has no green contexts; CUDA 12.4 brought them");
    check(g, calls->resource_get(g->device, &all, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource");
    if (sms > (int)all.sm.smCount) fail("--sms %d: there are only %u multiprocessors", sms, all.sm.smCount);
    check(g, calls->resource_split(&part, &groups, &all, &rest, 0, (unsigned)sms), "cuDevSmResourceSplitByCount");
    if (!groups) fail("--sms %d: the driver makes no such group of multiprocessors", sms);
    check(g, calls->resource_describe(&description, &part, 1), "cuDevResourceGenerateDesc");
    check(g, calls->green_create(&green, description, g->device, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate");
    check(g, calls->green_context(&g->context, green), "cuCtxFromGreenCtx");
    g->green = green;
    g->sms = (int)part.sm.smCount;
}

static CUresult make_green_stream(const gpu *g, CUstream *stream)
{
    return g->calls->green_stream(stream, g->green, CU_STREAM_NON_BLOCKING, 0);
}

static void close_green(gpu *g)
{
    g->calls->green_destroy(g->green);
}

#else

static void open_green(gpu *g, int sms)
{
    (void)g;
    fail("--sms %d: built with headers of CUDA %d.%d, which have no green contexts (12.4 has)", sms, CUDA_VERSION / 1000,
         CUDA_VERSION % 1000 / 10);
}

static CUresult make_green_stream(const gpu *g, CUstream *stream)
{
    (void)g, (void)stream;
    return CUDA_ERROR_NOT_SUPPORTED;
}

static void close_green(gpu *g)
{
    (void)g;
}

#endif

/* Leaves *g the host's where there is no device. */
static void find_device(gpu *g)
{
    const char *named = getenv("JITGEMM_DRIVER");
    const char *path = named && *named ? named : "libcuda.so.1";
    int count = 0;
    *g = (gpu){.name = "cpu"};
    g->is_software = strcmp(path, "swgpu") == 0;
    if (strcmp(path, "cpu") == 0) return;
    void *library = g->is_software ? open_software_gpu() : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library && g->is_software) fail("no software GPU: %s", dlerror());
    if (!library) return;
    bind_calls(g, library, path);
    const CUresult result = g->calls->init(0);
    if (result == CUDA_ERROR_NO_DEVICE || result == CUDA_ERROR_STUB_LIBRARY) return;
    check(g, result, "cuInit");
    check(g, g->calls->device_count(&count), "cuDeviceGetCount");
    if (count == 0) return;
    g->is_cuda = 1;
    check(g, g->calls->device_get(&g->device, 0), "cuDeviceGet");
    check(g, g->calls->device_name(g->name, sizeof g->name, g->device), "cuDeviceGetName");
}

void gpu_open(gpu *g, int sms)
{
    find_device(g);
    if (!g->is_cuda && sms) fail("--sms %d: there is no GPU", sms);
    if (!g->is_cuda) return;
    const CUresult result = g->calls->device_attribute(&g->sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, g->device);
    check(g, result, "cuDeviceGetAttribute");
    check(g, g->calls->primary_retain(&g->context, g->device), "cuDevicePrimaryCtxRetain");
    if (sms) open_green(g, sms);
    check(g, g->calls->set_current(g->context), "cuCtxSetCurrent");
}

void gpu_close(gpu *g)
{
    if (g->is_cuda) {
        g->calls->set_current(NULL);
        if (g->green) close_green(g);
        check(g, g->calls->primary_release(g->device), "cuDevicePrimaryCtxRelease");
    }
    free(g->calls);
    *g = (gpu){0};
}

/* ---- streams and memory ---- */

CUstream gpu_make_stream(const gpu *g)
{
    CUstream stream = NULL;
    if (!g->is_cuda) return NULL;
    if (g->green) check(g, make_green_stream(g, &stream), "cuGreenCtxStreamCreate");
    else check(g, g->calls->stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    return stream;
}

void gpu_destroy_stream(const gpu *g, CUstream stream)
{
    if (stream) check(g, g->calls->stream_destroy(stream), "cuStreamDestroy");
}

void gpu_synchronize(const gpu *g, CUstream stream)
{
    if (g->is_cuda) check(g, g->calls->stream_synchronize(stream), "cuStreamSynchronize");
}

static int has_pinned(const gpu *g)
{
    return g->is_cuda && g->calls->allocate_pinned && g->calls->free_pinned;
}

void *gpu_allocate_pinned(const gpu *g, size_t bytes)
{
    void *memory = NULL;
    if (!has_pinned(g)) return allocate(bytes, 1);
    check(g, g->calls->allocate_pinned(&memory, bytes), "cuMemAllocHost");
    memset(memory, 0, bytes); /* no page is touched for the first time in a frame */
    return memory;
}

void gpu_free_pinned(const gpu *g, void *memory)
{
    if (!has_pinned(g)) free(memory);
    else if (memory) check(g, g->calls->free_pinned(memory), "cuMemFreeHost");
}

void gpu_copy(const gpu *g, void *to, const void *from, size_t bytes, CUstream stream)
{
    if (!g->is_cuda) memcpy(to, from, bytes);
    else check(g, g->calls->copy((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes, stream), "cuMemcpyAsync");
}

/* ---- graphs ---- */

/* Of this thread: what the worker of jitgemm does meanwhile is no part of it, and is not forbidden by it. */
void gpu_begin_capture(const gpu *g, CUstream stream)
{
    check(g, g->calls->begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
}

CUgraphExec gpu_end_capture(const gpu *g, CUstream stream)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    if (g->calls->end_capture(stream, &graph) != CUDA_SUCCESS || !graph) return NULL;
    if (g->calls->instantiate(&exec, graph, 0) != CUDA_SUCCESS) exec = NULL;
    check(g, g->calls->graph_destroy(graph), "cuGraphDestroy");
    return exec;
}

void gpu_launch(const gpu *g, CUgraphExec graph, CUstream stream)
{
    check(g, g->calls->graph_launch(graph, stream), "cuGraphLaunch");
}

void gpu_destroy_graph(const gpu *g, CUgraphExec graph)
{
    if (graph) check(g, g->calls->exec_destroy(graph), "cuGraphExecDestroy");
}
