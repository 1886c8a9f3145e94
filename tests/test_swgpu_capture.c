/* Stream capture on the software GPU: which calls it forbids, to whom and with which code, and how it becomes invalid. How
 * streams join it is tested in test_swgpu_capture_streams.c, what it records in test_swgpu_graph.c.
 *
 * The codes are those of cuda.h's documentation; what that leaves open is marked as an assumption in src/swgpu/README.md. */
#include "capture_fixture.h"

#include <pthread.h>

/* ---- another thread ---- */

typedef struct job {
    CUresult (*call)(void);
    CUstreamCaptureMode mode;
    CUresult result;
} job;

static void *work(void *user)
{
    job *j = user;
    if (cuCtxPushCurrent(f.context) != CUDA_SUCCESS || cuThreadExchangeStreamCaptureMode(&j->mode) != CUDA_SUCCESS) return user;
    j->result = j->call();
    return NULL;
}

/* Calls in a new thread of this mode. */
static CUresult elsewhere(unsigned mode, CUresult (*call)(void))
{
    job j = {call, (CUstreamCaptureMode)mode, CUDA_ERROR_UNKNOWN};
    pthread_t thread;
    void *wrong = &j;
    assert_int_equal(pthread_create(&thread, NULL, work, &j), 0);
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_null(wrong);
    assert_int_equal(j.mode, GLOBAL); /* each thread begins with it, whatever this one has */
    return j.result;
}

/* ---- beginning and end ---- */

static void statuses(void **state)
{
    (void)state;
    open_all();
    CUstreamCaptureStatus status;
    CUgraph graph;
    assert_int_equal(status_of(f.captured), NONE);
    assert_int_equal(status_of(NULL), NONE);
    assert_int_equal(status_of(CU_STREAM_LEGACY), NONE);
    assert_int_equal(status_of(CU_STREAM_PER_THREAD), NONE);
    REFUSES(INVALID_VALUE, cuStreamIsCapturing(f.captured, NULL));
    REFUSES(INVALID_HANDLE, cuStreamIsCapturing((CUstream)f.event, &status));
    REFUSES(INVALID_VALUE, begin(f.captured, 3));
    REFUSES(INVALID_HANDLE, begin((CUstream)f.event, GLOBAL));
    REFUSES(STREAM_CAPTURE_UNSUPPORTED, begin(NULL, GLOBAL));
    REFUSES(STREAM_CAPTURE_UNSUPPORTED, begin(CU_STREAM_LEGACY, RELAXED));
    REFUSES(NOT_SUPPORTED, begin(CU_STREAM_PER_THREAD, RELAXED));
    REFUSES(ILLEGAL_STATE, cuStreamEndCapture(f.captured, &graph));
    REFUSES(INVALID_HANDLE, cuStreamEndCapture(NULL, &graph));
    for (unsigned mode = GLOBAL; mode <= RELAXED; mode++) {
        WORKS(begin(f.captured, mode));
        assert_int_equal(status_of(f.captured), ACTIVE);
        assert_int_equal(status_of(f.other), NONE);
        assert_int_equal(status_of(NULL), NONE);
        REFUSES(INVALID_VALUE, cuStreamEndCapture(f.captured, NULL));
        end_well(f.captured, 0);
    }
    WORKS(begin(f.captured, GLOBAL));
    REFUSES(ILLEGAL_STATE, begin(f.captured, GLOBAL));
    end_invalid(f.captured);
    WORKS(launch_in(f.captured));
    WORKS(cuStreamSynchronize(f.captured));
}

static void modes_are_exchanged(void **state)
{
    (void)state;
    open_all();
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    WORKS(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, GLOBAL);
    mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    WORKS(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, RELAXED);
    mode = (CUstreamCaptureMode)3;
    REFUSES(INVALID_VALUE, cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, 3);
    REFUSES(INVALID_VALUE, cuThreadExchangeStreamCaptureMode(NULL));
    mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    WORKS(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, LOCAL);
}

static CUresult end_here(void)
{
    CUgraph graph = NULL;
    const CUresult result = cuStreamEndCapture(f.captured, &graph);
    if (graph) cuGraphDestroy(graph);
    return result;
}

