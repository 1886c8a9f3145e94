/* Entry points of stream capture. */
#include "capture.h"

#pragma GCC visibility push(default)

CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    BEGIN(cuStreamBeginCapture_v2);
    return state_end(capture_begin(stream, mode));
}

CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    BEGIN(cuStreamEndCapture);
    return state_end(graph ? capture_end(stream, graph) : state_need(graph));
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    BEGIN(cuStreamIsCapturing);
    if (!status) return state_end(state_need(status));
    if (!state_stream_context(stream)) return state_end(state_fail(CUDA_ERROR_INVALID_HANDLE, "no such stream"));
    return state_end(capture_status(stream, status));
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    BEGIN(cuThreadExchangeStreamCaptureMode);
    return state_end(mode ? capture_exchange_mode(mode) : state_need(mode));
}

#pragma GCC visibility pop
