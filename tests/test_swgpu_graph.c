/* Graphs on the software GPU: what a capture records of launches and copies, when it is done, and what is found in it: kernels
 * that were unloaded, faults, leaks. The rules of captures are tested in test_swgpu_capture.c. */
#include "driver_fixture.h"

#include "src/swgpu/settings.h"

#include <pthread.h>

#define MEMBER(name) COUNT_##name,
enum { SWGPU_COUNTERS(MEMBER) COUNTS };
#undef MEMBER

#define GLOBAL CU_STREAM_CAPTURE_MODE_GLOBAL
#define TYPE_NONE ((CUgraphNodeType)99)

/* *at += 1, by one thread */
#define KERNEL_INCREMENT                                                                                               \
    ".visible .entry increment(.param .u64 at) {\n .reg .b32 %r<3>; .reg .b64 %d1;\n ld.param.u64 %d1, [at];\n"        \
    " ld.global.u32 %r1, [%d1]; add.u32 %r2, %r1, 1; st.global.u32 [%d1], %r2; ret; }\n"
/* *at *= 10 */
#define KERNEL_TENFOLD                                                                                                 \
    ".visible .entry tenfold(.param .u64 at) {\n .reg .b32 %r<3>; .reg .b64 %d1;\n ld.param.u64 %d1, [at];\n"          \
    " ld.global.u32 %r1, [%d1]; mul.lo.u32 %r2, %r1, 10; st.global.u32 [%d1], %r2; ret; }\n"

static struct {
    CUmodule module;
    CUfunction tid, add, increment, tenfold;
    CUdeviceptr out;
    CUstream stream;
} f;

static void open_all(void)
{
    open_context();
    f.module = load_text(HEADER KERNEL_TID KERNEL_ADD KERNEL_INCREMENT KERNEL_TENFOLD);
    f.tid = get_function(f.module, "tid");
    f.add = get_function(f.module, "add");
    f.increment = get_function(f.module, "increment");
    f.tenfold = get_function(f.module, "tenfold");
    f.out = allocate(1024);
    WORKS(cuMemsetD8(f.out, 0, 1024));
    WORKS(cuStreamCreate(&f.stream, CU_STREAM_NON_BLOCKING));
}

static void open_all_clean(void)
{
    clean_environment();
    open_all();
}

static uint32_t word(unsigned index)
{
    uint32_t value;
    WORKS(cuMemcpyDtoH(&value, f.out + 4 * index, 4));
    return value;
}

static CUresult launch_threads(CUfunction function, unsigned threads, CUdeviceptr at)
{
    void *parameters[] = {&at};
    return cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, f.stream, parameters, NULL);
}

static CUgraph end(void)
{
    CUgraph graph = NULL;
    WORKS(cuStreamEndCapture(f.stream, &graph));
    assert_non_null(graph);
    return graph;
}

static CUgraphExec instantiate(CUgraph graph)
{
    CUgraphExec exec = NULL;
    WORKS(cuGraphInstantiateWithFlags(&exec, graph, 0));
    assert_non_null(exec);
    return exec;
}

/* Ends the capture; only the executable graph stays. */
static CUgraphExec end_executable(void)
{
    CUgraph graph = end();
    CUgraphExec exec = instantiate(graph);
    WORKS(cuGraphDestroy(graph));
    return exec;
}

static void launches_are_recorded(void **state)
{
    (void)state;
    open_all_clean();
    WORKS(cuMemsetD32(f.out, 1000, 32));
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    WORKS(launch_threads(f.tid, 32, f.out));
    CUgraphExec exec = end_executable();
    for (unsigned i = 0; i < 32; i++) assert_int_equal(word(i), 1000); /* nothing ran */
    for (int round = 0; round < 3; round++) {
        WORKS(cuMemsetD32(f.out, 1000 + (unsigned)round, 33));
        WORKS(cuGraphLaunch(exec, f.stream));
        WORKS(cuStreamSynchronize(f.stream));
        for (unsigned i = 0; i < 32; i++) assert_int_equal(word(i), i);
        assert_int_equal(word(32), 1000 + round);
    }
    WORKS(cuGraphExecDestroy(exec));
}

