/* What a call may do on a miss: policies of the context and of the call, and what a stream capture makes of them. The way of a size in
 * background mode is in test_background.c. */
#include "background_fixture.h"

static const CUstream stream = (CUstream)(uintptr_t)0x5150;

/* One product of the size on a stream of the caller's. */
static jg_status run_on(jg_context *c, const jg_problem *p, CUstream on)
{
    static _Alignas(256) float a[64 * 64], b[64 * 64], out[64 * 64];
    return jg_gemm(c, p, &(jg_operands){.a = a, .b = b, .c = out, .stream = on});
}

static jg_context *open_generic(void)
{
    plant_generic(fx.cache, COMMON_TYPES);
    return background_open();
}

static jg_context *open_policy(jg_compile policy, uint32_t resident)
{
    jg_options options = background_options();
    options.compile = policy;
    options.resident = resident;
    return fixture_open_with(options);
}

/* --- policies of a call --- */

/* A call that may wait brings the size's own kernel, once. */
static void a_waiting_call_improves_once(void **state)
{
    (void)state;
    jg_problem p = square(16, JG_F16), waiting = p;
    waiting.compile = JG_COMPILE_WAIT;
    atomic_store(&nvrtc_double->accepts, 1);
    jg_context *c = open_generic();
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    settle(c);
    events_forget();
    assert_status(fixture_gemm(c, &waiting, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_AUTO));
    assert_string_equal(events_text(), "CWSH");
    assert_int_equal(fixture_stats(c).waits, 1);
    assert_int_equal(fixture_stats(c).swaps, 1);
    assert_int_equal(fixture_stats(c).problems, 1);
    for (int i = 0; i < 2; i++) assert_status(fixture_gemm(c, i ? &waiting : &p, 1, 0), JG_OK);
    assert_int_equal(fixture_stats(c).waits, 1);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 1);
    settle(c);
    assert_int_equal(poll_once(c).loaded, 0);
    finish(c);
}

/* Where it cannot be brought, one call has tried. */
static void a_waiting_call_tries_once(void **state)
{
    (void)state;
    jg_problem p = square(16, JG_F16);
    plant_generic(fx.cache, COMMON_TYPES);
    jg_options options = background_options();
    options.nvrtc_path = "/nonexistent/libnvrtc.so";
    jg_context *c = fixture_open_with(options);
    assert_status(jg_record_gain(c, &p, 0.5), JG_OK); /* so that the worker does not try as well */
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    const uint64_t failures = fixture_stats(c).compile_failures;
    p.compile = JG_COMPILE_WAIT;
    for (int i = 0; i < 3; i++) {
        assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
        assert_true(ran_on(&p, JG_FORM_GENERIC));
        assert_int_equal(fixture_stats(c).compile_failures - failures, 1);
        assert_int_equal(events_of(JG_EVENT_FAIL), 1);
    }
    assert_string_equal(events_last(JG_EVENT_FAIL).kernel, fixture_name(&p, JG_FORM_AUTO));
    jg_problem fresh = square(24, JG_F16); /* the same for one that was never met */
    fresh.compile = JG_COMPILE_WAIT;
    for (int i = 0; i < 3; i++) assert_status(fixture_gemm(c, &fresh, 1, 0), JG_OK);
    assert_int_equal(fixture_stats(c).compile_failures - failures, 2);
    assert_int_equal(events_of(JG_EVENT_FAIL), 2);
    assert_int_equal(fixture_stats(c).waits, 0);
    finish(c);
}

/* A kernel that cannot be made fails no call that a generic kernel serves already. */
static void a_failed_improvement_costs_no_call(void **state)
{
    (void)state;
    jg_problem p = square(16, JG_F16);
    plant_generic(fx.cache, COMMON_TYPES);
    jg_context *c = background_open();
    assert_status(jg_record_gain(c, &p, 0.5), JG_OK);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    p.compile = JG_COMPILE_WAIT;
    assert_status(jg_gemm(c, &p, NULL), JG_ERR_NULL);
    for (int i = 0; i < 3; i++) {
        assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
        assert_true(ran_on(&p, JG_FORM_GENERIC));
        assert_says(jg_last_error(), "operands is null"); /* of the last failed call */
    }
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 1);
    assert_int_equal(events_of(JG_EVENT_FAIL), 1);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_says(fx.log, "16:f16: ");
    assert_says(fx.log, "planted refusal");

    /* Unless the device is gone. */
    jg_problem other = square(24, JG_F16);
    assert_status(fixture_gemm(c, &other, 1, 0), JG_OK);
    fixture_plant(&other, JG_FORM_AUTO);
    other.compile = JG_COMPILE_WAIT;
    fx.fake->fail_call("cuModuleLoadDataEx", 1, CUDA_ERROR_ILLEGAL_ADDRESS, FAKE_ONCE);
    assert_status(fixture_gemm(c, &other, 1, 0), JG_ERR_DEVICE_LOST);
    finish(c);
}

