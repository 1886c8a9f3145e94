/* The rules of stream capture; see capture.h.
 *
 * A capture is joined if no stream in it holds work that the first stream does not come after. Each stream counts its own
 * nodes and knows, for every other stream of the capture, how many of its nodes come before it; events carry that along. */
#include "capture.h"

#include "inject.h"

#include <stdlib.h>

struct gpu_capture {
    gpu_context *context;
    gpu_object *streams[CAPTURE_STREAMS]; /* it began in the first */
    unsigned stream_count;
    CUstreamCaptureMode mode;
    uint64_t thread; /* that began it */
    int is_invalid;
    entry_id culprit; /* the call that made it invalid */
    node_list *nodes;
    gpu_capture *next;
};

static _Thread_local CUstreamCaptureMode thread_mode; /* CU_STREAM_CAPTURE_MODE_GLOBAL is 0 */
static _Thread_local uint64_t thread_number;
static uint64_t threads;

static const char *const mode_names[] = {"global", "thread-local", "relaxed"};

static uint64_t this_thread(void)
{
    if (!thread_number) thread_number = ++threads;
    return thread_number;
}

static int is_legacy(CUstream stream)
{
    return !stream || stream == CU_STREAM_LEGACY;
}

static const char *call_name(void)
{
    return inject_symbol(gpu.entry);
}

static void invalidate(gpu_capture *c)
{
    if (!c->is_invalid) c->culprit = gpu.entry;
    c->is_invalid = 1;
}

static CUresult fail_invalid(const gpu_capture *c)
{
    return state_fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "%s failed while it went on", inject_symbol(c->culprit));
}

/* ---- what is forbidden ---- */

static int forbids_unsafe(const gpu_capture *c)
{
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED || c->mode == CU_STREAM_CAPTURE_MODE_RELAXED) return 0;
    if (c->thread == this_thread()) return 1;
    return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

static CUresult check_unsafe(void)
{
    const gpu_capture *found = NULL;
    for (gpu_capture *c = gpu.captures; c; c = c->next) {
        if (!forbids_unsafe(c)) continue;
        invalidate(c);
        found = c;
    }
    if (!found) return CUDA_SUCCESS;
    return state_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "%s, while %s thread captures a stream in %s mode", call_name(),
                      found->thread == this_thread() ? "this" : "another", mode_names[found->mode]);
}

static int has_blocking(const gpu_capture *c)
{
    for (unsigned i = 0; i < c->stream_count; i++)
        if (!(c->streams[i]->flags & CU_STREAM_NON_BLOCKING)) return 1;
    return 0;
}

static CUresult check_legacy(int invalidates)
{
    int found = 0;
    for (gpu_capture *c = gpu.captures; c; c = c->next) {
        if (c->context != state_current() || !has_blocking(c)) continue;
        if (invalidates) invalidate(c);
        found = 1;
    }
    if (!found) return CUDA_SUCCESS;
    return state_fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "%s works in the legacy stream, which comes after a stream that is "
                      "captured; with CU_STREAM_NON_BLOCKING it would not", call_name());
}

static CUresult check_context(void)
{
    int found = 0;
    for (gpu_capture *c = gpu.captures; c; c = c->next) {
        if (c->context != state_current()) continue;
        invalidate(c);
        found = 1;
    }
    if (!found) return CUDA_SUCCESS;
    return state_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "%s, while a stream of the context is captured", call_name());
}

CUresult capture_check_call(unsigned needs)
{
    CUresult result = (needs & UNSAFE_IN_LEGACY) == UNSAFE_IN_LEGACY ? check_legacy(1) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && (needs & UNSAFE_FOR_ALL) == UNSAFE_FOR_ALL) result = check_context();
    return result == CUDA_SUCCESS && (needs & UNSAFE) == UNSAFE ? check_unsafe() : result;
}

CUresult capture_use(CUstream stream, gpu_object **captured)
{
    *captured = NULL;
    if (!gpu.captures) return CUDA_SUCCESS;
    if (is_legacy(stream)) return check_legacy(1);
    gpu_object *o = state_find(HANDLE_STREAM, stream);
    if (!o || !o->capture) return CUDA_SUCCESS;
    if (o->capture->is_invalid) return fail_invalid(o->capture);
    *captured = o;
    return CUDA_SUCCESS;
}