static void ended_by_another_thread(void **state)
{
    (void)state;
    open_all();
    WORKS(begin(f.captured, RELAXED));
    WORKS(elsewhere(GLOBAL, end_here));
    assert_int_equal(status_of(f.captured), NONE);
    for (unsigned mode = GLOBAL; mode <= LOCAL; mode++) {
        WORKS(begin(f.captured, mode));
        REFUSES(STREAM_CAPTURE_WRONG_THREAD, elsewhere(RELAXED, end_here));
        end_invalid(f.captured);
    }
}

/* ---- calls that are potentially unsafe ---- */

static CUresult call_allocate(void)
{
    CUdeviceptr address = 0;
    const CUresult result = cuMemAlloc(&address, 64);
    if (result == CUDA_SUCCESS) cuMemFree(address);
    return result;
}

static CUresult call_free(void) { return cuMemFree(0); }
static CUresult call_unload(void) { return cuModuleUnload(f.spare); }
static CUresult call_copy(void) { return cuMemcpy(f.out, f.out + 64, 4); }
static CUresult call_copy_d2d(void) { return cuMemcpyDtoD(f.out, f.out + 64, 4); }
static CUresult call_set8(void) { return cuMemsetD8(f.out, 0, 4); }
static CUresult call_set32(void) { return cuMemsetD32(f.out, 0, 1); }
static CUresult call_sync_other(void) { return cuStreamSynchronize(f.other); }
static CUresult call_query_other(void) { return cuStreamQuery(f.other); }
static CUresult call_sync_legacy(void) { return cuStreamSynchronize(NULL); }
static CUresult call_sync_event(void) { return cuEventSynchronize(f.theirs); }
static CUresult call_query_event(void) { return cuEventQuery(f.theirs); }

static CUresult call_copy_h2d(void)
{
    static const char bytes[4];
    return cuMemcpyHtoD(f.out, bytes, 4);
}

static CUresult call_copy_d2h(void)
{
    char bytes[4];
    return cuMemcpyDtoH(bytes, f.out, 4);
}

static CUresult (*const unsafe_calls[])(void) = {
    call_allocate, call_free, call_unload, call_copy, call_copy_h2d, call_copy_d2h, call_copy_d2d, call_set8, call_set32,
    call_sync_other, call_query_other, call_sync_legacy, call_sync_event, call_query_event,
};

/* Each capture's mode against each thread's, for the thread that captures and for another. */
static void unsafe_calls_are_forbidden(void **state)
{
    (void)state;
    open_all();
    static const struct {
        unsigned capture, thread;
        int here, elsewhere; /* forbidden to the thread that captures, and to others */
    } rows[] = {
        {GLOBAL, GLOBAL, 1, 1},  {GLOBAL, LOCAL, 1, 0},  {GLOBAL, RELAXED, 0, 0},
        {LOCAL, GLOBAL, 1, 0},   {LOCAL, LOCAL, 1, 0},   {LOCAL, RELAXED, 0, 0},
        {RELAXED, GLOBAL, 0, 0}, {RELAXED, LOCAL, 0, 0}, {RELAXED, RELAXED, 0, 0},
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        for (size_t j = 0; j < sizeof unsafe_calls / sizeof unsafe_calls[0]; j++) {
            const int is_here = i % 2 == 0, forbidden = is_here ? rows[i / 2].here : rows[i / 2].elsewhere;
            f.spare = load_text(HEADER KERNEL_NONE);
            WORKS(begin(f.captured, rows[i / 2].capture));
            if (is_here) set_mode(rows[i / 2].thread);
            const CUresult result = is_here ? unsafe_calls[j]() : elsewhere(rows[i / 2].thread, unsafe_calls[j]);
            set_mode(GLOBAL);
            if (result != (forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS))
                fail_msg("row %zu, %s, call %zu: %d", i / 2, is_here ? "here" : "elsewhere", j, (int)result);
            if (forbidden) end_invalid(f.captured);
            else end_well(f.captured, 0);
            if (forbidden || unsafe_calls[j] != call_unload) WORKS(cuModuleUnload(f.spare));
        }
    }
}

