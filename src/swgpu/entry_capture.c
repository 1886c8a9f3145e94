/* Entry points of stream capture. */
#include "state.h"

static _Thread_local CUstreamCaptureMode thread_mode; /* CU_STREAM_CAPTURE_MODE_GLOBAL is 0 */

static CUresult exchange(CUstreamCaptureMode *mode)
{
    if (!mode) return state_need(mode);
    if ((unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return state_fail(CUDA_ERROR_INVALID_VALUE, "capture mode %u", (unsigned)*mode);
    const CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

#pragma GCC visibility push(default)

CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    BEGIN(cuStreamIsCapturing);
    if (!status) return state_end(state_need(status));
    if (!state_stream_context(stream)) return state_end(state_fail(CUDA_ERROR_INVALID_HANDLE, "no such stream"));
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return state_end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    BEGIN(cuThreadExchangeStreamCaptureMode);
    return state_end(exchange(mode));
}

#pragma GCC visibility pop