/* Both ways to give them; the program's own copies change as soon as the call is back. */
static void parameters_are_copied(void **state)
{
    (void)state;
    open_all_clean();
    struct {
        uint64_t sum;
        uint32_t scale;
        uint16_t bias, padding;
        uint64_t a, b;
    } packed = {f.out + 512, 5, 6, 77, f.out, f.out + 256};
    size_t bytes = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    CUdeviceptr sum = f.out + 768, a = f.out, b = f.out + 256;
    uint32_t scale = 3;
    uint16_t bias = 9;
    void *separate[] = {&sum, &scale, &bias, &a, &b};
    for (unsigned i = 0; i < 8; i++) {
        WORKS(cuMemsetD32(f.out + 4 * i, i, 1));
        WORKS(cuMemsetD32(f.out + 256 + 4 * i, 1000 * i, 1));
    }
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    WORKS(cuLaunchKernel(f.add, 1, 1, 1, 8, 1, 1, 0, f.stream, NULL, extra));
    WORKS(cuLaunchKernel(f.add, 1, 1, 1, 8, 1, 1, 0, f.stream, separate, NULL));
    CUgraphExec exec = end_executable();
    memset(&packed, 0, sizeof packed);
    memset(separate, 0, sizeof separate);
    sum = a = b = scale = bias = 0;
    bytes = 1;
    WORKS(cuGraphLaunch(exec, f.stream));
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(word(128 + i), 5001 * i + 6);
        assert_int_equal(word(192 + i), 3001 * i + 9);
    }
    WORKS(cuGraphExecDestroy(exec));
}

/* ((x + 1) * 10 + 1) * 10 with x from the host, and back to the host, when the graph is launched and not before. */
static void nodes_run_in_order(void **state)
{
    (void)state;
    open_all_clean();
    uint32_t in = 5, result = 0;
    CUgraphNode nodes[8];
    CUgraphNodeType type = TYPE_NONE;
    size_t count = 99;
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    WORKS(cuMemcpyAsync(f.out, (CUdeviceptr)(uintptr_t)&in, 4, f.stream));
    WORKS(launch_threads(f.increment, 1, f.out));
    WORKS(launch_threads(f.tenfold, 1, f.out));
    WORKS(cuMemcpyAsync(f.out, f.out, 0, f.stream)); /* no node */
    WORKS(launch_threads(f.increment, 1, f.out));
    WORKS(launch_threads(f.tenfold, 1, f.out));
    WORKS(cuMemcpyAsync((CUdeviceptr)(uintptr_t)&result, f.out, 4, f.stream));
    CUgraph graph = end();
    CUgraphExec exec = instantiate(graph), other = instantiate(graph);
    assert_true(result == 0 && word(0) == 0);
    for (in = 5; in < 8; in++) {
        WORKS(cuGraphLaunch(exec, f.stream));
        assert_int_equal(result, ((in + 1) * 10 + 1) * 10);
    }
    WORKS(cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 6);
    WORKS(cuGraphExecDestroy(other)); /* the nodes are the graph's */
    count = 8;
    for (int i = 0; i < 8; i++) nodes[i] = (CUgraphNode)&in;
    WORKS(cuGraphGetNodes(graph, nodes, &count));
    assert_int_equal(count, 6);
    for (unsigned i = 0; i < 6; i++) {
        WORKS(cuGraphNodeGetType(nodes[i], &type));
        assert_int_equal(type, i == 0 || i == 5 ? CU_GRAPH_NODE_TYPE_MEMCPY : CU_GRAPH_NODE_TYPE_KERNEL);
    }
    assert_true(!nodes[6] && !nodes[7]);
    CUgraphNode two[3] = {NULL, NULL, (CUgraphNode)&in};
    count = 2;
    WORKS(cuGraphGetNodes(graph, two, &count));
    assert_true(count == 2 && two[0] == nodes[0] && two[1] == nodes[1] && two[2] == (CUgraphNode)&in);
    REFUSES(INVALID_VALUE, cuGraphGetNodes(graph, nodes, NULL));
    REFUSES(INVALID_VALUE, cuGraphNodeGetType(nodes[0], NULL));
    WORKS(cuGraphDestroy(graph)); /* the executable graph has what it needs */
    REFUSES(INVALID_VALUE, cuGraphNodeGetType(nodes[0], &type));
    REFUSES(INVALID_VALUE, cuGraphGetNodes(graph, NULL, &count));
    in = 1;
    WORKS(cuGraphLaunch(exec, f.stream));
    assert_int_equal(result, 210);
    WORKS(cuGraphExecDestroy(exec));
}

