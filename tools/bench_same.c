/* See bench_same.h. */
#include "bench_same.h"

#include <dlfcn.h>
#include <string.h>

#define STRING(text) #text

/* member, exported symbol, parameters; all or none. */
#define CAPTURE_FUNCTIONS(X)                                                                \
    X(begin, cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode))                      \
    X(end, cuStreamEndCapture, (CUstream, CUgraph *))                                       \
    X(nodes, cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *))                           \
    X(kernel, cuGraphKernelNodeGetParams, (CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v1 *))      \
    X(destroy, cuGraphDestroy, (CUgraph))

typedef struct capture_calls {
#define MEMBER(name, symbol, parameters) CUresult(CUDAAPI *name) parameters;
    CAPTURE_FUNCTIONS(MEMBER)
#undef MEMBER
} capture_calls;

static int bind_calls(const bench_gpu *gpu, capture_calls *calls)
{
#define BIND(name, symbol, parameters)                                      \
    *(void **)&calls->name = dlsym(gpu->driver->handle, STRING(symbol));    \
    if (!calls->name) return 0;
    CAPTURE_FUNCTIONS(BIND)
#undef BIND
    return 1;
}

/* Takes the one node of the graph apart. */
static int read_node(const capture_calls *calls, CUgraph graph, bench_same *out)
{
    CUgraphNode node;
    size_t count = 1;
    CUDA_KERNEL_NODE_PARAMS_v1 launch;
    if (calls->nodes(graph, &node, &count) != CUDA_SUCCESS || count != 1) return 0;
    if (calls->kernel(node, &launch) != CUDA_SUCCESS || !launch.kernelParams) return 0;
    memcpy(out->argument, launch.kernelParams[0], bench_gpu_argument_bytes());
    out->shape = (bench_shape){launch.gridDimX, launch.gridDimY, launch.blockDimX, launch.sharedMemBytes};
    out->function = launch.func;
    return 1;
}

int bench_same_open(bench_run *run, const jg_problem *problem, const jg_operands *data, bench_same *out)
{
    capture_calls calls;
    CUgraph graph = NULL;
    const CUstream stream = data->stream;
    memset(out, 0, sizeof *out);
    if (run->gpu.software || !bind_calls(&run->gpu, &calls)) return BENCH_EXIT_DONE;
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .prewarm = JG_PREWARM_NO_MET,
                                .cache_path = run->cache_path, .nvrtc_path = run->args.nvrtc_path,
                                .driver_path = run->args.driver_path, .arch = bench_planned_arch(run),
                                .sm_count = bench_planned_sms(run)};
    if (jg_open(&options, &out->context) != JG_OK || jg_prewarm(out->context, problem, 1, NULL, NULL) != JG_OK)
        return bench_fail_status(run, "a second context");
    if (calls.begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS) return BENCH_EXIT_DONE;
    const jg_status called = jg_gemm(out->context, problem, data);
    const CUresult ended = calls.end(stream, &graph);
    if (called != JG_OK) return bench_fail_status(run, "a captured launch");
    if (ended != CUDA_SUCCESS) return BENCH_EXIT_DONE;
    read_node(&calls, graph, out);
    calls.destroy(graph);
    return BENCH_EXIT_DONE;
}

void bench_same_close(bench_same *same)
{
    jg_close(same->context);
    memset(same, 0, sizeof *same);
}
