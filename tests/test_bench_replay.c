/* Recorded calls on the software GPU: a kernel writes down on the device that it ran, and for which call. */
#include "bench_gpu_fixture.h"

#include "tools/bench_replay.h"

enum { LOG_WORDS = 64 };

/* One thread: log[1 + log[0]++] = index. */
static const char note_kernel[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry note(.param .u64 log, .param .u32 index)\n{\n"
    "  .reg .b32 %r<4>;\n  .reg .b64 %d<4>;\n"
    "  ld.param.u64 %d1, [log];\n  ld.param.u32 %r1, [index];\n"
    "  ld.global.u32 %r2, [%d1];\n"
    "  mul.wide.u32 %d2, %r2, 4;\n  add.u64 %d3, %d1, %d2;\n"
    "  st.global.u32 [%d3+4], %r1;\n"
    "  add.u32 %r3, %r2, 1;\n  st.global.u32 [%d1], %r3;\n"
    "  ret;\n}\n";

static CUmodule module;
static CUfunction note;
static CUdeviceptr log_words;
static bench_clock stopwatch;

/* ---- calls ---- */

enum { NEVER = 1000 };

typedef struct calls {
    unsigned seen[16], count; /* what was enqueued, in order */
    unsigned fails_at;        /* returns an error of its own */
    unsigned waits_at;        /* does what a capture does not allow, and does not tell */
} calls;

static jg_status enqueue(void *user, unsigned index)
{
    calls *c = user;
    c->seen[c->count++ % 16] = index;
    if (index == c->fails_at) return JG_ERR_MISALIGNED;
    if (index == c->waits_at) gpu.driver->stream_synchronize(stopwatch.stream);
    void *parameters[] = {&log_words, &index};
    const CUresult result = gpu.driver->launch(note, 1, 1, 1, 1, 1, 1, 0, stopwatch.stream, parameters, NULL);
    return index >= c->waits_at ? JG_OK : bench_gpu_failed(&gpu, result, "cuLaunchKernel");
}

static void clear_log(void)
{
    assert_int_equal(gpu.memory_set(log_words, 0, 4 * LOG_WORDS), CUDA_SUCCESS);
}

/* The log is 0 to calls - 1, so many times. */
static void assert_log(unsigned times, unsigned count)
{
    uint32_t words[LOG_WORDS];
    copy_from_device(words, (void *)(uintptr_t)log_words, sizeof words);
    assert_int_equal(words[0], times * count);
    for (unsigned i = 0; i < times * count; i++) assert_int_equal(words[1 + i], i % count);
}

static void assert_no_capture(void)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    assert_int_equal(gpu.driver->stream_capturing(stopwatch.stream, &status), CUDA_SUCCESS);
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
}

/* ---- tests ---- */

/* Recording runs nothing; each replay runs all, in order. */
static void each_call_once(void **state)
{
    (void)state;
    static const unsigned numbers[] = {1, 2, 7};
    for (size_t n = 0; n < COUNT(numbers); n++) {
        calls c = {.fails_at = NEVER, .waits_at = NEVER};
        bench_replay replay;
        double us = -1;
        clear_log();
        assert_ok(bench_replay_record(&stopwatch, numbers[n], enqueue, &c, &replay));
        assert_int_equal(c.count, numbers[n]);
        for (unsigned i = 0; i < numbers[n]; i++) assert_int_equal(c.seen[i], i);
        assert_int_equal(replay.calls, numbers[n]);
        assert_no_capture();
        assert_log(0, 1);
        for (unsigned times = 1; times <= 3; times++) {
            assert_ok(bench_replay_time(&stopwatch, &replay, &us));
            assert_log(times, numbers[n]); /* it has waited */
            assert_true(us >= 0);
        }
        assert_int_equal(c.count, numbers[n]); /* the host has no part in replays */
        bench_replay_free(&stopwatch, &replay);
        assert_null(replay.graph);
        bench_replay_free(&stopwatch, &replay);
    }
}

static void no_calls(void **state)
{
    (void)state;
    calls c = {.fails_at = NEVER, .waits_at = NEVER};
    bench_replay replay;
    double us = -1;
    clear_log();
    assert_ok(bench_replay_record(&stopwatch, 0, enqueue, &c, &replay));
    assert_ok(bench_replay_time(&stopwatch, &replay, &us));
    assert_true(us >= 0 && us < 1e12);
    assert_log(0, 1);
    bench_replay_free(&stopwatch, &replay);
}

/* The stream is as good as before after each of these. */
static void assert_usable(void)
{
    calls c = {.fails_at = NEVER, .waits_at = NEVER};
    bench_replay replay;
    double us;
    assert_no_capture();
    clear_log();
    assert_ok(bench_replay_record(&stopwatch, 3, enqueue, &c, &replay));
    assert_ok(bench_replay_time(&stopwatch, &replay, &us));
    assert_log(1, 3);
    bench_replay_free(&stopwatch, &replay);
}

/* Its own status is what comes back, and no call is made after it. */
static void a_call_that_fails(void **state)
{
    (void)state;
    for (unsigned at = 0; at < 3; at++) {
        calls c = {.fails_at = at, .waits_at = NEVER};
        bench_replay replay;
        clear_log();
        assert_string_equal(jg_status_name(bench_replay_record(&stopwatch, 3, enqueue, &c, &replay)), "JG_ERR_MISALIGNED");
        assert_int_equal(c.count, at + 1);
        assert_null(replay.graph);
        assert_log(0, 1);
        bench_replay_free(&stopwatch, &replay);
        assert_usable();
    }
}

/* What makes a capture invalid is a call that cannot be recorded: it may run well without one. */
static void a_call_that_cannot_be_recorded(void **state)
{
    (void)state;
    for (unsigned at = 0; at < 3; at++) {
        calls c = {.fails_at = NEVER, .waits_at = at};
        bench_replay replay;
        clear_log();
        assert_fails(bench_replay_record(&stopwatch, 3, enqueue, &c, &replay), JG_ERR_UNSUPPORTED, "recording it into a graph");
        assert_null(replay.graph);
        assert_log(0, 1);
        bench_replay_free(&stopwatch, &replay);
        assert_usable();
    }
}

/* A call fails because of the capture that it broke itself: its own status, still. */
static void a_call_that_fails_and_breaks_the_capture(void **state)
{
    (void)state;
    calls c = {.fails_at = 2, .waits_at = 1};
    bench_replay replay;
    assert_string_equal(jg_status_name(bench_replay_record(&stopwatch, 3, enqueue, &c, &replay)), "JG_ERR_MISALIGNED");
    assert_null(replay.graph);
    assert_usable();
}

static void a_stream_that_is_captured_already(void **state)
{
    (void)state;
    calls c = {.fails_at = NEVER, .waits_at = NEVER};
    bench_replay replay;
    CUgraph graph = NULL;
    assert_int_equal(gpu.capture_begin(stopwatch.stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    assert_fails(bench_replay_record(&stopwatch, 3, enqueue, &c, &replay), JG_ERR_DEVICE, "cuStreamBeginCapture");
    assert_int_equal(c.count, 0);
    assert_null(replay.graph);
    gpu.capture_end(stopwatch.stream, &graph);
    if (graph) gpu.graph_destroy(graph);
    assert_usable();
}

static void a_replay_of_nothing(void **state)
{
    (void)state;
    double us;
    const bench_replay none = {.calls = 1};
    assert_fails(bench_replay_time(&stopwatch, &none, &us), JG_ERR_DEVICE, "replaying a graph");
    assert_usable();
}

static void numbers_of_calls(void **state)
{
    (void)state;
    static const struct { double us, sample_us; unsigned least, calls; } rows[] = {
        {10, 500, 1, 50},   {3, 500, 1, 166},       {500, 500, 1, 1}, {501, 500, 1, 1}, /* one at least */
        {10, 500, 60, 60},  {10, 500, 50, 50},      {501, 500, 7, 7},                   /* each set of operands once */
        {0.01, 500, 1, 4096}, {0, 500, 1, 4096},    {10, 500, 5000, 4096},              /* a graph has an end */
        {501, 500, 0, 1},   {1e30, 500, 0, 1},      {-1, 500, 1, 4096},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (bench_replay_calls(rows[i].us, rows[i].sample_us, rows[i].least) != rows[i].calls)
            fail_msg("row %zu: %u", i, bench_replay_calls(rows[i].us, rows[i].sample_us, rows[i].least));
    assert_int_equal(BENCH_REPLAY_MOST, 4096);
}

/* ---- the device ---- */

static int setup(void **state)
{
    if (open_swgpu(state) != 0) return -1;
    if (bench_clock_open(&gpu, &stopwatch) != JG_OK) return -1;
    if (gpu.driver->module_load(&module, note_kernel, 0, NULL, NULL) != CUDA_SUCCESS) return -1;
    if (gpu.driver->module_function(&note, module, "note") != CUDA_SUCCESS) return -1;
    return gpu.driver->memory_allocate(&log_words, 4 * LOG_WORDS) == CUDA_SUCCESS ? 0 : -1;
}

static int teardown(void **state)
{
    gpu.driver->memory_free(log_words);
    gpu.driver->module_unload(module);
    bench_clock_close(&stopwatch);
    bench_clock_close(&stopwatch); /* nothing more to close */
    return close_swgpu(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_once),
        cmocka_unit_test(no_calls),
        cmocka_unit_test(a_call_that_fails),
        cmocka_unit_test(a_call_that_cannot_be_recorded),
        cmocka_unit_test(a_call_that_fails_and_breaks_the_capture),
        cmocka_unit_test(a_stream_that_is_captured_already),
        cmocka_unit_test(a_replay_of_nothing),
        cmocka_unit_test(numbers_of_calls),
    };
    return run_on_swgpu(tests, setup, teardown);
}