static void made_executable(void **state)
{
    (void)state;
    open_all_clean();
    CUgraphExec first, second;
    CUgraphNode culprit = (CUgraphNode)f.stream;
    char log[4] = "###";
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    WORKS(launch_threads(f.increment, 1, f.out));
    CUgraph graph = end();
    WORKS(cuGraphInstantiate_v2(&first, graph, &culprit, log, sizeof log)); /* as programs for CUDA 11 do */
    assert_true(!culprit && !log[0]);
    WORKS(cuGraphInstantiate_v2(&second, graph, NULL, NULL, 0));
    WORKS(cuGraphExecDestroy(second));
    WORKS(cuGraphInstantiateWithFlags(&second, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | 8));
    assert_ptr_not_equal(first, second);
    REFUSES(INVALID_VALUE, cuGraphInstantiateWithFlags(&second, graph, 4)); /* for launches from the device */
    REFUSES(INVALID_VALUE, cuGraphInstantiateWithFlags(NULL, graph, 0));
    REFUSES(INVALID_VALUE, cuGraphInstantiateWithFlags(&second, (CUgraph)first, 0));
    REFUSES(INVALID_VALUE, cuGraphInstantiate_v2(&second, NULL, NULL, NULL, 0));
    WORKS(cuGraphLaunch(first, f.stream));
    WORKS(cuGraphLaunch(second, NULL));
    WORKS(cuGraphLaunch(second, CU_STREAM_PER_THREAD));
    assert_int_equal(word(0), 3);
    WORKS(cuGraphExecDestroy(first));
    REFUSES(INVALID_VALUE, cuGraphExecDestroy(first));
    REFUSES(INVALID_VALUE, cuGraphLaunch(first, f.stream));
    REFUSES(INVALID_VALUE, cuGraphLaunch((CUgraphExec)graph, f.stream));
    REFUSES(INVALID_HANDLE, cuGraphLaunch(second, (CUstream)graph));
    WORKS(cuGraphLaunch(second, f.stream));
    assert_int_equal(word(0), 4);
    REFUSES(INVALID_VALUE, cuGraphDestroy((CUgraph)second));
    WORKS(cuGraphDestroy(graph));
    REFUSES(INVALID_VALUE, cuGraphDestroy(graph));
    REFUSES(INVALID_VALUE, cuGraphDestroy(NULL));
    /* Another context's launch, and none's but that. */
    CUcontext other, popped;
    WORKS(cuCtxCreate_v2(&other, 0, 0));
    WORKS(cuGraphLaunch(second, f.stream));
    WORKS(cuCtxDestroy(other));
    assert_int_equal(word(0), 5);
    WORKS(cuCtxPopCurrent(&popped));
    REFUSES(INVALID_CONTEXT, cuGraphLaunch(second, f.stream));
    WORKS(cuGraphExecDestroy(second));
    WORKS(cuCtxPushCurrent(popped));
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    CUgraphExec empty = end_executable();
    WORKS(cuGraphLaunch(empty, f.stream));
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    REFUSES(NOT_SUPPORTED, cuGraphLaunch(empty, f.stream));
    REFUSES(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(f.stream, &graph));
    WORKS(cuGraphExecDestroy(empty));
}