static void what_is_said(void **state)
{
    (void)state;
    open_all();
    WORKS(begin(f.captured, GLOBAL));
    REFUSES(STREAM_CAPTURE_UNSUPPORTED, call_allocate());
    assert_string_equal(error_text(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED), "not allowed while a stream is captured: cuMemAlloc_v2, "
                        "while this thread captures a stream in global mode");
    REFUSES(STREAM_CAPTURE_INVALIDATED, launch_in(f.captured));
    assert_string_equal(error_text(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED),
                        "an earlier error ended the capture: cuMemAlloc_v2 failed while it went on");
    REFUSES(STREAM_CAPTURE_UNSUPPORTED, call_free()); /* until it is ended; the first that failed is to blame */
    end_invalid(f.captured);
    assert_contains(error_text(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED), "cuMemAlloc_v2 failed");
    WORKS(call_free());
}

/* Each of the captures that forbid a call becomes invalid, no other. */
static void several_captures(void **state)
{
    (void)state;
    open_all();
    CUstream third;
    WORKS(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
    WORKS(begin(f.captured, GLOBAL));
    WORKS(begin(f.other, RELAXED));
    WORKS(begin(third, LOCAL));
    WORKS(launch_in(f.captured));
    WORKS(launch_in(f.other));
    WORKS(launch_in(f.other));
    REFUSES(STREAM_CAPTURE_UNSUPPORTED, elsewhere(GLOBAL, call_allocate));
    assert_int_equal(status_of(third), ACTIVE);
    end_invalid(f.captured);
    WORKS(begin(f.captured, GLOBAL));
    REFUSES(STREAM_CAPTURE_UNSUPPORTED, call_allocate());
    end_invalid(third);
    end_invalid(f.captured);
    end_well(f.other, 2);
}

/* A kernel may be loaded and asked about in a capture; so an H200 does (CUDA 13.0). Work elsewhere goes on. */
static void calls_that_are_allowed(void **state)
{
    (void)state;
    open_all();
    for (unsigned mode = GLOBAL; mode <= RELAXED; mode++) {
        CUmodule module;
        CUfunction function;
        CUstream stream;
        CUevent event;
        CUdeviceptr address;
        size_t bytes, total;
        int number;
        uint32_t seen[2] = {9, 9};
        void *parameters[] = {&f.out};
        WORKS(begin(f.captured, mode));
        WORKS(cuModuleLoadDataEx(&module, HEADER ".global .b8 g[16];\n" KERNEL_TID, 0, NULL, NULL));
        WORKS(cuModuleGetFunction(&function, module, "tid"));
        WORKS(cuModuleGetGlobal(&address, &bytes, module, "g"));
        WORKS(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
        WORKS(cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
        WORKS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&number, function, 32, 0));
        WORKS(cuMemGetInfo(&bytes, &total));
        WORKS(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -1));
        WORKS(cuEventCreate(&event, 0));
        WORKS(cuLaunchKernel(function, 1, 1, 1, 8, 1, 1, 0, stream, parameters, NULL));
        WORKS(cuMemcpyAsync((CUdeviceptr)(uintptr_t)seen, f.out, 8, NULL)); /* the stream that is captured blocks nothing */
        assert_true(seen[0] == 0 && seen[1] == 1);
        WORKS(cuEventRecord(event, stream));
        WORKS(cuStreamWaitEvent(f.other, event, 0));
        WORKS(cuEventDestroy(event));
        WORKS(cuStreamDestroy(stream));
        end_well(f.captured, 0);
        WORKS(cuMemsetD32(f.out, 5, 2));
        WORKS(cuModuleUnload(module));
    }
    REFUSES(INVALID_VALUE, cuStreamCreateWithPriority(NULL, 0, 0));
    CUstream stream;
    REFUSES(INVALID_VALUE, cuStreamCreateWithPriority(&stream, 98, 0));
}

/* ---- what conflicts with a capture whatever the modes ---- */

static CUresult call_sync_captured(void) { return cuStreamSynchronize(f.captured); }
static CUresult call_query_captured(void) { return cuStreamQuery(f.captured); }
static CUresult call_sync_context(void) { return cuCtxSynchronize(); }
static CUresult call_destroy_captured(void) { return cuStreamDestroy(f.captured); }