/* So does a plan, and it says where the kernel came from. */
static void a_waiting_plan_improves(void **state)
{
    (void)state;
    jg_problem p = square(16, JG_F16);
    jg_context *c = open_generic();
    jg_plan *made;
    jg_plan_details d;
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    settle(c);
    fixture_plant(&p, JG_FORM_AUTO);
    p.compile = JG_COMPILE_WAIT;
    assert_status(jg_plan_create(c, &p, &made), JG_OK);
    assert_status(jg_plan_info(made, &d), JG_OK);
    assert_int_equal(d.form, JG_FORM_SPECIALISED);
    assert_int_equal(d.source, JG_SOURCE_DISK);
    jg_plan_destroy(made);
    finish(c);
}

static void a_call_may_be_forbidden_to_wait(void **state)
{
    (void)state;
    static const jg_compile strict[] = {JG_COMPILE_NEVER, JG_COMPILE_BACKGROUND};
    jg_problem p = square(16, JG_F16);
    atomic_store(&nvrtc_double->accepts, 1);
    jg_context *c = open_policy(JG_COMPILE_WAIT, 0);
    p.compile = JG_COMPILE_NEVER;
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_NOT_READY);
    assert_says(jg_last_error(), "JG_COMPILE_NEVER");
    settle(c);
    assert_int_equal(LOADS() + LAUNCHES(), 0);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 0);

    /* With a generic kernel loaded both take it, and the worker is told. */
    const jg_problem generic = {.m = 16, .n = 16, .k = 16, .type_a = JG_F16, .form = JG_FORM_GENERIC};
    assert_status(fixture_gemm(c, &generic, 1, 0), JG_OK);
    const uint64_t loads = LOADS();
    for (size_t i = 0; i < 2; i++) {
        jg_problem sized = square(24 + 8 * (int64_t)i, JG_F16);
        sized.compile = strict[i];
        for (int j = 0; j < 2; j++) {
            assert_status(fixture_gemm(c, &sized, 1, 0), JG_OK);
            assert_true(ran_on(&generic, JG_FORM_GENERIC));
        }
        settle(c);
        assert_int_equal(LOADS(), loads);
        assert_int_equal(fixture_stats(c).ready, i + 1);
    }
    p.compile = JG_COMPILE_DEFAULT; /* as the context says: wait */
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_AUTO));
    finish(c);
}

/* Sealed is sealed. */
static void a_sealed_context_ignores_what_a_call_allows(void **state)
{
    (void)state;
    static const jg_compile policies[] = {JG_COMPILE_DEFAULT, JG_COMPILE_WAIT, JG_COMPILE_BACKGROUND, JG_COMPILE_NEVER};
    plant_generic(fx.cache, COMMON_TYPES);
    atomic_store(&nvrtc_double->accepts, 1);
    jg_context *c = open_policy(JG_COMPILE_NEVER, 0);
    const uint64_t loads = LOADS();
    for (size_t i = 0; i < 4; i++) {
        jg_problem p = square(16 + 8 * (int64_t)i, JG_F16), bf16 = square(16, JG_BF16), own = p;
        p.compile = bf16.compile = own.compile = policies[i];
        own.form = JG_FORM_SPECIALISED;
        for (int j = 0; j < 3; j++) {
            assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
            assert_true(ran_on(&p, JG_FORM_GENERIC));
            assert_status(fixture_gemm(c, &bf16, 1, 0), JG_ERR_NOT_READY);
            assert_status(fixture_gemm(c, &own, 1, 0), JG_ERR_NOT_READY);
            assert_says(jg_last_error(), fixture_name(&own, JG_FORM_AUTO));
        }
    }
    settle(c);
    assert_int_equal(LOADS(), loads);
    const jg_stats s = fixture_stats(c);
    assert_int_equal(s.compiles + s.compile_failures + s.waits + s.ready, 0);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 0);

    /* What another process puts into the file is taken up. */
    const jg_problem p = square(16, JG_F16);
    fixture_plant(&p, JG_FORM_AUTO);
    for (int i = 0; i < 5; i++) assert_status(fixture_gemm(c, &p, 1, 0), JG_OK); /* to the 8th use in all */
    settle(c);
    assert_int_equal(poll_once(c).swapped, 1);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_AUTO));
    finish(c);
}