/* The legacy stream cannot launch one while a blocking stream is captured. */
static void launched_while_another_is_captured(void **state)
{
    (void)state;
    open_all_clean();
    CUstream blocking;
    CUgraph graph;
    WORKS(cuStreamCreate(&blocking, 0));
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    WORKS(launch_threads(f.increment, 1, f.out));
    CUgraphExec exec = end_executable();
    WORKS(cuStreamBeginCapture(blocking, GLOBAL));
    WORKS(cuGraphLaunch(exec, f.stream));
    REFUSES(STREAM_CAPTURE_IMPLICIT, cuGraphLaunch(exec, NULL));
    REFUSES(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &graph));
    assert_int_equal(word(0), 1);
    WORKS(cuGraphExecDestroy(exec));
}

/* A launch or copy that fails leaves a hole, so the capture is worth nothing; one that fails on demand never happened. */
static void failures_while_captured(void **state)
{
    (void)state;
    open_all_clean();
    CUgraph graph;
    for (int way = 0; way < 5; way++) {
        CUstreamCaptureStatus status;
        WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
        if (way == 0) REFUSES(INVALID_VALUE, launch_threads(f.tid, 1025, f.out));
        if (way == 1) REFUSES(INVALID_VALUE, cuLaunchKernel(f.tid, 1, 1, 1, 1, 1, 1, 0, f.stream, NULL, NULL));
        if (way == 2) REFUSES(INVALID_HANDLE, launch_threads((CUfunction)f.module, 1, f.out));
        if (way == 3) REFUSES(INVALID_VALUE, cuMemcpyAsync(f.out, 0, 4, f.stream));
        if (way == 4) REFUSES(INVALID_VALUE, cuMemcpyAsync(0, f.out, 4, f.stream));
        WORKS(cuStreamIsCapturing(f.stream, &status));
        assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        REFUSES(STREAM_CAPTURE_INVALIDATED, launch_threads(f.tid, 1, f.out));
        REFUSES(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(f.stream, &graph));
        assert_null(graph);
        WORKS(launch_threads(f.tid, 1, f.out));
    }
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    assert_int_equal(swgpuSetFaults("cuLaunchKernel:1:CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"), CUDA_SUCCESS);
    REFUSES(LAUNCH_OUT_OF_RESOURCES, launch_threads(f.increment, 1, f.out));
    WORKS(launch_threads(f.increment, 1, f.out));
    CUgraphExec exec = end_executable();
    assert_int_equal(swgpuSetFaults("cuGraphLaunch:2:CUDA_ERROR_OUT_OF_MEMORY"), CUDA_SUCCESS);
    WORKS(cuGraphLaunch(exec, f.stream));
    REFUSES(OUT_OF_MEMORY, cuGraphLaunch(exec, f.stream));
    assert_int_equal(word(0), 1);
    WORKS(cuGraphExecDestroy(exec));
}

/* What a launch checks is checked again. */
static void limits_hold_at_the_launch(void **state)
{
    (void)state;
    open_all_clean();
    const CUfunction_attribute dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    void *parameters[] = {&f.out};
    WORKS(cuFuncSetAttribute(f.increment, dynamic, 60000));
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    WORKS(cuLaunchKernel(f.increment, 1, 1, 1, 1, 1, 1, 60000, f.stream, parameters, NULL));
    CUgraphExec exec = end_executable();
    WORKS(cuGraphLaunch(exec, f.stream));
    WORKS(cuFuncSetAttribute(f.increment, dynamic, 59999));
    REFUSES(INVALID_VALUE, cuGraphLaunch(exec, f.stream));
    assert_contains(error_text(CUDA_ERROR_INVALID_VALUE),
                    "60000 bytes of dynamic shared memory; kernel increment is allowed 59999 ");
    WORKS(cuFuncSetAttribute(f.increment, dynamic, 60000));
    WORKS(cuGraphLaunch(exec, f.stream));
    assert_int_equal(word(0), 2);
    WORKS(cuGraphExecDestroy(exec));
    /* Copies too: into memory that is gone by now. */
    const CUdeviceptr fleeting = allocate(16);
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    WORKS(cuMemcpyAsync(fleeting, f.out, 16, f.stream));
    WORKS(launch_threads(f.increment, 1, f.out));
    exec = end_executable();
    WORKS(cuGraphLaunch(exec, f.stream));
    assert_int_equal(word(0), 3);
    WORKS(cuMemFree(fleeting));
    REFUSES(INVALID_VALUE, cuGraphLaunch(exec, f.stream));
    assert_int_equal(word(0), 3); /* and there it ends */
    WORKS(cuGraphExecDestroy(exec));
}