static void waiting_for_what_is_captured(void **state)
{
    (void)state;
    open_all();
    static CUresult (*const calls[])(void) = {call_sync_captured, call_query_captured, call_sync_context, call_destroy_captured};
    for (size_t i = 0; i < 4 * sizeof calls / sizeof calls[0]; i++) {
        WORKS(begin(f.captured, i & 1 ? RELAXED : LOCAL));
        set_mode(RELAXED);
        REFUSES(STREAM_CAPTURE_UNSUPPORTED, i & 2 ? elsewhere(RELAXED, calls[i / 4]) : calls[i / 4]());
        set_mode(GLOBAL);
        REFUSES(STREAM_CAPTURE_INVALIDATED, cuStreamQuery(f.captured));
        end_invalid(f.captured);
        WORKS(cuStreamSynchronize(f.captured));
        WORKS(cuCtxSynchronize());
    }
    /* Another context is not concerned. */
    CUcontext second;
    WORKS(begin(f.captured, RELAXED));
    WORKS(cuCtxCreate_v2(&second, 0, 0));
    WORKS(cuCtxSynchronize());
    WORKS(cuCtxDestroy(second));
    end_well(f.captured, 0);
}

static CUresult event_sync(void) { return cuEventSynchronize(f.event); }
static CUresult event_query(void) { return cuEventQuery(f.event); }

static CUresult event_from(void)
{
    float ms;
    return cuEventElapsedTime(&ms, f.event, f.theirs);
}

static CUresult event_to(void)
{
    float ms;
    return cuEventElapsedTime(&ms, f.theirs, f.event);
}

static void events_that_are_captured(void **state)
{
    (void)state;
    open_all();
    static CUresult (*const calls[])(void) = {event_sync, event_query, event_from, event_to};
    WORKS(cuEventRecord(f.theirs, f.other));
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        WORKS(begin(f.captured, RELAXED));
        WORKS(cuEventRecord(f.event, f.captured));
        set_mode(RELAXED);
        REFUSES(CAPTURED_EVENT, calls[i]());
        set_mode(GLOBAL);
        end_invalid(f.captured);
        REFUSES(CAPTURED_EVENT, calls[i]()); /* the capture is over, the event is not recorded anew */
        REFUSES(CAPTURED_EVENT, cuStreamWaitEvent(f.other, f.event, 0));
        WORKS(begin(f.captured, RELAXED));
        REFUSES(CAPTURED_EVENT, cuStreamWaitEvent(f.captured, f.event, 0));
        end_invalid(f.captured);
        WORKS(cuEventRecord(f.event, f.other));
        WORKS(calls[i]());
        WORKS(cuStreamWaitEvent(f.other, f.event, 0));
    }
    /* Recorded anew elsewhere it is no part of the capture any more. */
    WORKS(begin(f.captured, RELAXED));
    WORKS(cuEventRecord(f.event, f.captured));
    WORKS(cuEventRecord(f.event, f.other));
    WORKS(cuEventQuery(f.event));
    end_well(f.captured, 0);
    WORKS(begin(f.captured, RELAXED));
    WORKS(cuEventRecord(f.event, f.captured));
    WORKS(cuEventDestroy(f.event));
    end_well(f.captured, 0);
    REFUSES(INVALID_HANDLE, cuEventQuery(f.event));
}

/* ---- the legacy stream ---- */

static CUresult legacy_launch(void) { return launch_in(NULL); }
static CUresult legacy_launch_named(void) { return launch_in(CU_STREAM_LEGACY); }
static CUresult legacy_copy_async(void) { return cuMemcpyAsync(f.out, f.out + 64, 4, NULL); }
static CUresult legacy_record(void) { return cuEventRecord(f.theirs, NULL); }
static CUresult legacy_wait(void) { return cuStreamWaitEvent(NULL, f.theirs, 0); }
static CUresult legacy_query(void) { return cuStreamQuery(CU_STREAM_LEGACY); }

