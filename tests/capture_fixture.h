/* For the tests of stream capture: a context with two streams that do not block the legacy one, kernels, events, and what
 * begins and ends a capture. */
#ifndef JG_TESTS_CAPTURE_FIXTURE_H
#define JG_TESTS_CAPTURE_FIXTURE_H

#include "driver_fixture.h"

enum {
    GLOBAL = CU_STREAM_CAPTURE_MODE_GLOBAL,
    LOCAL = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    RELAXED = CU_STREAM_CAPTURE_MODE_RELAXED
};
enum {
    NONE = CU_STREAM_CAPTURE_STATUS_NONE,
    ACTIVE = CU_STREAM_CAPTURE_STATUS_ACTIVE,
    INVALID = CU_STREAM_CAPTURE_STATUS_INVALIDATED
};

static struct {
    CUmodule module, spare;
    CUfunction tid, none;
    CUdeviceptr out;
    CUstream captured, other; /* neither blocks the legacy stream */
    CUevent event, theirs;
    CUcontext context;
} f;

static inline void open_all(void)
{
    f.context = open_clean();
    f.module = load_text(HEADER KERNEL_TID KERNEL_NONE);
    f.tid = get_function(f.module, "tid");
    f.none = get_function(f.module, "none");
    f.out = allocate(256);
    WORKS(cuMemsetD8(f.out, 0, 256));
    WORKS(cuStreamCreate(&f.captured, CU_STREAM_NON_BLOCKING));
    WORKS(cuStreamCreate(&f.other, CU_STREAM_NON_BLOCKING));
    WORKS(cuEventCreate(&f.event, 0));
    WORKS(cuEventCreate(&f.theirs, 0));
}

static inline void set_mode(unsigned wanted)
{
    CUstreamCaptureMode mode = (CUstreamCaptureMode)wanted;
    WORKS(cuThreadExchangeStreamCaptureMode(&mode));
}

static inline int close_captures(void **state)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    cuThreadExchangeStreamCaptureMode(&mode);
    return close_all(state);
}

static inline CUresult begin(CUstream stream, unsigned mode)
{
    return cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode);
}

static inline int status_of(CUstream stream)
{
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)77;
    WORKS(cuStreamIsCapturing(stream, &status));
    return (int)status;
}

static inline CUresult launch_in(CUstream stream)
{
    return cuLaunchKernel(f.none, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
}

static inline size_t node_count(CUgraph graph)
{
    size_t count = 0;
    WORKS(cuGraphGetNodes(graph, NULL, &count));
    return count;
}

/* Ends a capture that is valid, and has so many nodes. */
static inline void end_well(CUstream stream, size_t nodes)
{
    CUgraph graph = NULL;
    WORKS(cuStreamEndCapture(stream, &graph));
    assert_non_null(graph);
    assert_int_equal(node_count(graph), nodes);
    WORKS(cuGraphDestroy(graph));
    assert_int_equal(status_of(stream), NONE);
}

static inline void end_badly(CUstream stream, CUresult code)
{
    CUgraph graph = (CUgraph)stream;
    assert_int_equal(cuStreamEndCapture(stream, &graph), code);
    assert_null(graph);
    assert_int_equal(status_of(stream), NONE);
}

static inline void end_invalid(CUstream stream)
{
    assert_int_equal(status_of(stream), INVALID);
    end_badly(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

#endif