/* ---- what is found ---- */

/* A captured kernel must stay loaded. */
static void unloaded_kernels_are_found(void **state)
{
    (void)state;
    for (int relaunch = 0; relaunch < 2; relaunch++) {
        open_all_clean();
        CUmodule spare = load_text(HEADER KERNEL_TENFOLD);
        WORKS(cuMemsetD32(f.out, 7, 1));
        WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
        WORKS(launch_threads(f.increment, 1, f.out));
        WORKS(launch_threads(get_function(spare, "tenfold"), 1, f.out));
        WORKS(launch_threads(f.increment, 1, f.out));
        CUgraphExec exec = end_executable();
        if (relaunch) WORKS(cuGraphLaunch(exec, f.stream));
        const unsigned before = finding_count();
        WORKS(cuModuleUnload(spare));
        WORKS(cuCtxSynchronize()); /* unloading alone is no mistake */
        assert_int_equal(finding_count(), before);
        load_text(HEADER KERNEL_TENFOLD); /* another kernel of that name is another kernel */
        REFUSES(ILLEGAL_ADDRESS, cuGraphLaunch(exec, f.stream));
        assert_int_equal(finding_count(), before + 1);
        assert_string_equal(last_finding(), "use after unload: node 2 of a graph launches kernel tenfold, whose module was "
                            "unloaded after that launch was captured");
        assert_string_equal(error_text(CUDA_ERROR_ILLEGAL_ADDRESS), last_finding());
        REFUSES(ILLEGAL_ADDRESS, cuStreamSynchronize(f.stream));
        REFUSES(ILLEGAL_ADDRESS, cuGraphLaunch(exec, f.stream));
        assert_int_equal(finding_count(), before + 1);
        WORKS(cuGraphExecDestroy(exec));
        close_all(NULL);
    }
}

/* As after cuLaunchKernel, the next call tells; the nodes after it do not run. */
static void faults_of_nodes(void **state)
{
    (void)state;
    open_all_clean();
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    WORKS(launch_threads(f.tid, 33, f.out + 1024 - 128));
    WORKS(launch_threads(f.tid, 33, f.out + 1024 - 128));
    CUgraphExec exec = end_executable();
    const unsigned before = finding_count();
    WORKS(cuGraphLaunch(exec, f.stream));
    REFUSES(ILLEGAL_ADDRESS, cuStreamSynchronize(f.stream));
    assert_int_equal(finding_count(), before + 1);
    assert_contains(last_finding(), "out of bounds: ");
    assert_contains(last_finding(), "kernel tid, block (0, 0, 0), thread (32, 0, 0)");
    REFUSES(ILLEGAL_ADDRESS, cuGraphLaunch(exec, f.stream));
    WORKS(cuGraphExecDestroy(exec));
}

/* The graph's context is another than the current one: it is that one's fault that counts. */
static void faults_of_the_graphs_context(void **state)
{
    (void)state;
    open_all_clean();
    CUcontext other;
    CUstream theirs;
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    WORKS(launch_threads(f.tid, 33, f.out + 1024 - 128));
    CUgraphExec exec = end_executable();
    WORKS(cuCtxCreate_v2(&other, 0, 0));
    WORKS(cuStreamCreate(&theirs, 0));
    WORKS(cuGraphLaunch(exec, theirs));
    WORKS(cuCtxSynchronize());
    REFUSES(ILLEGAL_ADDRESS, cuGraphLaunch(exec, theirs));
    REFUSES(ILLEGAL_ADDRESS, cuStreamBeginCapture(f.stream, GLOBAL));
    WORKS(cuCtxDestroy(other));
    REFUSES(ILLEGAL_ADDRESS, cuCtxSynchronize());
    WORKS(cuGraphExecDestroy(exec));
}