static void a_bad_policy_is_named(void **state)
{
    (void)state;
    jg_context *c = open_generic();
    jg_plan *made;
    jg_problem p = square(16, JG_F16);
    p.compile = (jg_compile)4;
    assert_status(run_on(c, &p, NULL), JG_ERR_VALUE);
    assert_says(jg_last_error(), "compile = 4");
    assert_status(jg_plan_create(c, &p, &made), JG_ERR_VALUE);
    assert_null(made);
    assert_int_equal(fixture_stats(c).problems, 0);
    finish(c);
}

/* --- stream capture --- */

#define ASKED() fx.fake->calls("cuStreamIsCapturing")

/* The kernel of a captured launch stays, whatever is evicted; it is asked of the driver once. */
static void a_captured_kernel_stays(void **state)
{
    (void)state;
    static const CUstreamCaptureStatus capturing[] = {CU_STREAM_CAPTURE_STATUS_ACTIVE, CU_STREAM_CAPTURE_STATUS_INVALIDATED};
    plant_squares(16, 4, JG_F32);
    const jg_problem p = square(16, JG_F32), q = square(17, JG_F32);
    const jg_problem *const captured[] = {&p, &q};
    jg_options options = background_options();
    options.compile = JG_COMPILE_WAIT;
    options.memory_max_kernels = 1;
    jg_context *c = fixture_open_with(options);
    for (size_t i = 0; i < 2; i++) {
        assert_status(run_on(c, captured[i], stream), JG_OK); /* loaded before */
        assert_int_equal(fixture_stats(c).captured, i);
        fx.fake->set_capturing(stream, capturing[i]);
        assert_status(run_on(c, captured[i], stream), JG_OK);
        assert_int_equal(fixture_stats(c).captured, i + 1);
        const uint64_t asked = ASKED();
        for (int j = 0; j < 3; j++) assert_status(run_on(c, captured[i], stream), JG_OK);
        assert_int_equal(ASKED(), asked);
        assert_int_equal(fixture_stats(c).captured, i + 1);
        fx.fake->set_capturing(stream, CU_STREAM_CAPTURE_STATUS_NONE);
    }
    for (int64_t size = 18; size < 20; size++) {
        const jg_problem other = square(size, JG_F32);
        assert_status(run_on(c, &other, NULL), JG_OK);
        poll_once(c);
        assert_true(fx.fake->is_loaded(fixture_name(&p, JG_FORM_AUTO)));
        assert_true(fx.fake->is_loaded(fixture_name(&q, JG_FORM_AUTO)));
    }
    assert_true(events_of(JG_EVENT_EVICT) > 0);
    finish(c);
}