static void the_legacy_stream_comes_after_blocking_ones(void **state)
{
    (void)state;
    open_all();
    static CUresult (*const calls[])(void) = {
        legacy_launch, legacy_launch_named, legacy_copy_async, legacy_record, legacy_wait, legacy_query, call_sync_legacy,
        call_copy, call_copy_h2d, call_copy_d2h, call_copy_d2d, call_set8, call_set32,
    };
    const CUstream quiet = f.captured;
    WORKS(cuStreamCreate(&f.captured, 0));
    for (size_t i = 0; i < 2 * sizeof calls / sizeof calls[0]; i++) {
        WORKS(begin(f.captured, RELAXED));
        set_mode(RELAXED);
        const CUresult result = i & 1 ? elsewhere(RELAXED, calls[i / 2]) : calls[i / 2]();
        set_mode(GLOBAL);
        if (result != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) fail_msg("call %zu: %d", i / 2, (int)result);
        end_invalid(f.captured);
        WORKS(calls[i / 2]());
    }
    /* To ask does no harm. */
    CUstreamCaptureStatus status;
    WORKS(begin(f.captured, GLOBAL));
    REFUSES(STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(NULL, &status));
    REFUSES(STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(CU_STREAM_LEGACY, &status));
    assert_int_equal(status_of(CU_STREAM_PER_THREAD), NONE);
    assert_int_equal(status_of(f.captured), ACTIVE);
    REFUSES(STREAM_CAPTURE_UNSUPPORTED, call_allocate()); /* this is about no stream */
    REFUSES(STREAM_CAPTURE_IMPLICIT, call_copy());        /* still: it is invalid, but not ended */
    end_invalid(f.captured);
    /* A blocking stream that joins later counts too; another context's legacy stream comes after nothing here. */
    CUcontext second;
    WORKS(begin(quiet, RELAXED));
    WORKS(launch_in(NULL));
    WORKS(cuEventRecord(f.event, quiet));
    WORKS(cuStreamWaitEvent(f.captured, f.event, 0));
    WORKS(cuCtxCreate_v2(&second, 0, 0));
    WORKS(cuStreamSynchronize(NULL));
    WORKS(cuCtxDestroy(second));
    assert_int_equal(status_of(quiet), ACTIVE);
    REFUSES(STREAM_CAPTURE_IMPLICIT, launch_in(NULL));
    end_invalid(quiet);
    assert_int_equal(status_of(f.captured), NONE);
}

/* ---- several threads ---- */

static void *capture_in_a_thread(void *user)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    CUstream stream;
    CUevent event;
    uintptr_t wrong = cuCtxPushCurrent(f.context) != CUDA_SUCCESS || cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS;
    wrong += cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS || cuEventCreate(&event, 0) != CUDA_SUCCESS;
    for (int i = 0; i < 100; i++) {
        const int spoils = i % 3 == 0;
        CUgraph graph = NULL;
        CUstreamCaptureStatus status;
        wrong += begin(stream, LOCAL) != CUDA_SUCCESS || launch_in(stream) != CUDA_SUCCESS;
        wrong += cuEventRecord(event, stream) != CUDA_SUCCESS;
        if (spoils) wrong += call_allocate() != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        wrong += cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || (int)status != (spoils ? INVALID : ACTIVE);
        wrong += cuStreamEndCapture(stream, &graph) != (spoils ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
        wrong += (graph == NULL) != spoils || (graph && cuGraphDestroy(graph) != CUDA_SUCCESS);
        wrong += call_allocate() != CUDA_SUCCESS;
    }
    (void)user;
    return (void *)wrong;
}

static void threads_capture_side_by_side(void **state)
{
    (void)state;
    open_all();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, capture_in_a_thread, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong = &f;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(statuses, close_captures),
        cmocka_unit_test_teardown(modes_are_exchanged, close_captures),
        cmocka_unit_test_teardown(ended_by_another_thread, close_captures),
        cmocka_unit_test_teardown(unsafe_calls_are_forbidden, close_captures),
        cmocka_unit_test_teardown(what_is_said, close_captures),
        cmocka_unit_test_teardown(several_captures, close_captures),
        cmocka_unit_test_teardown(calls_that_are_allowed, close_captures),
        cmocka_unit_test_teardown(waiting_for_what_is_captured, close_captures),
        cmocka_unit_test_teardown(events_that_are_captured, close_captures),
        cmocka_unit_test_teardown(the_legacy_stream_comes_after_blocking_ones, close_captures),
        cmocka_unit_test_teardown(threads_capture_side_by_side, close_captures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