/* The description is the captured launch's, each time; its names need not live on; the next launch has none. */
static void operands_belong_to_the_node(void **state)
{
    (void)state;
    open_all_clean();
    char name[] = "out, which is long enough to be cut off";
    swgpu_operand operand = {.name = name, .base = f.out, .rows = 1, .row_bytes = 32, .row_step_bytes = 32, .items = 1,
                             .writable = 1};
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    WORKS(swgpuDescribeLaunch(&operand, 1, 8));
    WORKS(launch_threads(f.tid, 8, f.out));
    WORKS(launch_threads(f.tid, 16, f.out)); /* not described: it may touch all */
    WORKS(swgpuDescribeLaunch(&operand, 1, 9));
    WORKS(launch_threads(f.tid, 9, f.out));
    CUgraphExec exec = end_executable();
    WORKS(launch_threads(f.tid, 16, f.out));
    memset(name, 'x', sizeof name - 1);
    memset(&operand, 0, sizeof operand);
    WORKS(cuGraphLaunch(exec, f.stream));
    REFUSES(LAUNCH_FAILED, cuStreamSynchronize(f.stream));
    assert_contains(last_finding(), "outside the operands: ");
    assert_contains(last_finding(), "out, which is long enough to be");
    assert_contains(last_finding(), "kernel tid, block (0, 0, 0), thread (8, 0, 0)");
    WORKS(cuGraphExecDestroy(exec));
}

static void counters_of_a_graph(void **state)
{
    (void)state;
    set_only("BLOCKS", "2");
    open_all();
    uint64_t one[COUNTS], values[COUNTS];
    void *parameters[] = {&f.out};
    WORKS(launch_threads(f.increment, 1, f.out));
    assert_int_equal(swgpuCounters(one, COUNTS), COUNTS);
    assert_true(one[COUNT_blocks] == 1 && one[COUNT_global_load_requests] == 1);
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    WORKS(launch_threads(f.increment, 1, f.out));
    WORKS(swgpuDescribeLaunch(NULL, 0, SETTINGS_SMALL_LAUNCH + 1)); /* large: 2 of its blocks are enough */
    WORKS(cuLaunchKernel(f.tid, 7, 1, 1, 8, 1, 1, 0, f.stream, parameters, NULL));
    WORKS(launch_threads(f.increment, 1, f.out));
    swgpuCounters(values, COUNTS);
    assert_memory_equal(values, one, sizeof one); /* what is recorded does not count */
    CUgraphExec exec = end_executable();
    for (int round = 0; round < 2; round++) {
        WORKS(cuGraphLaunch(exec, f.stream));
        swgpuCounters(values, COUNTS);
        assert_int_equal(values[COUNT_blocks], 9);
        assert_int_equal(values[COUNT_blocks_run], 4);
        assert_int_equal(values[COUNT_global_load_requests], 2 * one[COUNT_global_load_requests]);
        assert_int_equal(values[COUNT_global_store_requests], 2 * one[COUNT_global_store_requests] + 2);
        assert_int_equal(values[COUNT_load], 2 * one[COUNT_load] + 2);
        assert_true(values[COUNT_instructions] > 2 * one[COUNT_instructions]);
    }
    WORKS(launch_threads(f.increment, 1, f.out));
    swgpuCounters(values, COUNTS);
    assert_memory_equal(values, one, sizeof one);
    WORKS(cuGraphExecDestroy(exec));
}

static void leave(void)
{
    WORKS(cuMemFree(f.out));
    WORKS(cuModuleUnload(f.module));
    WORKS(cuCtxPopCurrent(NULL));
    WORKS(cuDevicePrimaryCtxRelease(0));
}