CUresult capture_check_stream(CUstream stream)
{
    gpu_object *captured;
    const CUresult result = capture_use(stream, &captured);
    if (result != CUDA_SUCCESS) return result;
    if (!captured) return check_unsafe();
    invalidate(captured->capture);
    return state_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "%s of a stream that is captured; what it holds will not run",
                      call_name());
}

CUresult capture_check_recorded(const gpu_object *event)
{
    if (!event->is_captured) return CUDA_SUCCESS;
    if (event->capture) invalidate(event->capture);
    return state_fail(CUDA_ERROR_CAPTURED_EVENT, "%s of an event that was last recorded in a capture", call_name());
}

CUresult capture_check_event(const gpu_object *event)
{
    const CUresult result = capture_check_recorded(event);
    return result == CUDA_SUCCESS ? check_unsafe() : result;
}

CUresult capture_check_destroy(const gpu_object *stream)
{
    if (!stream->capture) return CUDA_SUCCESS;
    invalidate(stream->capture);
    return state_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the stream is captured; end that first");
}

CUresult capture_exchange_mode(CUstreamCaptureMode *mode)
{
    if ((unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return state_fail(CUDA_ERROR_INVALID_VALUE, "capture mode %u", (unsigned)*mode);
    const CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* ---- beginning and end ---- */

static int join(gpu_capture *c, gpu_object *stream)
{
    if (c->stream_count == CAPTURE_STREAMS) return 0;
    memset(stream->reached, 0, sizeof stream->reached);
    stream->place = c->stream_count;
    stream->capture = c;
    c->streams[c->stream_count++] = stream;
    return 1;
}

/* Its streams are ordinary ones again, and its events stand for nothing. */
static void free_capture(gpu_capture *c)
{
    gpu_capture **at = &gpu.captures;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    for (gpu_object *o = c->context->objects; o; o = o->next)
        if (o->capture == c) o->capture = NULL;
    nodes_release(c->nodes);
    free(c);
}

CUresult capture_begin(CUstream stream, CUstreamCaptureMode mode)
{
    gpu_object *o = state_find(HANDLE_STREAM, stream);
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return state_fail(CUDA_ERROR_INVALID_VALUE, "capture mode %u", (unsigned)mode);
    if (is_legacy(stream)) return state_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the legacy stream cannot be captured");
    if (!o && stream == CU_STREAM_PER_THREAD)
        return state_fail(CUDA_ERROR_NOT_SUPPORTED, "a software GPU does not capture the per-thread stream; create one");
    if (!o) return state_fail(CUDA_ERROR_INVALID_HANDLE, "no such stream");
    if (o->context->fault.code != CUDA_SUCCESS) return o->context->fault.code;
    if (o->capture) {
        invalidate(o->capture);
        return state_fail(CUDA_ERROR_ILLEGAL_STATE, "the stream is captured already");
    }
    gpu_capture *c = calloc(1, sizeof *c);
    if (c) c->nodes = nodes_create();
    if (!c || !c->nodes) {
        free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->context = o->context;
    c->mode = mode;
    c->thread = this_thread();
    c->next = gpu.captures;
    gpu.captures = c;
    join(c, o);
    return CUDA_SUCCESS;
}

static CUresult check_end(const gpu_object *o)
{
    if (!o) return state_fail(CUDA_ERROR_INVALID_HANDLE, "no such stream");
    if (!o->capture) return state_fail(CUDA_ERROR_ILLEGAL_STATE, "the stream is not captured");
    gpu_capture *c = o->capture;
    const int is_other = c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != this_thread();
    if (c->streams[0] == o && !is_other) return CUDA_SUCCESS;
    invalidate(c);
    if (is_other) return state_fail(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the mode is %s", mode_names[c->mode]);
    return state_fail(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "this stream joined it later");
}

/* Work that the first stream does not come after. */
static CUresult check_joined(const gpu_capture *c)
{
    for (unsigned i = 1; i < c->stream_count; i++) {
        const uint32_t known = c->streams[0]->reached[i], all = c->streams[i]->reached[i];
        if (known < all)
            return state_fail(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "stream %u of the capture holds work (nodes: %u) that the "
                              "first stream does not wait for; record an event after it, and let that stream wait", i + 1,
                              all - known);
    }
    return CUDA_SUCCESS;
}

CUresult capture_end(CUstream stream, CUgraph *graph)
{
    const gpu_object *o = state_find(HANDLE_STREAM, stream);
    *graph = NULL;
    CUresult result = check_end(o);
    if (result != CUDA_SUCCESS) return result;
    gpu_capture *c = o->capture;
    result = c->is_invalid ? fail_invalid(c) : check_joined(c);
    if (result == CUDA_SUCCESS) {
        gpu_graph *g = graph_create(c->context, HANDLE_GRAPH, c->nodes);
        if (g) *graph = g->handle;
        else result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    free_capture(c);
    return result;
}

unsigned capture_end_all(gpu_context *context)
{
    unsigned count = 0;
    for (gpu_capture *c = gpu.captures, *next; c; c = next) {
        next = c->next;
        if (c->context != context) continue;
        free_capture(c);
        count++;
    }
    return count;
}

CUresult capture_status(CUstream stream, CUstreamCaptureStatus *status)
{
    const gpu_object *o = state_find(HANDLE_STREAM, stream);
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (is_legacy(stream)) return check_legacy(0);
    if (o && o->capture)
        *status = o->capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

void capture_invalidate(const gpu_object *stream)
{
    invalidate(stream->capture);
}

/* ---- work and events ---- */

gpu_node *capture_add(gpu_object *stream, CUgraphNodeType type)
{
    gpu_node *n = nodes_add(stream->capture->nodes, type);
    if (n) stream->reached[stream->place]++;
    return n;
}

void capture_record(gpu_object *event, const gpu_object *captured)
{
    event->is_captured = captured != NULL;
    event->capture = captured ? captured->capture : NULL;
    if (captured) memcpy(event->reached, captured->reached, sizeof event->reached);
}

/* Makes the stream a part of a capture, unless it is. */
static CUresult join_event(CUstream stream, gpu_object *o, gpu_capture *c)
{
    if (o && o->capture == c) return CUDA_SUCCESS;
    if (is_legacy(stream)) return state_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the legacy stream cannot join a capture");
    if (!o) return state_fail(CUDA_ERROR_NOT_SUPPORTED, "a software GPU does not capture the per-thread stream; create one");
    if (o->capture) return state_fail(CUDA_ERROR_STREAM_CAPTURE_MERGE, "the stream is in one, the event in another");
    if (o->context != c->context) return state_fail(CUDA_ERROR_NOT_SUPPORTED, "a software GPU captures one context's streams");
    if (join(c, o)) return CUDA_SUCCESS;
    return state_fail(CUDA_ERROR_NOT_SUPPORTED, "a software GPU captures at most %d streams together", CAPTURE_STREAMS);
}

CUresult capture_wait(CUstream stream, const gpu_object *event)
{
    gpu_object *captured, *o = state_find(HANDLE_STREAM, stream);
    gpu_capture *c = event->capture;
    CUresult result = capture_use(stream, &captured);
    if (result != CUDA_SUCCESS || (!captured && !event->is_captured)) return result;
    if (!event->is_captured)
        result = state_fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "the stream is captured; the event stands for work that is not");
    else if (!c) result = state_fail(CUDA_ERROR_CAPTURED_EVENT, "the event was last recorded in a capture that is over");
    else result = c->is_invalid ? fail_invalid(c) : join_event(stream, o, c);
    if (result != CUDA_SUCCESS) {
        if (captured) invalidate(captured->capture);
        if (c) invalidate(c);
        return result;
    }
    for (unsigned i = 0; i < CAPTURE_STREAMS; i++)
        if (event->reached[i] > o->reached[i]) o->reached[i] = event->reached[i];
    return CUDA_SUCCESS;
}
