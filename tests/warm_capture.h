/* Captures for tests of the library on the software GPU (warm_fixture.h): begun with what a captured call may not do made to
 * fail, ended as an executable graph, and replayed. */
#ifndef JG_TESTS_WARM_CAPTURE_H
#define JG_TESTS_WARM_CAPTURE_H

#include "warm_fixture.h"

#define FORBIDDEN                                                                                                             \
    "cuModuleLoadDataEx:1+:CUDA_ERROR_NOT_PERMITTED,cuModuleUnload:1+:CUDA_ERROR_NOT_PERMITTED,"                              \
    "cuModuleGetFunction:1+:CUDA_ERROR_NOT_PERMITTED,cuMemAlloc:1+:CUDA_ERROR_NOT_PERMITTED,"                                 \
    "cuMemFree:1+:CUDA_ERROR_NOT_PERMITTED,cuMemcpy:1+:CUDA_ERROR_NOT_PERMITTED,cuMemcpyAsync:1+:CUDA_ERROR_NOT_PERMITTED,"   \
    "cuStreamSynchronize:1+:CUDA_ERROR_NOT_PERMITTED,cuStreamQuery:1+:CUDA_ERROR_NOT_PERMITTED,"                              \
    "cuCtxSynchronize:1+:CUDA_ERROR_NOT_PERMITTED,cuEventSynchronize:1+:CUDA_ERROR_NOT_PERMITTED"

static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                            CU_STREAM_CAPTURE_MODE_RELAXED};
enum { MODES = 3 };

static inline CUstream create_stream(void)
{
    CUstream stream;
    WORKS(gpu.create_stream(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

/* From here to the end of the capture calls fail that drain the device or touch its memory. */
static inline void begin(CUstream stream, CUstreamCaptureMode mode)
{
    WORKS(gpu.begin_capture(stream, mode));
    WORKS((CUresult)gpu.set_faults(FORBIDDEN));
}

static inline void allow_all(void)
{
    WORKS((CUresult)gpu.set_faults(""));
}

static inline CUstreamCaptureStatus status_of(CUstream stream)
{
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
    WORKS(gpu.is_capturing(stream, &status));
    return status;
}

/* Ends a capture that is valid, and has so many launches; returns the executable graph. */
static inline CUgraphExec end(CUstream stream, size_t launches)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    size_t nodes = 0;
    assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    WORKS(gpu.end_capture(stream, &graph));
    allow_all();
    WORKS(gpu.graph_nodes(graph, NULL, &nodes));
    assert_int_equal(nodes, launches);
    WORKS(gpu.instantiate(&exec, graph, 0));
    WORKS(gpu.destroy_graph(graph));
    return exec;
}

static inline void replay(CUgraphExec exec, CUstream stream)
{
    WORKS(gpu.launch_graph(exec, stream));
    WORKS(gpu.synchronize(stream));
}

/* A graph of one product, by jg_gemm or, if there is one, by the plan. */
static inline CUgraphExec capture_one(CUstream stream, CUstreamCaptureMode mode, const product *x, const jg_plan *plan)
{
    const jg_operands data = product_operands(x, stream);
    begin(stream, mode);
    assert_status(plan ? jg_plan_run(plan, &data) : jg_gemm(x->context, &x->ref.problem, &data), JG_OK);
    return end(stream, 1);
}

static inline void check_replay(CUgraphExec exec, CUstream stream, product *x, uint64_t seed)
{
    product_refill(x, seed);
    replay(exec, stream);
    product_check(x);
}

#endif