/* What is resident anyway is no kernel of a graph's. A plan's launch counts as a call's. */
static void captures_on_generic_kernels_and_of_plans(void **state)
{
    (void)state;
    const jg_problem p = square(16, JG_F32), planned = square(24, JG_F32);
    jg_context *c = open_generic();
    jg_plan *made;
    fixture_plant(&planned, JG_FORM_AUTO);
    jg_problem waiting = planned;
    waiting.compile = JG_COMPILE_WAIT;
    assert_status(jg_plan_create(c, &waiting, &made), JG_OK);
    fx.fake->set_capturing(stream, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_status(run_on(c, &p, stream), JG_OK); /* never met before */
    assert_true(ran_on(&p, JG_FORM_GENERIC));
    assert_int_equal(fixture_stats(c).captured, 0);
    static _Alignas(256) float a[24 * 24], b[24 * 24], out[24 * 24];
    assert_status(jg_plan_run(made, &(jg_operands){.a = a, .b = b, .c = out, .stream = stream}), JG_OK);
    assert_int_equal(fixture_stats(c).captured, 1);
    fx.fake->set_capturing(stream, CU_STREAM_CAPTURE_STATUS_NONE);
    jg_plan_destroy(made);
    finish(c);
}

/* A miss inside a capture: no load, no file, no compile, whatever the policy; if nothing fits, the call fails and has called
 * nothing that a capture forbids. */
static void a_miss_in_a_capture_only_launches(void **state)
{
    (void)state;
    static const jg_compile policies[] = {JG_COMPILE_WAIT, JG_COMPILE_BACKGROUND, JG_COMPILE_NEVER};
    const jg_problem p = square(16, JG_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    atomic_store(&nvrtc_double->accepts, 1);
    for (size_t i = 0; i < 3; i++) {
        jg_context *c = open_policy(policies[i], JG_RESIDENT_NONE);
        fx.fake->push(c->device.context); /* so that there is nothing to push and pop */
        fx.fake->set_capturing(stream, CU_STREAM_CAPTURE_STATUS_ACTIVE);
        const uint64_t before = fx.fake->all_calls(), asked = ASKED(), current = fx.fake->calls("cuCtxGetCurrent");
        const jg_stats s = fixture_stats(c);
        assert_status(run_on(c, &p, stream), JG_ERR_NOT_READY);
        assert_says(jg_last_error(), "captured");
        assert_says(jg_last_error(), fixture_name(&p, JG_FORM_AUTO));
        assert_int_equal(fx.fake->all_calls() - before, ASKED() - asked + fx.fake->calls("cuCtxGetCurrent") - current);
        assert_int_equal(fixture_stats(c).disk_hits + fixture_stats(c).disk_misses, s.disk_hits + s.disk_misses);
        settle(c);
        assert_int_equal(atomic_load(&nvrtc_double->compiles), 0);
        assert_int_equal(fixture_stats(c).ready, 0);
        fx.fake->set_capturing(stream, CU_STREAM_CAPTURE_STATUS_NONE);
        fx.fake->pop();
        finish(c);
    }
}

/* A waiting call does not use its one try up inside a capture. */
static void a_capture_puts_improving_off(void **state)
{
    (void)state;
    jg_problem p = square(16, JG_F32);
    jg_context *c = open_generic();
    assert_status(run_on(c, &p, stream), JG_OK);
    settle(c);
    fixture_plant(&p, JG_FORM_AUTO);
    p.compile = JG_COMPILE_WAIT;
    const uint64_t loads = LOADS();
    fx.fake->set_capturing(stream, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_status(run_on(c, &p, stream), JG_OK);
    assert_true(ran_on(&p, JG_FORM_GENERIC));
    assert_int_equal(LOADS(), loads);
    fx.fake->set_capturing(stream, CU_STREAM_CAPTURE_STATUS_NONE);
    assert_status(run_on(c, &p, stream), JG_OK);
    assert_true(ran_on(&p, JG_FORM_AUTO));
    finish(c);
}

/* The legacy default stream cannot be captured. */
static void the_null_stream_is_not_asked(void **state)
{
    (void)state;
    jg_problem p = square(16, JG_F32), waiting = p;
    waiting.compile = JG_COMPILE_WAIT;
    jg_context *c = open_generic();
    fixture_plant(&p, JG_FORM_AUTO);
    assert_status(run_on(c, &p, NULL), JG_OK);
    assert_status(run_on(c, &waiting, NULL), JG_OK);
    assert_status(run_on(c, &waiting, NULL), JG_OK);
    assert_true(ran_on(&p, JG_FORM_AUTO));
    assert_int_equal(ASKED(), 0);
    assert_status(run_on(c, &p, stream), JG_OK);
    assert_int_equal(ASKED(), 1);
    finish(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BACKGROUND_TEST(a_waiting_call_improves_once),
        BACKGROUND_TEST(a_waiting_call_tries_once),
        BACKGROUND_TEST(a_failed_improvement_costs_no_call),
        BACKGROUND_TEST(a_waiting_plan_improves),
        BACKGROUND_TEST(a_call_may_be_forbidden_to_wait),
        BACKGROUND_TEST(a_sealed_context_ignores_what_a_call_allows),
        BACKGROUND_TEST(a_bad_policy_is_named),
        BACKGROUND_TEST(a_captured_kernel_stays),
        BACKGROUND_TEST(captures_on_generic_kernels_and_of_plans),
        BACKGROUND_TEST(a_miss_in_a_capture_only_launches),
        BACKGROUND_TEST(a_capture_puts_improving_off),
        BACKGROUND_TEST(the_null_stream_is_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