static void leaks_are_found(void **state)
{
    (void)state;
    CUstream second;
    open_all_clean();
    unsigned before = finding_count();
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    WORKS(launch_threads(f.increment, 1, f.out));
    WORKS(cuGraphExecDestroy(end_executable()));
    leave();
    assert_int_equal(finding_count(), before);

    open_all_clean();
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    WORKS(launch_threads(f.increment, 1, f.out));
    const CUgraph graph = end();
    leave();
    assert_int_equal(finding_count(), before + 1);
    assert_string_equal(last_finding(), "leak: 1 graph was never destroyed");
    REFUSES(INVALID_VALUE, cuGraphDestroy(graph)); /* gone with its context */

    open_all_clean();
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    end_executable();
    WORKS(cuStreamBeginCapture(f.stream, GLOBAL));
    end_executable();
    leave();
    assert_int_equal(finding_count(), before + 2);
    assert_string_equal(last_finding(), "leak: 2 executable graphs were never destroyed");

    open_all_clean();
    WORKS(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    WORKS(cuStreamBeginCapture(f.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(launch_threads(f.increment, 1, f.out));
    WORKS(cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_RELAXED));
    leave();
    assert_int_equal(finding_count(), before + 3);
    assert_string_equal(last_finding(), "leak: 2 stream captures were never ended");
    open_all_clean(); /* what began in a context that is gone forbids nothing */
    leave();

    set_only("CHECKS", "race");
    open_all();
    WORKS(cuStreamBeginCapture(f.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    leave();
    assert_int_equal(finding_count(), before + 3);
}

/* ---- several threads ---- */

/* Each captures and launches its own graph, of one kernel and one word. */
static void *graph_in_a_thread(void *user)
{
    const CUdeviceptr at = f.out + 4 * (uintptr_t)user;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    CUcontext context;
    CUstream stream = NULL;
    void *parameters[] = {(void *)&at};
    uintptr_t wrong = cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || cuCtxPushCurrent(context) != CUDA_SUCCESS;
    wrong += cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS;
    wrong += cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
    for (int round = 0; round < 20; round++) {
        CUgraph graph = NULL;
        CUgraphExec exec = NULL;
        wrong += cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) != CUDA_SUCCESS;
        for (int i = 0; i < 3; i++)
            wrong += cuLaunchKernel(f.increment, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL) != CUDA_SUCCESS;
        wrong += cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS;
        wrong += cuGraphInstantiateWithFlags(&exec, graph, 0) != CUDA_SUCCESS;
        wrong += cuGraphLaunch(exec, stream) != CUDA_SUCCESS || cuStreamSynchronize(stream) != CUDA_SUCCESS;
        wrong += cuGraphDestroy(graph) != CUDA_SUCCESS || cuGraphExecDestroy(exec) != CUDA_SUCCESS;
    }
    wrong += cuStreamDestroy(stream) != CUDA_SUCCESS || cuDevicePrimaryCtxRelease(0) != CUDA_SUCCESS;
    return (void *)wrong;
}

static void graphs_of_several_threads(void **state)
{
    (void)state;
    open_all_clean();
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, graph_in_a_thread, (void *)i), 0);
    for (int i = 0; i < 3; i++) {
        void *wrong = &f;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    for (unsigned i = 0; i < 4; i++) assert_int_equal(word(i), i < 3 ? 60 : 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(launches_are_recorded, close_all),
        cmocka_unit_test_teardown(parameters_are_copied, close_all),
        cmocka_unit_test_teardown(nodes_run_in_order, close_all),
        cmocka_unit_test_teardown(made_executable, close_all),
        cmocka_unit_test_teardown(launched_while_another_is_captured, close_all),
        cmocka_unit_test_teardown(failures_while_captured, close_all),
        cmocka_unit_test_teardown(limits_hold_at_the_launch, close_all),
        cmocka_unit_test_teardown(unloaded_kernels_are_found, close_all),
        cmocka_unit_test_teardown(faults_of_nodes, close_all),
        cmocka_unit_test_teardown(faults_of_the_graphs_context, close_all),
        cmocka_unit_test_teardown(operands_belong_to_the_node, close_all),
        cmocka_unit_test_teardown(counters_of_a_graph, close_all),
        cmocka_unit_test_teardown(leaks_are_found, close_all),
        cmocka_unit_test_teardown(graphs_of_several_threads, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
