/* Stream capture on the software GPU: how streams join a capture by events, come back, and what may not depend on what. */
#include "capture_fixture.h"

/* to goes on after what from holds now. */
static void follow(CUstream from, CUstream to)
{
    WORKS(cuEventRecord(f.event, from));
    WORKS(cuStreamWaitEvent(to, f.event, 0));
}

static void streams_join_and_come_back(void **state)
{
    (void)state;
    open_all();
    CUstream third;
    CUgraph graph;
    WORKS(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
    WORKS(begin(f.captured, GLOBAL));
    WORKS(launch_in(f.captured));
    follow(f.captured, f.other);
    assert_int_equal(status_of(f.other), ACTIVE);
    WORKS(launch_in(f.other));
    follow(f.other, third); /* a fork of the fork comes back through it, or by itself */
    WORKS(launch_in(third));
    follow(third, f.other);
    WORKS(launch_in(f.captured));
    follow(f.other, f.captured);
    WORKS(launch_in(f.captured));
    end_well(f.captured, 5);
    assert_int_equal(status_of(f.other), NONE);
    assert_int_equal(status_of(third), NONE);
    WORKS(launch_in(third));

    WORKS(begin(f.captured, GLOBAL)); /* what comes after work still does when it waits for less */
    follow(f.captured, f.other);
    WORKS(cuEventRecord(f.theirs, f.other));
    WORKS(launch_in(f.other));
    follow(f.other, f.captured);
    WORKS(cuStreamWaitEvent(f.captured, f.theirs, 0));
    end_well(f.captured, 1);

    WORKS(begin(f.captured, GLOBAL)); /* a stream without work needs not come back */
    follow(f.captured, f.other);
    follow(f.other, third);
    end_well(f.captured, 0);

    WORKS(begin(f.captured, GLOBAL));
    follow(f.captured, f.other);
    REFUSES(STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(f.other, &graph));
    assert_null(graph);
    assert_int_equal(status_of(f.other), INVALID);
    end_invalid(f.captured);
    assert_int_equal(status_of(f.other), NONE);
}

static void work_that_does_not_come_back(void **state)
{
    (void)state;
    open_all();
    CUstream third;
    WORKS(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
    WORKS(begin(f.captured, GLOBAL));
    follow(f.captured, f.other);
    WORKS(launch_in(f.other));
    end_badly(f.captured, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    assert_contains(error_text(CUDA_ERROR_STREAM_CAPTURE_UNJOINED), "stream 2 of the capture holds work (nodes: 1) that");
    assert_int_equal(status_of(f.other), NONE);

    WORKS(begin(f.captured, GLOBAL)); /* the event comes before its last node */
    follow(f.captured, f.other);
    WORKS(launch_in(f.other));
    WORKS(cuEventRecord(f.theirs, f.other));
    WORKS(launch_in(f.other));
    WORKS(cuStreamWaitEvent(f.captured, f.theirs, 0));
    WORKS(launch_in(f.captured));
    end_badly(f.captured, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);

    WORKS(begin(f.captured, GLOBAL)); /* it comes back to a stream that does not */
    follow(f.captured, f.other);
    follow(f.captured, third);
    WORKS(launch_in(f.other));
    follow(f.other, third);
    end_badly(f.captured, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    WORKS(begin(f.captured, GLOBAL)); /* it came back, and went on */
    follow(f.captured, f.other);
    WORKS(launch_in(f.other));
    follow(f.other, f.captured);
    WORKS(cuMemcpyAsync(f.out, f.out + 64, 4, f.other));
    end_badly(f.captured, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    /* Nothing is left of before: neither that this stream once came after three nodes of the second to join ... */
    WORKS(begin(f.captured, GLOBAL));
    follow(f.captured, f.other);
    for (int i = 0; i < 3; i++) WORKS(launch_in(f.other));
    follow(f.other, f.captured);
    end_well(f.captured, 3);
    WORKS(begin(f.captured, GLOBAL));
    follow(f.captured, third);
    WORKS(launch_in(third));
    end_badly(f.captured, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    WORKS(begin(f.captured, GLOBAL)); /* ... nor that there was work */
    follow(f.captured, third);
    end_well(f.captured, 0);
}

static void dependencies_that_are_refused(void **state)
{
    (void)state;
    open_all();
    WORKS(begin(f.captured, RELAXED));
    REFUSES(STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(f.captured, f.theirs, 0)); /* never recorded */
    end_invalid(f.captured);
    WORKS(cuEventRecord(f.theirs, f.other));
    WORKS(begin(f.captured, RELAXED));
    REFUSES(STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(f.captured, f.theirs, 0));
    REFUSES(STREAM_CAPTURE_INVALIDATED, cuStreamWaitEvent(f.captured, f.theirs, 0));
    REFUSES(STREAM_CAPTURE_INVALIDATED, cuEventRecord(f.event, f.captured));
    REFUSES(STREAM_CAPTURE_INVALIDATED, cuMemcpyAsync(f.out, f.out + 64, 4, f.captured));
    end_invalid(f.captured);

    WORKS(begin(f.captured, RELAXED));
    WORKS(begin(f.other, RELAXED));
    WORKS(cuEventRecord(f.event, f.captured));
    REFUSES(STREAM_CAPTURE_MERGE, cuStreamWaitEvent(f.other, f.event, 0));
    end_invalid(f.captured);
    end_invalid(f.other);

    CUstream third;
    WORKS(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING)); /* an event that left a capture has nothing to do with it */
    WORKS(begin(f.captured, RELAXED));
    WORKS(begin(f.other, RELAXED));
    WORKS(cuEventRecord(f.event, f.captured));
    WORKS(cuEventRecord(f.event, third));
    REFUSES(STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(f.other, f.event, 0));
    end_invalid(f.other);
    end_well(f.captured, 0);

    WORKS(begin(f.captured, RELAXED)); /* an invalid capture takes nobody in */
    WORKS(cuEventRecord(f.event, f.captured));
    REFUSES(STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(f.captured));
    REFUSES(STREAM_CAPTURE_INVALIDATED, cuStreamWaitEvent(f.other, f.event, 0));
    assert_int_equal(status_of(f.other), NONE);
    WORKS(begin(f.other, RELAXED)); /* and what hangs on it is lost too */
    REFUSES(STREAM_CAPTURE_INVALIDATED, cuStreamWaitEvent(f.other, f.event, 0));
    end_invalid(f.other);
    end_invalid(f.captured);

    static const struct {
        CUstream stream;
        CUresult result;
    } rows[] = {{NULL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
                {CU_STREAM_LEGACY, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
                {CU_STREAM_PER_THREAD, CUDA_ERROR_NOT_SUPPORTED}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        WORKS(begin(f.captured, RELAXED));
        WORKS(cuEventRecord(f.event, f.captured));
        assert_int_equal(cuStreamWaitEvent(rows[i].stream, f.event, 0), rows[i].result);
        end_invalid(f.captured);
    }
    REFUSES(INVALID_VALUE, cuStreamWaitEvent(f.other, f.theirs, 1));
    REFUSES(INVALID_HANDLE, cuStreamWaitEvent(f.other, NULL, 0));
    REFUSES(INVALID_HANDLE, cuStreamWaitEvent((CUstream)f.event, f.theirs, 0));
    REFUSES(INVALID_HANDLE, cuEventQuery(NULL));
}

static void as_many_streams_as_fit(void **state)
{
    (void)state;
    open_all();
    CUstream streams[32];
    WORKS(begin(f.captured, GLOBAL));
    for (int i = 0; i < 31; i++) {
        WORKS(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        follow(f.captured, streams[i]);
        WORKS(launch_in(streams[i]));
        follow(streams[i], f.captured);
    }
    follow(f.captured, streams[30]); /* in it already */
    end_well(f.captured, 31);
    WORKS(cuStreamCreate(&streams[31], CU_STREAM_NON_BLOCKING));
    WORKS(begin(f.captured, GLOBAL));
    for (int i = 0; i < 31; i++) follow(f.captured, streams[i]);
    WORKS(cuEventRecord(f.event, f.captured));
    REFUSES(NOT_SUPPORTED, cuStreamWaitEvent(streams[31], f.event, 0));
    end_invalid(f.captured);

    CUcontext second;
    CUstream theirs;
    WORKS(cuCtxCreate_v2(&second, 0, 0));
    WORKS(cuStreamCreate(&theirs, CU_STREAM_NON_BLOCKING));
    WORKS(begin(f.captured, RELAXED));
    WORKS(cuEventRecord(f.event, f.captured));
    REFUSES(NOT_SUPPORTED, cuStreamWaitEvent(theirs, f.event, 0));
    end_invalid(f.captured);
    WORKS(cuCtxDestroy(second));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(streams_join_and_come_back, close_captures),
        cmocka_unit_test_teardown(work_that_does_not_come_back, close_captures),
        cmocka_unit_test_teardown(dependencies_that_are_refused, close_captures),
        cmocka_unit_test_teardown(as_many_streams_as_fit, close_captures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
