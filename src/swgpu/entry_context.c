/* Entry points of contexts, streams and events. All work is done when a call returns, so there is never anything to wait
 * for: what waits only reports faults, and what a capture forbids. */
#include "capture.h"

#include <stdlib.h>

static CUresult add_object(handle_kind kind, unsigned flags, void **out)
{
    gpu_context *c = state_current();
    gpu_object *o = calloc(1, sizeof *o);
    if (o) o->handle = state_add_handle(kind, o);
    if (!o || !o->handle) {
        free(o);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    o->context = c;
    o->flags = flags;
    o->next = c->objects;
    c->objects = o;
    *out = o->handle;
    return CUDA_SUCCESS;
}

static CUresult remove_object(handle_kind kind, const void *handle, const char *what)
{
    gpu_object *o = state_find(kind, handle);
    if (!o) return state_fail(CUDA_ERROR_INVALID_HANDLE, "no such %s", what);
    gpu_object **at = &o->context->objects;
    while (*at != o) at = &(*at)->next;
    *at = o->next;
    state_remove_handle(handle);
    free(o);
    return CUDA_SUCCESS;
}

/* A stream or event may belong to another context than the current one: then it is that one's fault that counts. */
static CUresult check_stream(CUstream stream)
{
    const gpu_context *c = state_stream_context(stream);
    return c ? c->fault.code : state_fail(CUDA_ERROR_INVALID_HANDLE, "no such stream");
}

static CUresult check_event(const gpu_object *o)
{
    return o ? o->context->fault.code : state_fail(CUDA_ERROR_INVALID_HANDLE, "no such event");
}

static CUresult wait_for_stream(CUstream stream)
{
    const CUresult result = check_stream(stream);
    return result == CUDA_SUCCESS ? capture_check_stream(stream) : result;
}

static CUresult wait_for_event(const gpu_object *o)
{
    const CUresult result = check_event(o);
    return result == CUDA_SUCCESS ? capture_check_event(o) : result;
}

static CUresult create_stream(CUstream *stream, unsigned flags)
{
    CUresult result = state_need(stream);
    if (result == CUDA_SUCCESS && flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        result = state_fail(CUDA_ERROR_INVALID_VALUE, "stream flags %u", flags);
    return result == CUDA_SUCCESS ? add_object(HANDLE_STREAM, flags, (void **)stream) : result;
}

static CUresult destroy_stream(CUstream stream)
{
    const gpu_object *o = state_find(HANDLE_STREAM, stream);
    const CUresult result = o ? capture_check_destroy(o) : CUDA_SUCCESS;
    return result == CUDA_SUCCESS ? remove_object(HANDLE_STREAM, stream, "stream") : result;
}

static CUresult record(gpu_object *o, CUstream stream)
{
    gpu_object *captured;
    CUresult result = check_event(o);
    if (result == CUDA_SUCCESS) result = check_stream(stream);
    if (result != CUDA_SUCCESS) return result;
    if (o->context != state_stream_context(stream))
        return state_fail(CUDA_ERROR_INVALID_HANDLE, "the event and the stream belong to different contexts");
    result = capture_use(stream, &captured);
    if (result != CUDA_SUCCESS) return result;
    capture_record(o, captured);
    clock_gettime(CLOCK_MONOTONIC, &o->time);
    o->recorded = 1;
    return CUDA_SUCCESS;
}

static CUresult elapsed(float *milliseconds, const gpu_object *from, const gpu_object *to)
{
    if (!milliseconds) return state_need(NULL);
    if (!from || !to) return state_fail(CUDA_ERROR_INVALID_HANDLE, "no such event");
    CUresult result = capture_check_recorded(from);
    if (result == CUDA_SUCCESS) result = capture_check_recorded(to);
    if (result != CUDA_SUCCESS) return result;
    if (!from->recorded || !to->recorded || (from->flags | to->flags) & CU_EVENT_DISABLE_TIMING)
        return state_fail(CUDA_ERROR_INVALID_HANDLE, "an event was not recorded, or has no time");
    *milliseconds = (float)((double)(to->time.tv_sec - from->time.tv_sec) * 1e3 +
                            (double)(to->time.tv_nsec - from->time.tv_nsec) * 1e-6);
    return CUDA_SUCCESS;
}

static CUresult too_deep(void)
{
    return state_fail(CUDA_ERROR_OUT_OF_MEMORY, "this thread has pushed too many contexts");
}

static CUresult retain_primary(CUcontext *context)
{
    if (!gpu.primary) {
        gpu_context *c = state_create_context(0, gpu.primary_handle);
        if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
        gpu.primary = c;
        gpu.primary_handle = c->handle;
    }
    gpu.primary_references++;
    *context = gpu.primary_handle;
    return CUDA_SUCCESS;
}

static CUresult release_primary(void)
{
    if (!gpu.primary_references) return state_fail(CUDA_ERROR_INVALID_CONTEXT, "the primary context is not retained");
    if (--gpu.primary_references) return CUDA_SUCCESS;
    state_destroy_context(gpu.primary);
    gpu.primary = NULL;
    return CUDA_SUCCESS;
}

static CUresult create(CUcontext *context, unsigned flags)
{
    gpu_context *c = state_create_context(flags, NULL);
    if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
    if (!state_push(c->handle)) {
        state_destroy_context(c);
        return too_deep();
    }
    *context = c->handle;
    return CUDA_SUCCESS;
}

static CUresult destroy(CUcontext context)
{
    gpu_context *c = state_find(HANDLE_CONTEXT, context);
    if (!c || c == gpu.primary)
        return state_fail(CUDA_ERROR_INVALID_CONTEXT, c ? "the primary context is released, not destroyed" : "no such context");
    if (state_top() == context) state_pop();
    state_destroy_context(c);
    return CUDA_SUCCESS;
}

/* A primary context that is not alive can be made current too; it may live again. */
static CUresult push(CUcontext context)
{
    if (!context) return state_need(context);
    if (!state_is_handle(HANDLE_CONTEXT, context)) return state_fail(CUDA_ERROR_INVALID_CONTEXT, "no such context");
    return state_push(context) ? CUDA_SUCCESS : too_deep();
}

#pragma GCC visibility push(default)

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    BEGIN(cuDevicePrimaryCtxRetain);
    CUresult result = state_need(context);
    if (result == CUDA_SUCCESS) result = state_check_device(device);
    return state_end(result == CUDA_SUCCESS ? retain_primary(context) : result);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    BEGIN(cuDevicePrimaryCtxRelease_v2);
    const CUresult result = state_check_device(device);
    return state_end(result == CUDA_SUCCESS ? release_primary() : result);
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    BEGIN(cuDevicePrimaryCtxGetState);
    if (!flags || !active) return state_end(state_need(NULL));
    const CUresult result = state_check_device(device);
    if (result == CUDA_SUCCESS) {
        *flags = 0;
        *active = gpu.primary != NULL;
    }
    return state_end(result);
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    BEGIN(cuCtxCreate_v2);
    CUresult result = state_need(context);
    if (result == CUDA_SUCCESS) result = state_check_device(device);
    return state_end(result == CUDA_SUCCESS ? create(context, flags) : result);
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext context)
{
    BEGIN(cuCtxDestroy_v2);
    return state_end(destroy(context));
}

/* Replaces the top of the stack; null takes it off. */
CUresult CUDAAPI cuCtxSetCurrent(CUcontext context)
{
    BEGIN(cuCtxSetCurrent);
    if (context && !state_is_handle(HANDLE_CONTEXT, context))
        return state_end(state_fail(CUDA_ERROR_INVALID_CONTEXT, "no such context"));
    state_pop();
    return state_end(context ? push(context) : CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context)
{
    BEGIN(cuCtxGetCurrent);
    if (context) *context = state_top();
    return state_end(state_need(context));
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context)
{
    BEGIN(cuCtxPushCurrent_v2);
    return state_end(push(context));
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *context)
{
    BEGIN(cuCtxPopCurrent_v2);
    const CUcontext popped = state_pop();
    if (!popped) return state_end(state_fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current"));
    if (context) *context = popped;
    return state_end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device)
{
    BEGIN(cuCtxGetDevice);
    if (!state_top()) return state_end(state_fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current"));
    if (device) *device = 0;
    return state_end(state_need(device));
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
    BEGIN(cuCtxSynchronize);
    return state_end(CUDA_SUCCESS);
}

/* ---- streams ---- */

CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned flags)
{
    BEGIN(cuStreamCreate);
    return state_end(create_stream(stream, flags));
}

/* Priorities change nothing: work is done in the order of the calls. */
CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    BEGIN(cuStreamCreateWithPriority);
    (void)priority;
    return state_end(create_stream(stream, flags));
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream stream)
{
    BEGIN(cuStreamDestroy_v2);
    return state_end(destroy_stream(stream));
}

CUresult CUDAAPI cuStreamQuery(CUstream stream)
{
    BEGIN(cuStreamQuery);
    return state_end(wait_for_stream(stream));
}

CUresult CUDAAPI cuStreamSynchronize(CUstream stream)
{
    BEGIN(cuStreamSynchronize);
    return state_end(wait_for_stream(stream));
}

/* What the event stands for is done, unless it belongs to a capture. */
CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    BEGIN(cuStreamWaitEvent);
    const gpu_object *o = state_find(HANDLE_EVENT, event);
    CUresult result = check_event(o);
    if (result == CUDA_SUCCESS) result = check_stream(stream);
    if (result == CUDA_SUCCESS && flags) result = state_fail(CUDA_ERROR_INVALID_VALUE, "flags %u of a wait", flags);
    return state_end(result == CUDA_SUCCESS ? capture_wait(stream, o) : result);
}

/* ---- events ---- */

CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned flags)
{
    BEGIN(cuEventCreate);
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    CUresult result = state_need(event);
    if (result == CUDA_SUCCESS && flags & ~known) result = state_fail(CUDA_ERROR_INVALID_VALUE, "event flags %u", flags);
    return state_end(result == CUDA_SUCCESS ? add_object(HANDLE_EVENT, flags, (void **)event) : result);
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream)
{
    BEGIN(cuEventRecord);
    return state_end(record(state_find(HANDLE_EVENT, event), stream));
}

CUresult CUDAAPI cuEventSynchronize(CUevent event)
{
    BEGIN(cuEventSynchronize);
    return state_end(wait_for_event(state_find(HANDLE_EVENT, event)));
}

CUresult CUDAAPI cuEventQuery(CUevent event)
{
    BEGIN(cuEventQuery);
    return state_end(wait_for_event(state_find(HANDLE_EVENT, event)));
}

/* The host's time: a software GPU has no clock of its own. */
CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    BEGIN(cuEventElapsedTime);
    return state_end(elapsed(milliseconds, state_find(HANDLE_EVENT, start), state_find(HANDLE_EVENT, end)));
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent event)
{
    BEGIN(cuEventDestroy_v2);
    return state_end(remove_object(HANDLE_EVENT, event, "event"));
}

#pragma GCC visibility pop
